"""Each row of the table of phases: what happens takes it, and its phase and actions follow."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import pytest

from builders import make_record
from message_builders import make_command
from waybill_shared.contract.commands import Rescale, Restart, Stop, StopMode
from waybill_shared.contract.events import Desired
from waybill_shared.contract.lifecycle import (
    LIVING,
    MOVES,
    STOPS,
    Happening,
    Move,
    MoveAction,
    Phase,
)
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.stopped_stages import StoppedStage
from waybill_stage_runner.core.pipelines import actions, moves
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFailed,
    DriverFinished,
    DriverPaused,
    DriverRuns,
    Event,
    RecordRequested,
    RunQueued,
)
from waybill_stage_runner.core.pipelines.parallelism import CoreLimits, rescale_record
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pipelines.supervision import decide
from waybill_stage_runner.core.tick import Tick

Story = Callable[[PipelineState], tuple[PipelineState, Event]]
"""Returns the state before, and what happens then."""
NOW: Final = 1_000
RECORD: Final = make_record()
FAULT: Final = LifecycleError(domain="user", message="no", hint="", stage=None, retryable=False)
MODES: Final[Mapping[Phase, StopMode]] = {
    Phase.DRAINING: StopMode.DRAIN,
    Phase.STOPPING: StopMode.FORCE,
}
"""How a run ends in the phase; else as `checkpoint` does."""
MADE: Final[Mapping[MoveAction, type[actions.PipelineAction]]] = {
    MoveAction.REPORT_PHASE: actions.ReportPhase,
    MoveAction.RECORD_PHASE: actions.ReportPhase,
    MoveAction.SEND_HEARTBEAT: actions.SendHeartbeat,
    MoveAction.START_DRIVER: actions.StartDriver,
    MoveAction.STOP_DRIVER: actions.StopDriver,
    MoveAction.WRITE_LAST_DEFINITION: actions.WriteLastDefinition,
}


def says(event: Event) -> Story:
    return lambda state: (state, event)


def wants(desired: Desired, *, finished: bool = False) -> Story:
    """It is to be so, and no driver lives: in a phase in which one ends, it has ended just now."""

    def story(state: PipelineState) -> tuple[PipelineState, Event]:
        record = replace(state.record, desired=desired, finished=finished)
        if state.driver:
            return replace(state, record=record), DriverEnded(exit_code=0)
        return state, RecordRequested(record=record, command=make_command("start", id="c2"))

    return story


def asks(body: Restart | Stop | Rescale) -> Story:
    """Somebody asks for it while a driver lives."""

    def story(state: PipelineState) -> tuple[PipelineState, Event]:
        record = replace(state.record, desired="stopped" if isinstance(body, Stop) else "running")
        if isinstance(body, Rescale):
            record = rescale_record(record, body.parallelism, "ada", NOW)
        asked = replace(make_command(body.action, id="c2"), body=body)
        return state, RecordRequested(record=record, command=asked)

    return story


def pauses(state: PipelineState) -> tuple[PipelineState, Event]:
    return replace(state, record=replace(RECORD, desired="paused")), DriverPaused(order=0)


def resumes(state: PipelineState) -> tuple[PipelineState, Event]:
    paused = replace(state, record=replace(RECORD, desired="paused"))
    return paused, RecordRequested(record=RECORD, command=make_command("resume"))


def is_due(state: PipelineState) -> tuple[PipelineState, Event]:
    return replace(state, record=replace(state.record, next_run_at=NOW)), Tick(at=NOW)


def is_closed(state: PipelineState) -> tuple[PipelineState, Event]:
    record = replace(RECORD, desired="deleted")
    closing = replace(state, record=record, closing=record, driver=True)
    return closing, DriverEnded(exit_code=0)


def fails(state: PipelineState) -> tuple[PipelineState, Event]:
    """Its driver ends by itself; where it was to end, each of its stages is stopped by then."""
    if state.phase in STOPS | {Phase.FINISHING}:
        lives = [(stage.name, stage.since) for stage in RECORD.stages]
        stopped = tuple(
            StoppedStage(stage=name, since=since, at=NOW, run=1, message="no", hint="")
            for name, since in lives
        )
        record = replace(state.record, stopped_stages=stopped)
        return replace(state, record=record), DriverEnded(exit_code=0)
    failed, _ = decide(state, DriverFailed(problems=(), error=FAULT), NOW)
    return failed, DriverEnded(exit_code=1)


STORIES: Final[Mapping[Happening, Story]] = {
    Happening.START: wants("running"),
    Happening.QUEUE: says(RunQueued(queue_position=1)),
    Happening.ASSIGN: says(RunQueued(queue_position=0)),
    Happening.RUN: says(DriverRuns()),
    Happening.PAUSE: pauses,
    Happening.RESUME: resumes,
    Happening.RESCALE: asks(Rescale(parallelism=4)),
    Happening.RESTART: asks(Restart()),
    Happening.DRAIN: asks(Stop(mode=StopMode.DRAIN)),
    Happening.CHECKPOINT: asks(Stop()),
    Happening.FORCE: asks(Stop(mode=StopMode.FORCE)),
    Happening.CLOSE: wants("deleted"),
    Happening.FINISH: says(DriverFinished()),
    Happening.REST: wants("running", finished=True),
    Happening.FALL_DUE: is_due,
    Happening.END: wants("stopped"),
    Happening.DELETE: is_closed,
    Happening.RETRY: says(DriverEnded(exit_code=1)),
    Happening.FAIL: fails,
}


class Taken(dict[tuple[Phase, Happening], Move]):
    """The moves, and which were looked up."""

    def __init__(self) -> None:
        super().__init__(MOVES)
        self.rows: list[tuple[Phase, Happening]] = []

    def __getitem__(self, row: tuple[Phase, Happening]) -> Move:
        self.rows.append(row)
        return super().__getitem__(row)


@pytest.mark.parametrize(("phase", "happening"), sorted(MOVES), ids=str)
def test_what_happens_takes_its_row(
    monkeypatch: pytest.MonkeyPatch, phase: Phase, happening: Happening
) -> None:
    taken = Taken()
    monkeypatch.setattr(moves, "MOVES", taken)
    lives = phase in LIVING | STOPS
    state = PipelineState(
        record=replace(RECORD, finished=phase is Phase.FINISHED),
        phase=phase,
        driver=lives,
        stop_mode=MODES.get(phase, StopMode.CHECKPOINT),
        limits=CoreLimits(usual=1, most=4),
    )
    state = replace(state, run_parallelism=state.planned_parallelism if lives else None)
    before, event = STORIES[happening](state)
    after, made = decide(before, event, NOW)
    row = MOVES[phase, happening]
    assert taken.rows == [(phase, happening)]
    assert after.phase is row.target
    kinds = {type(each) for each in made}
    changes = {MADE[name] for name in row.actions if name in MADE}
    stays = {actions.ReportPhase} if row.target is phase else set()
    assert changes - stays <= kinds
