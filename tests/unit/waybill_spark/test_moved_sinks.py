"""A sink whose topic was created anew: what nobody was told of is lost before anything is told."""

from pathlib import Path

import pytest

from unit.waybill_spark.bench import NO_FRAME, Bench, run_of
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Range


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """The first sink holds everything below 7, written by generation 1; then its topic went."""
    bench = Bench(tmp_path / "checkpoint")
    bench.run(0, 4)
    bench.run(1, 7)
    bench.generation, bench.first.moved = 2, 2
    return bench


def told(bench: Bench, sink: str) -> list[list[tuple[str, tuple[Range, ...]]]]:
    """What each report of a sink says that will never come."""
    return [
        [(aside.reason, aside.ranges) for aside in commit.set_aside]
        for commit in bench.commits
        if commit.sink == sink
    ]


def test_what_it_held_is_set_aside_before_anything_is_told_of_it(bench: Bench) -> None:
    bench.started()

    lost = [("sink_topic_recreated", (run_of(0, 7),))]
    assert told(bench, "first") == [lost, lost]
    assert told(bench, "second") == [[]]
    assert bench.first.end == 7


def test_it_is_said_once(bench: Bench) -> None:
    bench.started()
    fences = len(bench.first.fences)
    bench.generation = 3
    bench.started()
    assert len(bench.first.fences) == fences


def test_it_goes_on_in_the_new_topic(bench: Bench) -> None:
    assert bench.started() == {}
    bench.run(2, 9)
    assert bench.first.ranges[-1] == bench.second.ranges[-1] == (7, 9)


def test_what_was_set_aside_before_keeps_its_reason(bench: Bench) -> None:
    bench.log_start = 9  # retention has taken the rest
    bench.first.moved = 0
    stage = bench.stage()
    with pytest.raises(Exception, match="retention_passed"):
        stage.report_losses()
    bench.generation, bench.first.moved = 3, 3

    bench.started()

    assert told(bench, "first")[-1] == [
        ("retention_passed", (run_of(7, 9),)),
        ("sink_topic_recreated", (run_of(0, 7),)),
    ]


def test_a_sink_that_has_no_fence_yet_gets_its_first_before(tmp_path: Path) -> None:
    """Else it would stand beside one that went on, as if its fence were lost."""
    bench = Bench(tmp_path / "checkpoint")
    bench.second.failing = {0}
    bench.plan(0, 4)
    with pytest.raises(Retryable):
        bench.stage().process(NO_FRAME, 0)
    bench.generation, bench.first.moved = 2, 2

    bench.stage().report_losses()

    assert bench.started() == {("T1", 0): 4}
    assert bench.second.ranges == [(0, 4)]


def test_what_a_deleted_pipeline_held_there_is_lost_too(bench: Bench) -> None:
    (ledger, _) = bench.stage()._ledgers
    ledger.close_for_good()
    assert told(bench, "first") == [[("sink_topic_recreated", (run_of(0, 7),))]]
