"""A sink that came later begins where the others stand: they do not go before it has begun."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders import make_sink, make_stage
from unit.waybill_spark.bench import TOPIC, Bench, ListSink
from waybill_shared.contract.errors import UserError
from waybill_spark.driver.closing import find_staying, refuse_before_start
from waybill_spark.tracking.fencing import LaterSink, StageInput
from waybill_spark.tracking.ledger import Ledger


@pytest.fixture
def bench(later_bench: Bench) -> Bench:
    return later_bench


def test_what_alone_tells_where_another_begins_does_not_go(bench: Bench) -> None:
    before = list(bench.first.fences)
    with pytest.raises(UserError) as refused:
        remove(bench, bench.first)
    (problem,) = refused.value.problems
    assert "stage load would lose first, and second has not started" in problem.message
    assert "start the pipeline" in problem.hint
    assert (bench.first.fences, bench.second.fences) == (before, []), "all is as it was"


def test_it_goes_when_the_other_has_begun(bench: Bench) -> None:
    """As the hint says: a start is enough, also when there is nothing to write."""
    bench.started()

    remove(bench, bench.first)

    bench.sinks = ("second",)
    bench.started()
    bench.run(2, 9)
    assert bench.second.ranges == [(7, 9)]


def test_it_goes_beside_one_that_came_with_the_stage(tmp_path: Path) -> None:
    """That one tells the others, whatever it holds."""
    bench = Bench(tmp_path / "checkpoint")
    bench.run(0, 4)
    third = ListSink("third", since=2)
    bench.generation, bench.later = 2, {"third": LaterSink(since=2, bases={("T1", 0): 4})}
    refuse_before_start([ledger(bench, bench.first)], ledgers(bench, bench.second, third))


def test_all_that_have_begun_do_not_go_at_once(bench: Bench) -> None:
    bench.started()
    third = ListSink("third", since=3)
    bench.generation, bench.later["third"] = 3, LaterSink(since=3, bases={("T1", 0): 7})
    with pytest.raises(UserError, match="would lose first, second, and third has not started"):
        refuse_before_start(ledgers(bench, bench.first, bench.second), [ledger(bench, third)])


def test_in_a_stage_that_has_not_begun_any_may_go(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "checkpoint", generation=2)
    bench.later = {"second": LaterSink(since=2, bases={("T1", 0): 3})}
    remove(bench, bench.first)


def test_where_a_fence_was_lost_a_start_would_not_help(bench: Bench) -> None:
    """It begins no other way, so nothing is gained by keeping the first."""
    bench.started()
    bench.run(2, 9)
    bench.second.fences.clear()
    remove(bench, bench.first)


def test_a_stage_that_goes_leaves_no_sink() -> None:
    lake, out = make_sink("lake"), make_sink("out")
    whole, other = make_stage("a", sinks=(lake, out)), make_stage("b")
    assert find_staying(whole, (other, whole)).sinks == ()
    assert find_staying(replace(whole, sinks=(lake,)), (other, whole)) == replace(
        whole, sinks=(out,)
    )


def remove(bench: Bench, sink: ListSink) -> None:
    both = (bench.first, bench.second)
    rest = [other for other in both if other is not sink]
    refuse_before_start([ledger(bench, sink)], ledgers(bench, *rest))


def ledgers(bench: Bench, *sinks: ListSink) -> list[Ledger]:
    return [ledger(bench, sink) for sink in sinks]


def ledger(bench: Bench, sink: ListSink) -> Ledger:
    """As the driver has it that closes what goes."""
    return Ledger(
        sink,
        stage="load",
        inputs=(StageInput(name="orders", topic=TOPIC, topic_id="T1", bases={0: 0}),),
        later=bench.later.get(sink.name),
        identity=bench.claim(),
        emit=bench.commits.append,
        clock=bench,
    )
