"""Decides what follows from a report of a driver. Never does I/O, never reads the clock."""

from dataclasses import replace
from typing import assert_never

from waybill_shared.contract.lifecycle import MOVES, Happening, Phase
from waybill_shared.contract.lifecycle_events import RunCounts
from waybill_stage_runner.core.pipelines import actions, events
from waybill_stage_runner.core.pipelines.finishing import note_finished
from waybill_stage_runner.core.pipelines.moves import Decision, move
from waybill_stage_runner.core.pipelines.putting import answer_requests
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pipelines.stopped_stages import note_started, note_stopped

KeptReport = (
    events.DriverProgress | events.DriverIgnores | events.DriverDrained | events.DriverFailed
)


def decide_report(state: PipelineState, event: events.DriverReport, now: int) -> Decision:
    match event:
        case events.RunQueued():
            return _show_queue_position(state, event, now)
        case events.DriverRuns():
            return _note_running(state, event, now)
        case events.DriverPaused():
            return _note_paused(state, event, now)
        case events.DriverBlocked():
            return _note_blocked(state, event)
        case events.DriverMaintained():
            return state, (actions.ReportMaintenance(maintenance=event.maintenance),)
        case events.DriverFinished():
            return note_finished(state, now)
        case events.DriverStageStopped():
            return note_stopped(state, event)
        case events.DriverStagesStarted():
            return note_started(state, event)
        case _:
            return _keep(state, event, now), ()


def _keep(state: PipelineState, event: KeptReport, now: int) -> PipelineState:
    """Keep what the driver has reported. Nothing follows from it by itself."""
    match event:
        case events.DriverProgress():
            done = RunCounts(
                run=state.record.run,
                batches=sum(each.batches for each in event.stages),
                rows=sum(each.rows for each in event.stages),
            )
            return replace(state, progress=event.stages, done=done, silent_ms=0, looked_at=now)
        case events.DriverIgnores():
            return replace(state, ignored=event.fields)
        case events.DriverDrained():
            return replace(state, drained=True)
        case events.DriverFailed():
            return replace(state, problems=event.problems, error=event.error)
        case _:
            assert_never(event)


def _show_queue_position(state: PipelineState, event: events.RunQueued, now: int) -> Decision:
    """Show that the run waits in the queue. It starts later, and this is no failure of its own."""
    position = event.queue_position
    happening = Happening.QUEUE if position else Happening.ASSIGN
    if (state.phase, happening) not in MOVES:
        return state, ()
    reason = f"{position}. in the line for a driver" if position else "it has a driver"
    waiting, more = move(state, happening, now, reason)
    return replace(waiting, reason=reason) if position else waiting, more


def _note_running(state: PipelineState, event: events.DriverRuns, now: int) -> Decision:
    if (state.phase, Happening.RUN) not in MOVES:
        return state, ()
    after, answers = answer_requests(replace(state, error=None), event.not_put)
    after, more = move(after, Happening.RUN, now, "driver runs")
    return after, (*answers, *more)


def _note_paused(state: PipelineState, event: events.DriverPaused, now: int) -> Decision:
    """Note that the driver is paused, unless a later order lets it continue, or asks again."""
    newest = event.order == state.pause_orders and state.record.desired == "paused"
    if not newest or (state.phase, Happening.PAUSE) not in MOVES:
        return state, ()
    after, answers = answer_requests(replace(state, error=None), event.not_put)
    after, more = move(after, Happening.PAUSE, now, "no batch begins")
    return after, (*answers, *more)


def _note_blocked(state: PipelineState, event: events.DriverBlocked) -> Decision:
    going_on = state.phase in (Phase.STARTING, Phase.RUNNING, Phase.PAUSED)
    after = replace(state, blocked_by=event.blocked_by, waits=event.waits)
    return (after, (actions.SendHeartbeat(),)) if going_on and after != state else (state, ())
