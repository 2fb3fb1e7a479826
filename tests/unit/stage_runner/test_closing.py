"""A pipeline that is deleted gets one more driver, which reports what its sinks hold."""

from dataclasses import replace

import pytest

from builders import make_record
from message_builders import make_command
from unit.stage_runner.decisions import Decisions
from waybill_shared.contract.commands import STOP_MODES, StopMode
from waybill_shared.contract.events import Command
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.words import OperationState
from waybill_stage_runner.core.pipelines.actions import (
    Answer,
    ReportPhase,
    StartDriver,
    StopDriver,
    WriteLastDefinition,
    WriteRecord,
)
from waybill_stage_runner.core.pipelines.attempts import CRASHES_MAX
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFailed,
    DriverRuns,
    Event,
    RecordRequested,
)
from waybill_stage_runner.core.pipelines.time_limits import BY_DEFAULT

RECORD = make_record()
DELETED = replace(RECORD, desired="deleted")
DELETION = make_command("delete", id="d")
WELL = DriverEnded(exit_code=0)
CRASH = DriverEnded(exit_code=137)
ERROR = LifecycleError(
    domain="external", message="kafka is away", hint="", stage=None, retryable=True
)
CLOSE = StartDriver(closing=DELETED.stages)


class Deletion(Decisions):
    def __init__(self, *events: Event) -> None:
        super().__init__(RECORD, *events)


def wanted(command: Command | None = DELETION) -> RecordRequested:
    return RecordRequested(record=DELETED, command=command, written=command is None)


START = RecordRequested(record=RECORD, command=None, written=True)
STOP = RecordRequested(record=replace(RECORD, desired="stopped"), command=None, written=True)
FAILURE = DriverFailed(problems=(), error=replace(ERROR, retryable=False))


@pytest.fixture
def closing() -> Deletion:
    return Deletion(START, DriverRuns(), wanted(), WELL)


@pytest.mark.parametrize("end", [WELL, CRASH])
def test_running_pipeline_is_closed_when_its_driver_has_ended(end: DriverEnded) -> None:
    pipeline = Deletion(START, DriverRuns(), wanted())
    assert pipeline.actions == (WriteRecord(), StopDriver(), ReportPhase(phase_from=Phase.RUNNING))
    assert pipeline.on(end) == (ReportPhase(phase_from=Phase.CHECKPOINT_STOPPING), CLOSE)
    assert pipeline.state.phase is Phase.STOPPING


@pytest.mark.parametrize(
    "before",
    [(), (START, DriverRuns(), STOP, WELL), (START, FAILURE, CRASH), (START, CRASH)],
    ids=["created", "stopped", "failed", "recovering"],
)
def test_pipeline_without_a_driver_is_closed_at_once(before: tuple[Event, ...]) -> None:
    pipeline = Deletion(*before)
    phase = pipeline.state.phase
    assert pipeline.on(wanted()) == (WriteRecord(), ReportPhase(phase_from=phase), CLOSE)


def test_deletion_is_answered_after_the_last_definition(closing: Deletion) -> None:
    assert closing.on(WELL) == (
        ReportPhase(phase_from=Phase.STOPPING),
        WriteLastDefinition(error=None),
        Answer(command=DELETION, state=OperationState.DONE),
    )
    assert closing.state.record.closed
    assert closing.after(10**9) == ()


def test_closing_driver_that_failed_is_tried_again(closing: Deletion) -> None:
    assert closing.on(DriverFailed(problems=(), error=ERROR), DriverEnded(exit_code=1)) == ()
    assert closing.state.error is not None, "heartbeats tell it"
    assert closing.after(374) == ()
    assert closing.after(126) == (CLOSE,)
    closing.on(CRASH)
    assert closing.after(749) == ()
    assert closing.after(251) == (CLOSE,)
    assert closing.on(WELL)[1] == WriteLastDefinition(error=None)


def test_deletion_is_finished_even_if_closing_always_fails(closing: Deletion) -> None:
    for _ in range(CRASHES_MAX):
        closing.on(CRASH)
        assert closing.after(60_000) == (CLOSE,)
    closing.on(CRASH)
    assert isinstance(closing.actions[1], WriteLastDefinition)
    assert Answer(command=DELETION, state=OperationState.DONE) in closing.actions
    assert closing.state.phase is Phase.STOPPED


def test_a_deletion_waits_for_the_outside_world(closing: Deletion) -> None:
    """What was written and never told would end lost, and its rows are there."""
    for _ in range(3 * CRASHES_MAX):
        closing.on(DriverFailed(problems=(), error=ERROR), CRASH)
        assert closing.after(60_000) == (CLOSE,)


def test_attempts_of_the_pipeline_are_not_those_of_its_closing() -> None:
    pipeline = Deletion(START)
    for _ in range(CRASHES_MAX):
        pipeline.on(CRASH)
        pipeline.after(60_000)
    pipeline.on(CRASH, wanted(), CRASH)
    assert pipeline.after(500) == (CLOSE,)


def test_error_that_stays_is_not_tried_again(closing: Deletion) -> None:
    closing.on(FAILURE, CRASH)
    assert closing.actions[1] == WriteLastDefinition(error=FAILURE.error)


def test_closing_driver_that_hangs_is_killed_and_tried_again(closing: Deletion) -> None:
    assert closing.after(STOP_MODES[StopMode.CHECKPOINT].limit_ms) == ()
    assert closing.after(BY_DEFAULT.close_ms - STOP_MODES[StopMode.CHECKPOINT].limit_ms) == (
        StopDriver(mode=StopMode.FORCE),
    )
    assert closing.after(1) == ()
    closing.on(CRASH)
    assert closing.after(500) == (CLOSE,)
    assert closing.after(BY_DEFAULT.close_ms - 1) == (), "each has its own time"


def test_recorded_deletion_is_closed_at_the_next_start() -> None:
    assert Deletion(wanted(None)).actions[-1] == CLOSE


def test_second_deletion_waits_for_the_same_closing(closing: Deletion) -> None:
    again = make_command("delete", id="d2")
    closing.on(wanted(again))
    assert closing.actions[1:] == (WriteRecord(),)
    assert isinstance(closing.actions[0], Answer)
    assert closing.on(WELL)[-1] == Answer(command=again, state=OperationState.DONE)


def test_deletion_of_what_is_closed_is_done(closing: Deletion) -> None:
    closing.on(WELL)
    again = make_command("delete", id="d2")
    closing.on(RecordRequested(record=closing.state.record, command=again, written=True))
    assert closing.actions == (Answer(command=again, state=OperationState.DONE),)


def test_what_a_closing_driver_says_of_running_means_nothing(closing: Deletion) -> None:
    assert closing.on(DriverRuns()) == ()
    assert closing.state.phase is Phase.STOPPING
