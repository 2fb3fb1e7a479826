"""What can never be processed is set aside and said, and the frontier passes it."""

from pathlib import Path

import pytest

from unit.waybill_spark.bench import NO_FRAME, Bench, run_of
from waybill_shared.contract.events import Range, SetAside
from waybill_shared.contract.vectors import ENDLESS
from waybill_spark.tracking.losses import union
from waybill_spark.tracking.stopping import StageStopped


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Both sinks hold everything below 4."""
    bench = Bench(tmp_path)
    bench.run(0, 4)
    return bench


def aside(reason: str, *ranges: Range) -> SetAside:
    return SetAside(reason=reason, ranges=ranges)


def test_a_topic_that_was_created_anew_is_closed_in_every_sink_before_the_stage_stops(
    bench: Bench,
) -> None:
    bench.topic_id = "T2"

    with pytest.raises(StageStopped, match=r"topic_recreated: .* now it is T2") as stopped:
        bench.stage().report_losses()

    lost = aside("topic_recreated", run_of(4, ENDLESS))
    assert [fence.set_aside for fence in (bench.first.fences[-1], bench.second.fences[-1])] == [
        (lost,),
        (lost,),
    ]
    assert [commit.set_aside for commit in bench.commits[:2]] == [(lost,), (lost,)]
    assert bench.first.end == ENDLESS
    assert bench.first.rows == 2
    assert "--from earliest" in stopped.value.hint
    assert not stopped.value.retryable


def test_a_topic_that_is_gone_is_closed_too(bench: Bench) -> None:
    bench.topic_id = None
    with pytest.raises(StageStopped, match="topic_deleted"):
        bench.stage().report_losses()
    assert bench.commits[0].set_aside == (aside("topic_deleted", run_of(4, ENDLESS)),)


def test_a_topic_that_was_never_read_is_closed_all_the_same(tmp_path: Path) -> None:
    bench = Bench(tmp_path, topic_id="T2")
    with pytest.raises(StageStopped):
        bench.stage().report_losses()
    assert bench.first.end == bench.second.end == ENDLESS


def test_what_retention_removed_before_it_was_read_is_set_aside_and_the_next_start_goes_on(
    bench: Bench,
) -> None:
    bench.log_start = 9

    with pytest.raises(StageStopped, match=r"retention_passed: .*orders.in\[0\] 4 to 8"):
        bench.stage().report_losses()

    assert bench.commits[0].set_aside == (aside("retention_passed", run_of(4, 9)),)
    assert bench.started() == {("T1", 0): 9}


def test_retention_behind_the_reader_loses_nothing(bench: Bench) -> None:
    bench.log_start = 4
    bench.stage().report_losses()
    assert len(bench.first.fences) == 1


def test_what_is_set_aside_once_is_not_set_aside_again(bench: Bench) -> None:
    bench.topic_id = "T2"
    for _ in range(2):
        with pytest.raises(StageStopped):
            bench.stage().report_losses()
    assert len(bench.first.fences) == 2


def test_after_a_restart_on_the_new_topic_the_old_one_is_closed_and_the_stage_goes_on(
    bench: Bench,
) -> None:
    """The driver may have been killed before it could close it."""
    bench.topic_id, bench.retired = "T2", ("T1",)

    starts = bench.started(reads="T2")

    assert starts == {("T2", 0): 0}
    assert bench.commits[-1].set_aside == (aside("topic_recreated", run_of(4, ENDLESS)),)


def test_a_sink_that_lags_loses_what_it_lacks_and_the_other_does_not(bench: Bench) -> None:
    bench.second.failing = {1}
    bench.plan(1, 7)
    with pytest.raises(Exception, match="away"):
        bench.stage().process(NO_FRAME, 1)
    bench.log_start = 7

    with pytest.raises(StageStopped, match="4 to 6"):
        bench.stage().report_losses()

    assert bench.first.fences[-1].set_aside == ()
    assert bench.second.fences[-1].set_aside == (aside("retention_passed", run_of(4, 7)),)
    assert bench.sure_above == [{0: 4}], "what lags most loses first"


def test_an_idle_stage_sees_it_too_and_a_busy_one_is_left_alone(bench: Bench) -> None:
    stage = bench.stage()
    stage.watch()
    bench.topic_id = "T2"
    with pytest.raises(StageStopped, match="topic_recreated"):
        stage.watch()


def test_ranges_that_touch_become_one() -> None:
    before = (aside("retention_passed", run_of(4, 9), run_of(0, 2)),)
    more = (
        aside("retention_passed", run_of(9, 12), run_of(20, 21), run_of(1, 3, partition=1)),
        aside("topic_recreated", run_of(30, ENDLESS)),
    )
    assert union(before, more) == (
        aside(
            "retention_passed",
            run_of(0, 2),
            run_of(4, 12),
            run_of(20, 21),
            run_of(1, 3, partition=1),
        ),
        aside("topic_recreated", run_of(30, ENDLESS)),
    )
