"""Decides how a run stops, and when a stop becomes a stronger one. Never does I/O.

A run has stopped as it was asked to if its driver has reported that: `drained`, or its end in good
order. Without that report the answer has a warning, whatever the cause was.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from waybill_shared.contract.commands import STOP_MODES, Rescale, Restart, Stop, StopMode
from waybill_shared.contract.lifecycle import (
    MOVES,
    RUN_FOLLOWS,
    STOP_HAPPENINGS,
    Happening,
    Phase,
)
from waybill_stage_runner.core.pipelines import actions
from waybill_stage_runner.core.pipelines.attempts import crash_error
from waybill_stage_runner.core.pipelines.events import DriverEnded, RecordRequested
from waybill_stage_runner.core.pipelines.moves import Decision, move, why
from waybill_stage_runner.core.pipelines.states import ITSELF, PipelineState

NOT_REACHED: Final[Mapping[StopMode, str]] = {
    StopMode.DRAIN: "no report that all was drained; the next run processes what is left",
    StopMode.CHECKPOINT: "no report that the last batch ended; the next run repeats it if not",
}
"""The warning if a run has not stopped in the mode that was asked for, or in a weaker one."""


def newest_stop_mode(state: PipelineState) -> StopMode:
    """Return how the newest command wants the run to stop."""
    bodies = (command.body for command in reversed(state.pending))
    modes = (body.mode for body in bodies if isinstance(body, Restart | Stop))
    return next(modes, StopMode.CHECKPOINT)


def end_run(state: PipelineState, now: int) -> Decision:
    """Let the run end as the newest command wants. When its driver has ended, more follows."""
    ends = replace(state, stop_mode=newest_stop_mode(state))
    return move(ends, _find_purpose(ends), now, why(ends))


def end_otherwise(state: PipelineState, now: int, *, changed: bool) -> Decision:
    """Let a run that ends already end for what is wanted now: the next run, or a stop.

    It ends in the stronger one of both ways; if that is the one that goes on, its limit goes on,
    too. `changed`: another driver is needed in any case, so a rescale is no longer the purpose.
    """
    if state.closing is not None:
        return state, ()
    asked = newest_stop_mode(state)
    stronger = asked.is_stronger_than(state.stop_mode)
    ends = replace(state, stop_mode=asked) if stronger else state
    reason = f"{why(state)}: {asked}" if stronger else why(state)
    purpose = _find_purpose(ends)
    rescales = state.phase is Phase.RESCALING and not changed and purpose is Happening.RESTART
    if not rescales and (state.phase, purpose) in MOVES:
        after, made = move(ends, purpose, now, reason)
        if not stronger:
            return replace(after, since=state.since), made
        return after, (*_order(ends), *made)
    return _end_sooner(ends, now, reason) if stronger else (state, ())


def escalate(state: PipelineState, now: int) -> Decision:
    """Stop in the next stronger way, because the driver has not ended in time."""
    row = STOP_MODES[state.stop_mode]
    if row.then is state.stop_mode:
        return replace(state, since=now), (actions.StopDriver(mode=row.then),)
    reason = f"{row.then}: it did not stop in {state.times.of_stop(state.stop_mode) / 1000:g} s"
    stronger = replace(state, stop_mode=row.then)
    if state.phase in RUN_FOLLOWS:
        after, made = _end_sooner(stronger, now, reason)
    else:
        after, made = move(stronger, STOP_HAPPENINGS[row.then], now, reason)
        made = (*_order(stronger), *made)
    return replace(after, actor=ITSELF), made


def warn_of_end(state: PipelineState, event: DriverEnded) -> PipelineState:
    """Warn whoever asked for the stop if the run did not stop so. What was asked for goes on."""
    asked = newest_stop_mode(state)
    waits = state.pending and state.record.desired != "deleted"
    if not waits or not _stopped_as(state, event).is_stronger_than(asked):
        return state
    error = state.error or (crash_error(event) if event.exit_code else None)
    warning = NOT_REACHED[asked] if error is None else f"{NOT_REACHED[asked]}: {error.message}"
    return replace(state, warnings=(*state.warnings, warning))


def warn_of_takeover(state: PipelineState, event: RecordRequested) -> PipelineState:
    """Warn whoever asked for a stop that was going on when another runner took over.

    The run was killed with the runner before, or its end was not noticed.
    """
    command = event.command
    kinds = Restart | Rescale | Stop
    stops = event.written and command is not None and isinstance(command.body, kinds)
    asked = newest_stop_mode(state)
    if not stops or state.record.run == 0 or asked is StopMode.FORCE:
        return state
    warning = f"{NOT_REACHED[asked]}: another runner took over"
    return replace(state, warnings=(*state.warnings, warning))


def _stopped_as(state: PipelineState, event: DriverEnded) -> StopMode:
    if state.drained:
        return StopMode.DRAIN
    return StopMode.CHECKPOINT if event.exit_code == 0 else StopMode.FORCE


def _find_purpose(state: PipelineState) -> Happening:
    """Return for what the run ends, by the newest record: the next run, or a stop in its mode."""
    newest = state.next or state.record
    follows = newest.wants_run and not newest.has_finished
    return Happening.RESTART if follows else STOP_HAPPENINGS[state.stop_mode]


def _order(state: PipelineState) -> tuple[actions.StopDriver, ...]:
    return (actions.StopDriver(mode=state.stop_mode),)


def _end_sooner(state: PipelineState, now: int, reason: str) -> Decision:
    """Order the driver to end in a stronger way. The phase stays, and is reported because its limit
    begins again.
    """
    report = actions.ReportPhase(phase_from=state.phase)
    return replace(state, since=now, reason=reason), (*_order(state), report)
