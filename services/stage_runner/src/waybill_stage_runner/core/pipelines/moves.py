"""Moves a pipeline from phase to phase, by the table of `lifecycle`. `supervision` decides when.

`move` looks up the row of what happens in this phase. It enters the phase of the row, and makes the
actions of the row, in order.
"""

from dataclasses import replace
from typing import Final, assert_never

from waybill_shared.contract.commands import Start
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Command
from waybill_shared.contract.lifecycle import MOVES, STOPS, Happening, MoveAction, Phase
from waybill_shared.contract.moments import format_moment
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.run_words import TO_BE, DegradedCause
from waybill_shared.contract.words import Action, OperationState
from waybill_stage_runner.core.pipelines import actions
from waybill_stage_runner.core.pipelines.attempts import PROBLEM_OF, as_problems
from waybill_stage_runner.core.pipelines.parallelism import parallelism_of
from waybill_stage_runner.core.pipelines.states import (
    ITSELF,
    SCHEDULE,
    Degraded,
    PipelineState,
)

UNTIL_IT_RUNS: Final = (Phase.RECOVERING, Phase.SCHEDULING, Phase.STARTING)
"""In these phases the pipeline still waits for a sink that has failed, until a driver has opened it
again.
"""
BY_ITSELF: Final = (Phase.RECOVERING, Phase.FAILED)  # no command asks for these
UNTIL_IT_HAS_BEGUN: Final = STOPS | {Phase.SCHEDULING, Phase.STARTING}
"""In these phases the run still begins for which a time of the schedule has come."""

Decision = tuple[PipelineState, tuple[actions.PipelineAction, ...]]


def move(state: PipelineState, happening: Happening, now: int, reason: str) -> Decision:
    """Move by the row of the table. `reason` is for people, if the phase changes."""
    row = MOVES[state.phase, happening]
    phase_from = state.phase
    made: tuple[actions.PipelineAction, ...] = ()
    if row.target is not phase_from:
        state = _enter(state, row.target, now, reason)
    for name in row.actions:
        state, more = _act(state, name, phase_from)
        made += more
    return state, made


def why(state: PipelineState, otherwise: str = "definition changed") -> str:
    """Return the reason of the phase, in words for people; `otherwise` if no command names one."""
    if not state.record.wants_run:
        return f"{TO_BE}{state.record.desired}"
    words = {Action.RESTART: "restarted", Action.START: "started", Action.RESCALE: "rescaled"}
    words[Action.RENAME] = "renamed"
    if not state.pending and state.due is not None:
        return of_time(state.due)
    return next((words[c.action] for c in state.pending if c.action in words), otherwise)


def of_time(due: int) -> str:
    """Return the reason of what a time of the schedule begins."""
    return f"scheduled for {format_moment(due)}"


def answer_all(
    state: PipelineState,
    result: OperationState,
    errors: tuple[Problem, ...] = (),
    problem: Slug | None = None,
) -> Decision:
    answers = tuple(
        actions.Answer(
            command=c, state=result, errors=errors, problem=problem, warnings=state.warnings
        )
        for c in state.pending
    )
    return replace(state, pending=(), warnings=()), answers


def answer_done(state: PipelineState, tried: tuple[str, ...] = ()) -> Decision:
    """Answer that the commands are carried out. A start fails if a stage that it names is stopped;
    `tried`: the stages that a start without a name was to start.
    """
    made: tuple[actions.PipelineAction, ...] = ()
    for command in state.pending:
        problems, of_one = _not_started(state, command, tried), replace(state, pending=(command,))
        failed = (OperationState.FAILED, problems, Slug.INVALID)
        _, answers = answer_all(of_one, *(failed if problems else (OperationState.DONE,)))
        made += answers
    return replace(state, pending=(), warnings=()), made


def answer_failed(state: PipelineState) -> Decision:
    """Answer that the commands failed, with the error that ended the driver."""
    error = state.error
    assert error is not None
    errors, problem = as_problems(state, error), PROBLEM_OF[error.domain]
    return answer_all(replace(state, problems=()), OperationState.FAILED, errors, problem)


def _not_started(
    state: PipelineState, command: Command, tried: tuple[str, ...]
) -> tuple[Problem, ...]:
    """Return why stages that a command was to start are stopped."""
    if not isinstance(command.body, Start):
        return ()
    names = tried if command.body.stage is None else (command.body.stage,)
    return tuple(
        Problem(message=f"stage {each.stage} is not started: {each.message}", hint=each.hint)
        for each in state.record.stopped_stages
        if each.stage in names
    )


def _enter(state: PipelineState, phase: Phase, now: int, reason: str) -> PipelineState:
    wanted = () if phase in BY_ITSELF else state.pending
    scheduled = state.due is not None and phase not in BY_ITSELF
    return replace(
        state,
        phase=phase,
        since=now,
        reason=reason,
        actor=wanted[-1].actor if wanted else SCHEDULE if scheduled else ITSELF,
        due=state.due if phase in UNTIL_IT_HAS_BEGUN else None,
        blocked_by=state.blocked_by if phase in (Phase.RUNNING, Phase.PAUSED) else None,
        waits=state.waits if phase in UNTIL_IT_RUNS else (),
        ignored=() if phase is Phase.STARTING else state.ignored,
        silent_ms=0,
        looked_at=now,
        degraded=_lasting(state) if phase in (*UNTIL_IT_RUNS, Phase.RUNNING) else (),
    )


def _lasting(state: PipelineState) -> tuple[Degraded, ...]:
    """Return the conditions that outlive a driver."""
    return tuple(each for each in state.degraded if each.cause is DegradedCause.RETRYING)


def _start_driver(state: PipelineState) -> Decision:
    """Start a driver. If it is to run the stages, that is the next run."""
    record, cores = state.record, None
    if state.closing is None:
        record = replace(record, run=record.run + 1)
        cores = state.limits.allow(parallelism_of(record))
    fresh = replace(state, record=record, pause_orders=0, problems=(), error=None)
    fresh = replace(fresh, start_orders=0, starting=())
    fresh = replace(fresh, run_parallelism=cores)
    fresh = replace(fresh, progress=(), dumped_at=None)
    started = replace(fresh, driver=True, next_at=None, runs_again=False, drained=False)
    closing = () if state.closing is None else state.closing.stages
    return started, (actions.StartDriver(closing=closing),)


def _act(state: PipelineState, name: MoveAction, phase_from: Phase) -> Decision:
    match name:
        case MoveAction.REPORT_PHASE:
            changed = state.phase is not phase_from
            return state, (actions.ReportPhase(phase_from=phase_from),) if changed else ()
        case MoveAction.RECORD_PHASE:
            return state, (actions.ReportPhase(phase_from=phase_from, recorded=True),)
        case MoveAction.SEND_HEARTBEAT:
            return state, (actions.SendHeartbeat(),)
        case MoveAction.START_DRIVER:
            return _start_driver(state)
        case MoveAction.STOP_DRIVER:
            return state, (actions.StopDriver(mode=state.stop_mode),)
        case MoveAction.WRITE_LAST_DEFINITION:
            return state, (actions.WriteLastDefinition(error=state.error),)
        case MoveAction.ANSWER_DONE:
            return answer_done(state) if state.is_as_desired else (state, ())
        case MoveAction.ANSWER_FAILED:
            return answer_failed(state)
        case _:
            assert_never(name)
