"""Decides what to do with a pipeline's driver. Never does I/O, never reads the clock.

`decide` gets the state and an event, and returns the next state and the actions to carry out, in
order. Which phase follows, and which actions, is in the table of `lifecycle`. A pipeline goes
through this machine as follows.

1. A command makes a new record, which comes in as `RecordRequested`. Commands that still wait for
their answer fail as superseded. A record that removes no sink is written at once (`WriteRecord`). A
record that removes a sink waits in `next`.

2. If no driver lives, the next step follows at once. If one lives and the record needs another
(a new generation, a restart) or is not to run, it ends first (RESTARTING; or DRAINING,
CHECKPOINT_STOPPING or STOPPING, as the stop says); the next step follows when `DriverEnded` reports
its end. `stopping` lets a stronger stop, or another purpose, overtake the one that goes on.

3. The next step is to close what is removed, if anything is: the sinks that `next` removes, or all
sinks of a deleted pipeline. One more driver opens them and reports what a killed driver left
unreported (STOPPING). From then on nobody writes there. This is tried again like a run. Only after
that the change is written, or the deletion becomes final (`WriteLastDefinition`). If closing fails,
a change is refused and all continues as it was. A deletion becomes final even so.

4. If the pipeline is to run, a driver is started (STARTING, or SCHEDULING while it waits in the
queue of the pool). When it runs (RUNNING), the waiting commands are answered. If the pipeline is
not to run, it is STOPPED. A pause is an order to the driver, which stays; it is PAUSED when the
driver reports that no batch runs.

5. A driver that ends by itself is started again later (RECOVERING) while `attempts` allows it; else
the pipeline is FAILED and waiting commands fail.

6. A run that has read all that there was is FINISHING until its driver has ended, then FINISHED:
see `finishing`. The times of its schedule begin the next runs: see `scheduling`.

7. A run of which `degraded` says that it hangs is stopped by force and started again.

8. A stage that fails by itself is stopped, and the record says so; the others go on, in this run
and in each later one: see `stopped_stages`.

9. A run that is to have other cores ends first (RESCALING), then the next one begins: see
`rescaling`.

10. `Tick` starts what is due, and kills drivers that start or close for too long. A stop that takes
too long becomes a stronger one, as when a person asks for that. It also forgets failures after a
long healthy run.
"""

from dataclasses import replace
from typing import Final

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.events import Command, PipelineRecord
from waybill_shared.contract.lifecycle import STOPS, Happening, Phase
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action, OperationState
from waybill_stage_runner.core.pipelines import actions, events
from waybill_stage_runner.core.pipelines.attempts import (
    crash_error,
    may_retry,
    reset_attempts,
    wait_longer,
    waits_for_sink,
)
from waybill_stage_runner.core.pipelines.degraded import look
from waybill_stage_runner.core.pipelines.driver_reports import decide_report
from waybill_stage_runner.core.pipelines.finishing import REASON, comes_too_late, finish, note_start
from waybill_stage_runner.core.pipelines.moves import Decision, answer_all, answer_failed, move, why
from waybill_stage_runner.core.pipelines.removal import sinks_to_remove
from waybill_stage_runner.core.pipelines.rescaling import (
    is_resized,
    keep_failed,
    rescale,
)
from waybill_stage_runner.core.pipelines.scheduling import decide_due
from waybill_stage_runner.core.pipelines.states import PipelineState
from waybill_stage_runner.core.pipelines.stopped_stages import (
    fail_stopped,
    find_started,
    is_all_stopped,
    order_starts,
    stop_crashing,
    warn_of_going,
    warn_of_letters,
)
from waybill_stage_runner.core.pipelines.stopping import (
    end_otherwise,
    end_run,
    escalate,
    warn_of_end,
    warn_of_takeover,
)
from waybill_stage_runner.core.pipelines.superseding import asks_for_same, problem_of_superseded
from waybill_stage_runner.core.tick import Tick

HEALTHY_MS: Final = 120_000  # after such a run the fault is over: attempts count from zero


def decide(state: PipelineState, event: events.Event, now: int) -> Decision:
    match event:
        case events.RecordRequested():
            return _accept_record(state, event, now)
        case events.DriverEnded():
            return _handle_end(replace(state, driver=False, starting=()), event, now)
        case Tick(at=at):
            return decide_due(state, now, at) or _decide_tick(state, now)
        case _:
            return decide_report(state, event, now)


def _accept_record(state: PipelineState, event: events.RecordRequested, now: int) -> Decision:
    """Accept a new record. One that removes a sink waits as `next`; any other is written at
    once.
    """
    record = replace(event.record, run=state.record.run)
    superseded, pending = _supersede(state, event.command, record)
    pauses = "paused" in (state.record.desired, record.desired)
    restarted = event.command is not None and event.command.action is Action.RESTART
    again = not event.written and (restarted or comes_too_late(state, event.command))
    changed = record.generation != state.record.generation or again
    started, state = find_started(state.record, record), warn_of_letters(state, record)
    written: tuple[actions.PipelineAction, ...] = ()
    if not event.written:
        state = note_start(warn_of_going(state, event.command), event.command)
    if sinks_to_remove(state.record, record) is not None:
        state = replace(state, next=record, pending=pending)
    else:
        written = () if event.written else (actions.WriteRecord(),)
        if record.has_finished and record.next_run_at != state.record.next_run_at:
            written = (*written, actions.SendHeartbeat())  # tokens say when the next run begins
        state = replace(state, record=record, next=None, pending=pending)
    state = warn_of_takeover(state, event)
    after, more = _toward(state, changed, pauses, started, now)
    return after, (*superseded, *written, *more)


def _supersede(
    state: PipelineState, by: Command | None, record: PipelineRecord
) -> tuple[tuple[actions.Answer, ...], tuple[Command, ...]]:
    """Return the answers to pending commands that fail, and the commands that are pending now."""
    if by is None:
        return (), state.pending
    same = tuple(c for c in state.pending if asks_for_same(c, by))
    failed = tuple(
        actions.Answer(
            command=c,
            state=OperationState.FAILED,
            errors=(problem_of_superseded(state, c, record),),
            problem=Slug.SUPERSEDED,
        )
        for c in state.pending
        if c.id != by.id and c not in same
    )
    return failed, (*same, by)


def _toward(
    state: PipelineState, changed: bool, pauses: bool, started: tuple[str, ...], now: int
) -> Decision:
    """Decide one step from the state of the driver to what is wanted.

    `changed`: it needs another driver. `pauses`: it is to be paused, or was until now. `started`:
    stages that were stopped, and are to run.
    """
    if not state.driver:
        return keep_failed(state) or _next_step(reset_attempts(state), now, why(state, "started"))
    ends = changed or not state.record.wants_run
    if state.phase in STOPS:
        return end_otherwise(state, now, changed=changed)
    if ends:
        return end_run(reset_attempts(state), now)
    if is_resized(state):
        return rescale(state, now)
    ordered: tuple[actions.PipelineAction, ...] = ()
    if pauses:
        state, ordered = _order_pause(state, now)
    state, starts = order_starts(state, started)
    ordered = (*ordered, *starts)
    if state.starting or state.phase is not Phase.RUNNING or state.record.desired != "running":
        return state, ordered
    after, answers = answer_all(state, OperationState.DONE)
    return after, (*ordered, *answers)


def _order_pause(state: PipelineState, now: int) -> Decision:
    """Let the driver pause or continue, as is wanted. The phase follows when it reports that.

    `Paused` ends before the driver may begin a batch.
    """
    paused, order = state.record.desired == "paused", state.pause_orders + 1
    reported: tuple[actions.PipelineAction, ...] = ()
    if state.phase is Phase.PAUSED and not paused:
        state, reported = move(state, Happening.RESUME, now, "resumed")
    ordered = actions.PauseDriver(paused=paused, order=order)
    return replace(state, pause_orders=order), (*reported, ordered)


def _next_step(state: PipelineState, now: int, reason: str) -> Decision:
    """Decide the next step when no driver lives."""
    target = _to_close(state)
    if target is not None:
        return _close(state, target, now)
    state = replace(state, closing=None, next_at=None)
    if state.record.has_finished:
        return move(state, Happening.REST, now, REASON)
    if state.record.wants_run:
        return _start(state, now, reason)
    return move(state, Happening.END, now, state.record.desired)


def _to_close(state: PipelineState) -> PipelineRecord | None:
    if state.record.desired == "deleted":
        return None if state.record.closed else state.record
    return sinks_to_remove(state.record, state.next) if state.next is not None else None


def _close(state: PipelineState, target: PipelineRecord, now: int) -> Decision:
    """Start a driver that closes `target`.

    The last driver may have been killed between a sink's commit and its report.
    """
    closing, more = move(replace(state, closing=target), Happening.CLOSE, now, why(state))
    return replace(closing, since=now), more


def _handle_end(state: PipelineState, event: events.DriverEnded, now: int) -> Decision:
    if state.closing is not None:
        return _handle_end_of_closing(state, event, now)
    if state.phase in STOPS:
        return _next_step(warn_of_end(state, event), now, why(state))
    if state.phase is Phase.FINISHING:
        return finish(state, now)
    error = state.error or crash_error(event)
    state = replace(state, error=error)
    if may_retry(state, error):
        waiting = replace(wait_longer(state, error, now), waits=waits_for_sink(error))
        return move(waiting, Happening.RETRY, now, error.message)
    without = stop_crashing(state, error, event.at, now)
    return without or move(state, Happening.FAIL, now, error.message)


def _handle_end_of_closing(state: PipelineState, event: events.DriverEnded, now: int) -> Decision:
    if not _as_asked(state):
        # A later command wants something else.
        return _next_step(reset_attempts(state), now, why(state))
    error = None if event.exit_code == 0 else state.error or crash_error(event)
    state = replace(state, error=error)
    if error is not None and may_retry(state, error):
        return wait_longer(state, error, now), ()
    if state.record.desired == "deleted":
        return _finish_deletion(state, now)
    return _finish_removal(state, now) if error is None else _refuse_removal(state, now)


def _as_asked(state: PipelineState) -> bool:
    """Return True if what the driver closed is still what must be closed."""
    done, target = state.closing, _to_close(state)
    if done is None or target is None:
        return False
    return done.stages == target.stages and (done.desired == "deleted") is (
        target.desired == "deleted"
    )


def _finish_deletion(state: PipelineState, now: int) -> Decision:
    closed = replace(state, closing=None, record=replace(state.record, closed=True))
    return move(closed, Happening.DELETE, now, state.record.desired)


def _finish_removal(state: PipelineState, now: int) -> Decision:
    """Put the change in force: its removed sinks are closed and all they contain is reported."""
    assert state.next is not None
    in_force = reset_attempts(replace(state, record=state.next, next=None, closing=None))
    after, more = _next_step(in_force, now, why(in_force))
    return after, (actions.WriteRecord(), *more)


def _refuse_removal(state: PipelineState, now: int) -> Decision:
    """Refuse the change, because its sinks could not be closed. The pipeline continues as
    it was.
    """
    refused, answers = answer_failed(state)
    after, more = _next_step(
        reset_attempts(replace(refused, next=None)), now, "a change was refused"
    )
    return after, (*answers, *more)


def _decide_tick(state: PipelineState, now: int) -> Decision:
    after, made = _tick_closing(state, now) if state.closing else _tick(state, now)
    watched, more = look(after, now)
    return watched, (*made, *more)


def _tick(state: PipelineState, now: int) -> Decision:
    in_phase_ms = now - state.since
    match state.phase:
        case Phase.RECOVERING if state.next_at is not None and now >= state.next_at:
            return _start(state, now, f"attempt {state.attempt + 1}")
        case Phase.RUNNING if state.attempt and in_phase_ms >= HEALTHY_MS:
            return reset_attempts(state), ()
        case _ if _lasts_too_long(state, in_phase_ms):
            return replace(state, since=now), (actions.StopDriver(mode=StopMode.FORCE),)
        case _ if _stops_too_long(state, in_phase_ms):
            return escalate(state, now)
        case _:
            return state, ()


def _lasts_too_long(state: PipelineState, in_phase_ms: int) -> bool:
    limit_ms = state.times.of_phase(state.phase)
    return limit_ms is not None and in_phase_ms >= limit_ms


def _stops_too_long(state: PipelineState, in_phase_ms: int) -> bool:
    return state.phase in STOPS and in_phase_ms >= state.times.of_stop(state.stop_mode)


def _tick_closing(state: PipelineState, now: int) -> Decision:
    if state.driver and now - state.since >= state.times.close_ms:
        return replace(state, since=now), (actions.StopDriver(mode=StopMode.FORCE),)
    if state.next_at is not None and now >= state.next_at:
        assert state.closing is not None
        return _close(state, state.closing, now)
    return state, ()


def _start(state: PipelineState, now: int, reason: str) -> Decision:
    if is_all_stopped(state.record):
        return fail_stopped(state, now)
    return move(state, Happening.START, now, reason)
