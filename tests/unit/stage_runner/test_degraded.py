"""When a run is degraded, and when it hangs: by how long its batches have made no progress."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from builders import make_record
from unit.stage_runner.decisions import Decisions
from unit.stage_runner.fakes import UID, World, receive
from unit.stage_runner.fakes import running as runner_with_driver
from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.driver_news import StageActivity
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.run_words import DegradedCause
from waybill_shared.contract.words import Obstacle
from waybill_stage_runner.core.pipelines.actions import (
    DumpThreads,
    PipelineAction,
    SendHeartbeat,
    StartDriver,
    StopDriver,
)
from waybill_stage_runner.core.pipelines.degraded import CAUSES, DUMP_MS, STEP_MS
from waybill_stage_runner.core.pipelines.events import (
    DriverBlocked,
    DriverEnded,
    DriverPaused,
    DriverProgress,
)
from waybill_stage_runner.core.pipelines.states import MessageOrigin
from waybill_stage_runner.core.pipelines.time_limits import BY_DEFAULT

MINUTE = 60_000
USUAL = 2 * MINUTE  # so that ten times of it are more than the least
IDLE = StageActivity(stage="load")
STALL_MS = BY_DEFAULT.stall_ms
HUNG = StageActivity(stage="load", batch_ms=STALL_MS, quiet_ms=STALL_MS)


def report(*stages: StageActivity) -> DriverProgress:
    return DriverProgress(stages=stages)


def pass_time(decisions: Decisions, milliseconds: int) -> tuple[PipelineAction, ...]:
    """Let time pass as ticks count it. Return the actions of the last tick."""
    for _ in range(milliseconds // STEP_MS):
        decisions.after(STEP_MS)
    return decisions.actions


def causes(decisions: Decisions) -> list[tuple[str | None, str]]:
    return [(each.stage, each.cause) for each in decisions.state.degraded]


@pytest.mark.parametrize(
    ("of_stage", "cause"),
    [
        ({}, None),
        ({"quiet_ms": 10 * STALL_MS}, None),  # no batch runs
        ({"batch_ms": STALL_MS, "quiet_ms": STALL_MS - 1}, None),
        ({"batch_ms": STALL_MS, "quiet_ms": STALL_MS}, "no_progress"),
        ({"batch_ms": 9 * USUAL, "quiet_ms": 9 * USUAL, "usual_ms": USUAL}, None),
        ({"batch_ms": 10 * USUAL, "quiet_ms": 10 * USUAL, "usual_ms": USUAL}, "no_progress"),
        ({"batch_ms": 10 * USUAL, "quiet_ms": 1_000, "usual_ms": USUAL}, "batch_long"),
        ({"batch_ms": 10 * STALL_MS, "quiet_ms": 1_000}, None),  # nobody knows what is usual
        ({"batch_ms": STALL_MS, "quiet_ms": STALL_MS, "sink": "lake"}, "sink_waits"),
        ({"waiting_ms": MINUTE, "lag_grows": True}, "no_commit"),
        ({"waiting_ms": MINUTE - 1, "lag_grows": True}, None),
        ({"waiting_ms": MINUTE, "lag_grows": False}, None),
        ({"waiting_ms": MINUTE, "lag_grows": True, "usual_pause_ms": MINUTE}, None),
        ({"waiting_ms": 5 * MINUTE, "lag_grows": True, "usual_pause_ms": MINUTE}, "no_commit"),
    ],
)
def test_a_stage_is_degraded_for_the_first_cause_that_lasts(
    running: Decisions, of_stage: dict[str, int], cause: str | None
) -> None:
    running.on(report(replace(IDLE, **of_stage)))  # type: ignore[arg-type]
    running.after(0)
    assert causes(running) == ([("load", cause)] if cause else [])


def test_each_cause_of_a_stage_has_a_row_and_each_other_is_of_the_whole_run() -> None:
    assert set(DegradedCause) - set(CAUSES) == {"driver_silent", "retrying", "stage_failed"}


def test_it_is_reported_once_and_keeps_the_time_since_when(running: Decisions) -> None:
    running.on(report(HUNG))
    assert running.after(0) == (SendHeartbeat(),)
    since = running.state.degraded[0].since
    assert since == running.now - STALL_MS
    running.now += 2_000
    running.on(report(replace(HUNG, quiet_ms=STALL_MS + 2_001)))
    assert running.after(0) == ()
    assert running.state.degraded[0].since == since
    origin = MessageOrigin(at=running.now + 7, now=running.now)
    event = running.state.event("heartbeat", None, origin)
    (shown,) = event.conditions
    assert (shown.kind, shown.stage, shown.cause) == ("degraded", "load", "no_progress")
    assert shown.since == since + 7
    running.on(report(IDLE))
    assert running.after(0) == (SendHeartbeat(),)
    assert causes(running) == []


def test_a_batch_goes_on_doing_nothing_while_no_report_comes(running: Decisions) -> None:
    running.on(report(replace(HUNG, quiet_ms=STALL_MS - 10)))
    assert running.after(9) == ()
    running.after(1)
    assert causes(running) == [("load", "no_progress")]


def hang(decisions: Decisions) -> None:
    decisions.on(report(replace(HUNG, quiet_ms=2 * STALL_MS)))


def test_a_run_that_hangs_is_stopped_after_its_dump_and_started_again(running: Decisions) -> None:
    hang(running)
    assert running.after(0) == (SendHeartbeat(), DumpThreads())
    assert running.after(DUMP_MS - 1) == ()
    assert running.after(1) == (StopDriver(mode=StopMode.FORCE),)
    assert running.after(1) == ()
    running.on(DriverEnded(exit_code=-9))
    state = running.state
    assert (state.phase, state.attempt, state.crashes) == (Phase.RECOVERING, 1, 1)
    assert state.reason == "stage load: a batch has done nothing for 600 s"
    assert StartDriver() in running.after(500)
    assert (running.state.dumped_at, running.state.progress) == (None, ())


def test_the_driver_is_asked_for_the_dump_before_it_is_stopped(world: World) -> None:
    runner = runner_with_driver(world)
    receive(runner, 1, report(replace(HUNG, quiet_ms=2 * STALL_MS)))
    runner.tick()
    runner.act()
    assert (world.dumped, world.stopped) == ([UID], [])
    world.waited += DUMP_MS
    runner.tick()
    runner.act()
    assert (world.dumped, world.stopped) == ([UID], [UID])


@pytest.mark.parametrize(
    "stages",
    [
        [replace(HUNG, quiet_ms=2 * STALL_MS - 1)],
        [replace(HUNG, quiet_ms=9 * STALL_MS, sink="lake")],
        [StageActivity(stage="load", batch_ms=90 * STALL_MS, quiet_ms=1_000, usual_ms=1)],
        [StageActivity(stage="load", waiting_ms=90 * STALL_MS, lag_grows=True)],
    ],
)
def test_what_works_or_waits_for_a_sink_is_not_stopped(
    running: Decisions, stages: Iterable[StageActivity]
) -> None:
    running.on(report(*stages))
    assert DumpThreads() not in running.after(0)


def test_a_run_without_an_executor_is_not_stopped(running: Decisions) -> None:
    running.on(DriverBlocked(blocked_by=Obstacle.NO_SPARK_EXECUTOR))
    hang(running)
    assert DumpThreads() not in running.after(0)
    assert causes(running) == []


@pytest.mark.parametrize("events", [[], [report(IDLE)]])
def test_a_driver_that_is_silent_is_degraded_and_then_started_again(
    running: Decisions, events: Iterable[DriverProgress]
) -> None:
    """Also one that has reported nothing since it runs."""
    for event in events:
        running.on(event)
    pass_time(running, STALL_MS)
    assert causes(running) == [(None, "driver_silent")]
    assert pass_time(running, STALL_MS) == (DumpThreads(),)
    running.after(DUMP_MS)
    running.on(DriverEnded(exit_code=-9))
    assert running.state.reason == "the driver has reported nothing for 600 s"


def test_a_runner_that_stood_still_does_not_think_that_its_drivers_were_silent(
    running: Decisions,
) -> None:
    running.on(report(IDLE))
    assert running.after(9 * STALL_MS) == ()
    running.on(report(IDLE))
    assert running.state.silent_ms == 0


def test_a_paused_run_is_watched_for_silence_alone(running: Decisions) -> None:
    record = replace(make_record(), desired="paused")
    running.want(record, "p1", "pause")
    running.on(DriverPaused(order=1))
    hang(running)
    running.after(0)
    assert (running.state.phase, causes(running)) == (Phase.PAUSED, [])
    assert DumpThreads() in pass_time(running, 2 * STALL_MS)


def test_failures_in_a_row_are_a_condition_until_it_is_well_again(running: Decisions) -> None:
    for attempt in range(1, 4):
        running.on(DriverEnded(exit_code=1))
        running.after(0)
        assert causes(running) == ([(None, "retrying")] if attempt == 3 else [])
        since = running.state.degraded
        running.after(10_000)
    assert running.state.phase is Phase.STARTING
    assert running.state.degraded == since
