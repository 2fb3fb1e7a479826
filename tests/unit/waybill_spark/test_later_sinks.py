"""A sink that comes to a stage which has begun: from there on it loses nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders import with_batch
from unit.waybill_spark.bench import NO_FRAME, TOPIC, Bench, run_of
from waybill_spark.tracking.fencing import LaterSink, StageInput
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.stopping import StageStopped


@pytest.fixture
def bench(later_bench: Bench) -> Bench:
    return later_bench


def test_it_begins_where_the_stage_stands_and_says_what_it_has_no_part_in(bench: Bench) -> None:
    assert bench.started() == {}

    assert bench.second.end == 7
    assert bench.second.rows == 0
    (aside,) = bench.commits[-1].set_aside
    assert (aside.reason, aside.ranges) == ("before_start", (run_of(0, 7),))
    bench.run(2, 9)
    assert bench.first.ranges[-1] == bench.second.ranges[-1] == (7, 9)


def test_what_came_after_the_change_but_before_the_new_driver_is_given_to_it(bench: Bench) -> None:
    """The old driver still took it: a token that was made after the change must not be lost."""
    bench.later = {"second": LaterSink(since=2, bases={("T1", 0): 5})}

    bench.started()

    assert bench.read_again == [(run_of(5, 7),)]
    assert bench.second.ranges == [(5, 7)]
    assert bench.second.fences[-1].set_aside[0].ranges == (run_of(0, 5),)


def test_a_partition_that_came_after_the_change_is_all_its_own(bench: Bench) -> None:
    """The old driver took from it before the new one began."""
    taken = {**bench.first.fences[-1].frontier, ("T1", 1): 3}
    bench.first.fences[-1] = replace(bench.first.fences[-1], frontier=taken)

    bench.started()

    (aside,) = bench.second.fences[0].set_aside
    assert aside.ranges == (run_of(0, 7),)
    assert bench.read_again == [(replace(run_of(0, 3), partition=1),)]
    assert bench.second.fences[-1].frontier == {("T1", 0): 7, ("T1", 1): 3}


def test_what_the_stage_had_not_taken_at_the_change_is_given_to_it(bench: Bench) -> None:
    bench.later = {"second": LaterSink(since=2, bases={("T1", 0): 20})}
    bench.started()
    assert bench.second.fences[0].set_aside[0].ranges == (run_of(0, 7),)


def test_it_has_no_part_in_a_topic_that_is_gone(bench: Bench) -> None:
    """Created anew between the change and the new driver."""
    bench.topic_id, bench.retired = "T2", ("T1",)
    bench.started(reads="T2")
    (aside,) = bench.second.fences[0].set_aside
    assert (aside.reason, aside.ranges) == ("before_start", (run_of(0, 7),))
    assert {each.reason for each in bench.second.fences[-1].set_aside} == {
        "before_start",
        "topic_recreated",
    }


def test_it_begins_only_once(bench: Bench) -> None:
    bench.started()
    bench.started()
    assert len(bench.second.fences) == 1


def test_when_its_fence_is_lost_later_it_does_not_begin_again(bench: Bench) -> None:
    bench.started()
    bench.plan(2, 9)
    bench.stage().process(NO_FRAME, 2)
    bench.second.fences.clear()
    with pytest.raises(StageStopped, match="checkpoint_diverged"):
        bench.stage()


def test_in_a_stage_that_has_not_begun_it_is_like_any_other(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "checkpoint", generation=2)
    bench.later = {"second": LaterSink(since=2, bases={("T1", 0): 3})}
    assert bench.started() == {("T1", 0): 0}
    assert bench.second.fences == []


def test_it_begins_also_where_another_was_closed_meanwhile(bench: Bench) -> None:
    """The other was to be removed, before a driver had opened this one; and then it was kept."""
    closed(bench, generation=2)

    assert bench.started() == {}

    assert bench.second.end == 7
    assert bench.second.fences[0].set_aside[0].ranges == (run_of(0, 7),)


def test_it_begins_also_where_one_that_has_only_begun_was_closed(bench: Bench) -> None:
    begun = with_batch(replace(bench.first.fences[-1], generation=2, batches=0), sequence=0)
    bench.first.fences = [begun]
    bench.later["first"] = bench.later["second"]
    closed(bench, generation=2)

    bench.started()

    assert bench.second.end == 7


def closed(bench: Bench, *, generation: int) -> None:
    """The first sink, by the driver of a change that removes it."""
    ledger = Ledger(
        bench.first,
        stage="load",
        inputs=(StageInput(name="orders", topic=TOPIC, topic_id="T1", bases={0: 0}),),
        identity=replace(bench.claim(), generation=generation),
        emit=bench.commits.append,
        clock=bench,
    )
    ledger.read()
    ledger.close_for_good()
