"""Decides how a run stops, and when a stop becomes a stronger one. Never does I/O."""

from dataclasses import replace

from waybill_shared.contract.commands import STOP_MODES, Restart, Stop, StopMode
from waybill_shared.contract.lifecycle import Phase
from waybill_stage_runner.core.pipelines import actions
from waybill_stage_runner.core.pipelines.moves import Decision, why
from waybill_stage_runner.core.pipelines.states import ITSELF, PipelineState


def newest_stop_mode(state: PipelineState) -> StopMode:
    """Return how the newest command wants the run to stop."""
    bodies = (command.body for command in reversed(state.pending))
    modes = (body.mode for body in bodies if isinstance(body, Restart | Stop))
    return next(modes, StopMode.CHECKPOINT)


def stop_otherwise(state: PipelineState, mode: StopMode, now: int) -> Decision:
    """Let a stronger stop overtake the one that goes on. A weaker one changes nothing.

    The next step follows when the driver has ended.
    """
    if state.closing is not None or not mode.is_stronger_than(state.stop_mode):
        return state, ()
    return _stop_as(mode, replace(state, reason=f"{why(state)}: {mode}"), now)


def escalate(state: PipelineState, now: int) -> Decision:
    """Stop in the next stronger way, because the driver has not ended in time."""
    row = STOP_MODES[state.stop_mode]
    if row.then is state.stop_mode:
        return replace(state, since=now), (actions.StopDriver(mode=row.then),)
    reason = f"{row.then}: it did not stop in {row.limit_ms // 1000} s"
    return _stop_as(row.then, replace(state, reason=reason, actor=ITSELF), now)


def _stop_as(mode: StopMode, state: PipelineState, now: int) -> Decision:
    report = actions.ReportPhase(phase_from=Phase.STOPPING)
    stronger = replace(state, stop_mode=mode, since=now)
    return stronger, (actions.StopDriver(mode=mode), report)
