"""What a change removes is closed before the change is said."""

from dataclasses import replace

import pytest

from builders import make_record, make_sink, make_stage
from message_builders import make_command
from unit.stage_runner.decisions import Decisions
from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.lifecycle import Phase
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
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFailed,
    DriverRuns,
    Event,
    RecordRequested,
)
from waybill_stage_runner.core.pipelines.removal import sinks_to_remove
from waybill_stage_runner.core.pipelines.stopping import NOT_REACHED
from waybill_stage_runner.core.pipelines.time_limits import BY_DEFAULT

LAKE, OUT = make_sink("lake"), make_sink("out")
BEFORE = make_record(stages=(make_stage("a", sinks=(LAKE, OUT)), make_stage("b")))
AFTER = make_record(generation=2, stages=(make_stage("a", sinks=(LAKE,)),))
GOES = replace(BEFORE, stages=(make_stage("a", sinks=(OUT,)), make_stage("b")))
CHANGE = make_command("apply", id="change")
WELL, CRASH = DriverEnded(exit_code=0), DriverEnded(exit_code=137)
RAN = replace(BEFORE, run=1)
CLOSE = StartDriver(closing=GOES.stages)
ERROR = LifecycleError(
    domain="user", message="the table is not ours", hint="grant it", stage=None, retryable=False
)


class Pipeline(Decisions):
    def __init__(self, *events: Event) -> None:
        super().__init__(
            BEFORE, RecordRequested(record=BEFORE, command=None, written=True), *events
        )

    def change(self, record: PipelineRecord, name: str = "later") -> tuple[PipelineAction, ...]:
        return self.want(record, name, "apply")


@pytest.fixture
def closing() -> Pipeline:
    return Pipeline(DriverRuns(), RecordRequested(record=AFTER, command=CHANGE), WELL)


def test_what_goes_are_the_sinks_that_are_there_no_more() -> None:
    assert sinks_to_remove(BEFORE, AFTER) == GOES
    assert sinks_to_remove(AFTER, BEFORE) is None
    assert sinks_to_remove(BEFORE, replace(BEFORE, desired="deleted")) is None


def test_a_sink_that_came_back_under_its_name_is_another_one() -> None:
    again = replace(LAKE, since=3)
    before = make_record(stages=(make_stage(sinks=(LAKE, OUT)),))
    after = make_record(stages=(make_stage(sinks=(again, OUT)),))
    assert sinks_to_remove(before, after) == make_record(stages=(make_stage(sinks=(LAKE,)),))


def test_the_change_is_said_when_what_goes_is_closed() -> None:
    pipeline = Pipeline(DriverRuns())
    assert pipeline.on(RecordRequested(record=AFTER, command=CHANGE)) == (
        StopDriver(),
        ReportPhase(phase_from=Phase.RUNNING),
    )
    restarting = ReportPhase(phase_from=Phase.RESTARTING)
    assert pipeline.on(CRASH) == (restarting, CLOSE), (
        "a killed driver may not have reported a batch"
    )
    assert pipeline.state.record == RAN
    assert pipeline.on(WELL) == (
        WriteRecord(),
        ReportPhase(phase_from=Phase.STOPPING),
        StartDriver(),
    )
    assert pipeline.state.record == replace(AFTER, run=2)
    warning = f"{NOT_REACHED[StopMode.CHECKPOINT]}: the driver ended with exit code 137"
    assert pipeline.on(DriverRuns())[-1] == Answer(
        command=CHANGE, state=OperationState.DONE, warnings=(warning,)
    )


def test_a_change_that_comes_while_it_stops_restarts_it_before_it_is_in_force() -> None:
    pipeline = Pipeline(DriverRuns())
    pipeline.want(replace(BEFORE, desired="stopped"), "stop", "stop")
    pipeline.change(AFTER)
    assert pipeline.state.record.desired == "stopped"
    assert pipeline.on(WELL) == (ReportPhase(phase_from=Phase.RESTARTING), CLOSE)


def test_a_stopped_pipeline_is_closed_too_and_stays_stopped() -> None:
    stopped = replace(BEFORE, desired="stopped")
    pipeline = Pipeline(RecordRequested(record=stopped, command=None, written=True), WELL)
    assert pipeline.change(replace(AFTER, desired="stopped"))[-1] == CLOSE
    assert pipeline.on(WELL)[0] == WriteRecord()
    assert pipeline.actions[-1] == Answer(
        command=make_command("apply", id="later"), state=OperationState.DONE
    )
    assert pipeline.state.phase is Phase.STOPPED


def test_what_cannot_be_closed_is_not_removed(closing: Pipeline) -> None:
    actions = closing.on(DriverFailed(problems=(), error=ERROR), CRASH)
    refusal, *goes_on = actions
    assert isinstance(refusal, Answer)
    assert (refusal.command, refusal.state) == (CHANGE, "failed")
    assert refusal.errors[0].message == "the table is not ours"
    assert goes_on == [ReportPhase(phase_from=Phase.STOPPING), StartDriver()]
    assert (closing.state.record, closing.state.next) == (replace(BEFORE, run=2), None)


def test_what_is_overtaken_before_it_was_said_is_not_in_force(closing: Pipeline) -> None:
    overtaken = next(each for each in closing.change(BEFORE) if isinstance(each, Answer))
    assert (overtaken.command, overtaken.state) == (CHANGE, "failed")
    assert overtaken.errors[0].hint == ""


def test_what_fails_for_a_while_is_tried_again(closing: Pipeline) -> None:
    assert closing.on(CRASH) == ()
    assert closing.after(500) == (CLOSE,)
    assert closing.after(BY_DEFAULT.close_ms) == (StopDriver(mode=StopMode.FORCE),)
    closing.on(CRASH)
    assert closing.after(1_000) == (CLOSE,)
    assert closing.on(WELL)[0] == WriteRecord()


def test_a_later_change_takes_the_place_of_one_that_waits(closing: Pipeline) -> None:
    """Nothing of the first one was ever said, so the later one is a change of what is."""
    other = replace(AFTER, stages=(make_stage("a", sinks=(LAKE, OUT)),))
    (refusal,) = closing.change(other)
    assert isinstance(refusal, Answer)
    assert (refusal.command, refusal.state) == (CHANGE, "failed")
    assert closing.on(WELL) == (StartDriver(closing=(make_stage("b"),)),)
    assert closing.on(WELL)[0] == WriteRecord()
    assert closing.state.record == replace(other, run=2)


def test_a_later_command_may_take_the_change_back(closing: Pipeline) -> None:
    assert closing.change(BEFORE)[-1] == WriteRecord()
    assert closing.on(WELL)[-1] == StartDriver()
    assert closing.state.record == replace(BEFORE, run=2)


def test_a_deletion_meanwhile_closes_everything(closing: Pipeline) -> None:
    deleted = replace(BEFORE, desired="deleted")
    closing.change(deleted)
    assert closing.on(WELL) == (StartDriver(closing=deleted.stages),)


def test_what_waits_for_its_next_attempt_can_be_stopped(closing: Pipeline) -> None:
    closing.on(CRASH)
    closing.change(replace(BEFORE, desired="stopped"))
    assert closing.state.phase is Phase.STOPPED
    assert closing.after(10**9) == ()
