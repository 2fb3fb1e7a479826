"""What the runner does with a driver, case by case."""

from dataclasses import replace

import pytest

from builders import make_record
from message_builders import make_command, make_problem
from unit.stage_runner.decisions import Decisions
from waybill_shared.contract.commands import STOP_MODES, Stop, StopMode
from waybill_shared.contract.lifecycle import PHASES, Phase
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.words import OperationState
from waybill_stage_runner.core.pipelines.actions import (
    Answer,
    PipelineAction,
    ReportPhase,
    StartDriver,
    StopDriver,
    WriteRecord,
)
from waybill_stage_runner.core.pipelines.attempts import CRASHES_MAX
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFailed,
    DriverRuns,
    RecordRequested,
)
from waybill_stage_runner.core.pipelines.states import ITSELF, MessageOrigin
from waybill_stage_runner.core.pipelines.supervision import HEALTHY_MS

RECORD = make_record()
STOPPED = replace(RECORD, desired="stopped")
CHANGED = replace(RECORD, generation=2)
USER_ERROR = LifecycleError(
    domain="user", message="the SQL is wrong", hint="mend it", stage="enrich", retryable=False
)
EXTERNAL_ERROR = replace(USER_ERROR, domain="external", message="kafka is away", retryable=True)
CRASH = DriverEnded(exit_code=137)
STARTING_MS = PHASES[Phase.STARTING].limit_ms or 0


def test_wanted_pipeline_gets_a_driver() -> None:
    pipeline = Decisions(RECORD)
    assert pipeline.want(RECORD, "c1") == (
        WriteRecord(),
        ReportPhase(phase_from=Phase.CREATED),
        StartDriver(),
    )
    assert pipeline.state.phase is Phase.STARTING


def test_phases_toward_what_a_command_wants_are_of_its_sender_and_no_others(
    starting: Decisions,
) -> None:
    assert starting.state.actor == "ada"
    starting.on(CRASH)
    assert (starting.state.phase, starting.state.actor) == (Phase.RECOVERING, ITSELF)
    starting.after(1_000)
    assert (starting.state.phase, starting.state.actor) == (Phase.STARTING, "ada")
    starting.on(DriverRuns())
    assert (starting.state.phase, starting.state.actor) == (Phase.RUNNING, "ada")
    starting.on(CRASH)
    starting.after(1_000)
    starting.on(DriverRuns())
    assert (starting.state.phase, starting.state.actor) == (Phase.RUNNING, ITSELF)
    starting.want(STOPPED, "c2")
    starting.on(DriverEnded(exit_code=0))
    assert (starting.state.phase, starting.state.actor) == (Phase.STOPPED, "ada")


def test_recorded_pipeline_is_started_without_a_command() -> None:
    pipeline = Decisions(RECORD)
    assert StartDriver() in pipeline.want(RECORD)


def test_pipeline_that_is_to_be_stopped_gets_none() -> None:
    pipeline = Decisions(STOPPED)
    assert pipeline.want(STOPPED, "c1")[1] == ReportPhase(phase_from=Phase.CREATED)
    assert pipeline.answers() == [("c1", "done")]
    assert pipeline.state.phase is Phase.STOPPED


def test_command_is_answered_when_the_driver_runs(starting: Decisions) -> None:
    assert starting.on(DriverRuns())[0] == ReportPhase(phase_from=Phase.STARTING)
    assert starting.answers() == [("c1", "done")]
    assert starting.state.phase is Phase.RUNNING


def test_start_of_a_running_pipeline_is_done_at_once(running: Decisions) -> None:
    running.want(RECORD, "c2")
    assert running.actions == (
        WriteRecord(),
        Answer(command=make_command(id="c2"), state=OperationState.DONE),
    )


def test_stop_lets_the_driver_end_first(running: Decisions) -> None:
    assert running.want(STOPPED, "c2") == (
        WriteRecord(),
        StopDriver(),
        ReportPhase(phase_from=Phase.RUNNING),
    )
    ended = running.on(DriverEnded(exit_code=0))
    assert ended[0] == ReportPhase(phase_from=Phase.CHECKPOINT_STOPPING)
    assert running.answers() == [("c2", "done")]
    assert running.state.phase is Phase.STOPPED


def test_stop_may_come_while_it_starts(starting: Decisions) -> None:
    assert StopDriver() in starting.want(STOPPED, "c2")
    assert starting.answers() == [("c1", "failed")]
    assert starting.on(DriverRuns()) == ()
    starting.on(CRASH)
    assert starting.answers() == [("c2", "done")]
    assert starting.state.phase is Phase.STOPPED


def test_second_stop_does_not_stop_twice(running: Decisions) -> None:
    running.want(STOPPED, "c2")
    running.want(STOPPED, "c3")
    assert StopDriver() not in running.actions
    assert running.answers() == [("c2", "failed")]


def test_start_while_it_stops_starts_again_afterwards(running: Decisions) -> None:
    running.want(STOPPED, "c2")
    assert StartDriver() not in running.want(RECORD, "c3")
    assert running.on(DriverEnded(exit_code=0))[-1] == StartDriver()
    running.on(DriverRuns())
    assert running.answers() == [("c3", "done")]


def test_changed_definition_restarts_the_driver(running: Decisions) -> None:
    assert running.want(CHANGED, "c2") == (
        WriteRecord(),
        StopDriver(),
        ReportPhase(phase_from=Phase.RUNNING),
    )
    assert running.on(DriverEnded(exit_code=0)) == (
        ReportPhase(phase_from=Phase.RESTARTING),
        StartDriver(),
    )
    assert running.state.record.generation == 2
    running.on(DriverRuns())
    assert running.answers() == [("c2", "done")]


def test_changed_definition_that_begins_no_run_ends_the_present_one(running: Decisions) -> None:
    """As an `apply` that brings a schedule to a pipeline that is about to stop."""
    running.want(replace(CHANGED, finished=True), "c2", "apply")
    ended = running.on(DriverEnded(exit_code=0))
    assert ended[0] == ReportPhase(phase_from=Phase.CHECKPOINT_STOPPING)
    assert running.state.phase is Phase.FINISHED


def test_change_while_it_stops_does_not_stop_it_twice(running: Decisions) -> None:
    """A second SIGTERM would end the driver in the middle of its batch."""
    running.want(STOPPED, "c2")
    assert StopDriver() not in running.want(CHANGED, "c3")
    assert running.on(DriverEnded(exit_code=0))[-1] == StartDriver()


def test_restart_says_so_and_begins_the_count_of_attempts_anew(running: Decisions) -> None:
    running.on(CRASH)
    running.after(500)
    running.want(CHANGED, "c2", "restart")
    assert (running.state.phase, running.state.reason) == (Phase.RESTARTING, "restarted")
    running.on(DriverEnded(exit_code=0))
    assert (running.state.phase, running.state.reason) == (Phase.STARTING, "restarted")
    assert running.state.attempt == 0
    running.on(DriverRuns())
    assert running.answers() == [("c2", "done")]


def test_restart_starts_what_does_not_run(starting: Decisions) -> None:
    starting.on(DriverFailed(problems=(), error=USER_ERROR), CRASH)
    assert starting.want(CHANGED, "c2", "restart")[-1] == StartDriver()


def test_user_error_fails_the_pipeline_with_its_problems(starting: Decisions) -> None:
    problem = make_problem()
    starting.on(DriverFailed(problems=(problem,), error=USER_ERROR))
    starting.on(DriverEnded(exit_code=1))
    assert starting.actions[0] == ReportPhase(phase_from=Phase.STARTING)
    answer = starting.actions[1]
    assert isinstance(answer, Answer)
    assert (answer.state, answer.errors) == ("failed", (problem,))
    assert starting.state.phase is Phase.FAILED
    assert starting.state.error == USER_ERROR


def test_user_error_without_problems_answers_with_its_message(starting: Decisions) -> None:
    starting.on(DriverFailed(problems=(), error=USER_ERROR), DriverEnded(exit_code=1))
    answer = starting.actions[1]
    assert isinstance(answer, Answer)
    assert answer.errors[0].message == "the SQL is wrong"
    assert answer.errors[0].hint == "mend it"


def test_failed_pipeline_can_be_started_and_stopped(starting: Decisions) -> None:
    starting.on(DriverFailed(problems=(), error=USER_ERROR), DriverEnded(exit_code=1))
    failed = starting.state
    starting.want(STOPPED, "c2")
    assert starting.answers() == [("c2", "done")]
    starting.state = failed
    assert StartDriver() in starting.want(RECORD, "c3")


def test_crash_of_the_next_driver_is_not_blamed_on_the_last_error(starting: Decisions) -> None:
    starting.on(DriverFailed(problems=(), error=USER_ERROR), DriverEnded(exit_code=1))
    starting.want(RECORD, "c2")
    starting.on(CRASH)
    assert starting.state.phase is Phase.RECOVERING
    assert starting.state.error is not None
    assert "exit code 137" in starting.state.error.message


def test_crash_is_retried_with_growing_waits(running: Decisions) -> None:
    waits = []
    for _ in range(CRASHES_MAX):
        running.on(CRASH)
        assert running.state.phase is Phase.RECOVERING
        assert running.state.next_at is not None
        wait = running.state.next_at - running.now
        waits.append(wait)
        assert running.after(wait - 1) == ()
        assert running.after(1) == (ReportPhase(phase_from=Phase.RECOVERING), StartDriver())
    for wait, full in zip(waits, [500, 1_000, 2_000, 4_000], strict=False):
        assert 3 * full // 4 <= wait <= full
    assert 45_000 <= min(waits[7:]) <= max(waits) <= 60_000
    running.on(CRASH)
    assert running.state.phase is Phase.FAILED


def test_the_outside_world_may_be_away_as_long_as_it_likes(running: Decisions) -> None:
    """After an outage of a day everything goes on by itself."""
    for _ in range(10 * CRASHES_MAX):
        running.on(DriverFailed(problems=(), error=EXTERNAL_ERROR), CRASH)
        assert running.after(60_000)[-1] == StartDriver()
    assert running.state.next_at is None
    running.on(CRASH)
    assert running.state.phase is Phase.RECOVERING, "it counts as the first of its kind"


def test_command_waits_through_retries(starting: Decisions) -> None:
    starting.on(DriverFailed(problems=(), error=EXTERNAL_ERROR), CRASH)
    assert starting.answers() == []
    assert starting.state.reason == "kafka is away"
    starting.after(500)
    starting.on(DriverRuns())
    assert starting.answers() == [("c1", "done")]
    assert starting.state.error is None


def test_two_healthy_minutes_end_the_count_of_attempts(running: Decisions) -> None:
    running.on(CRASH)
    running.after(500)
    running.on(DriverRuns())
    running.after(HEALTHY_MS - 1)
    assert running.state.attempt == 1
    running.after(1)
    assert running.state.attempt == 0


def test_start_begins_the_count_anew(running: Decisions) -> None:
    running.on(CRASH)
    assert StartDriver() in running.want(RECORD, "c2")
    assert running.state.attempt == 0


def test_recovering_pipeline_can_be_stopped(running: Decisions) -> None:
    running.on(CRASH)
    running.want(STOPPED, "c2")
    assert running.answers() == [("c2", "done")]
    assert running.after(120_000) == ()
    assert running.state.phase is Phase.STOPPED


def test_driver_that_does_not_start_is_killed_and_retried(starting: Decisions) -> None:
    assert starting.after(STARTING_MS - 1) == ()
    assert starting.after(1) == (StopDriver(mode=StopMode.FORCE),)
    assert starting.after(1) == ()
    starting.on(CRASH)
    assert starting.state.phase is Phase.RECOVERING


@pytest.mark.parametrize("mode", StopMode)
def test_a_driver_stops_as_the_command_says(running: Decisions, mode: StopMode) -> None:
    assert StopDriver(mode=mode) in stop(running, "c2", mode)


def test_a_stop_that_takes_too_long_becomes_a_stronger_one_and_says_when(
    running: Decisions,
) -> None:
    limit = STOP_MODES[StopMode.CHECKPOINT].limit_ms
    running.want(STOPPED, "c2")
    assert escalates_at(running) == running.now + limit
    assert running.after(limit - 1) == ()
    assert running.after(1) == (
        StopDriver(mode=StopMode.FORCE),
        ReportPhase(phase_from=Phase.CHECKPOINT_STOPPING),
    )
    assert running.state.phase is Phase.STOPPING
    assert running.state.reason == "force: it did not stop in 120 s"
    assert escalates_at(running) is None
    running.on(DriverEnded(exit_code=-9))
    assert (running.state.phase, running.answers()) == (Phase.STOPPED, [("c2", "done")])


def test_a_stronger_stop_overtakes_and_a_weaker_one_changes_nothing(running: Decisions) -> None:
    stop(running, "c2", StopMode.CHECKPOINT)
    assert StopDriver(mode=StopMode.FORCE) in stop(running, "c3", StopMode.FORCE)
    actions = stop(running, "c4", StopMode.CHECKPOINT)
    assert not any(isinstance(action, StopDriver) for action in actions)
    assert running.state.stop_mode is StopMode.FORCE


def stop(pipeline: Decisions, command: str, mode: StopMode) -> tuple[PipelineAction, ...]:
    wanted = replace(make_command("stop", id=command), body=Stop(mode=mode))
    return pipeline.on(RecordRequested(record=STOPPED, command=wanted))


def escalates_at(pipeline: Decisions) -> int | None:
    origin = MessageOrigin(at=pipeline.now, now=pipeline.now)
    return pipeline.state.event("transition", None, origin).escalates_at


def test_quiet_pipelines_do_nothing_on_a_tick(running: Decisions) -> None:
    assert running.after(10**9) == ()
