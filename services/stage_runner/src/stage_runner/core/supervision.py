"""Decides what to do with a pipeline's driver. Never does I/O, never reads the clock.

State and event go in; the next state and the actions to take come out. A pipeline that is deleted
gets one more driver, which closes it: a batch that a killed driver left unreported is told then.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal, assert_never

from shared.events import Command, LifecycleError, PipelineRecord, Problem
from shared.lifecycle import Phase
from stage_runner.core.moves import (
    Action,
    Announce,
    Answer,
    Beat,
    DriverBlocked,
    DriverEnded,
    DriverFailed,
    DriverRuns,
    EndFacts,
    Event,
    StartDriver,
    StopDriver,
    Tick,
    Wanted,
)

BACKOFF_MS_FIRST: Final = 500
BACKOFF_MS_MAX: Final = 60_000
ATTEMPTS_MAX: Final = 20
HEALTHY_MS: Final = 120_000  # running this long means the fault is over: attempts begin anew
STARTING_MS_MAX: Final = 180_000  # a cold JVM on a loaded machine takes 20 s
STOPPING_MS_MAX: Final = 60_000  # a running batch may finish
CLOSING_MS_MAX: Final = 180_000  # sinks may wait a minute each, for a claim or for their readers


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineState:
    record: PipelineRecord
    phase: Phase = Phase.CREATED
    since: int = 0
    driver: bool = False
    closing: bool = False  # the driver that lives or is waited for only closes
    attempt: int = 0
    next_at: int | None = None
    problems: tuple[Problem, ...] = ()
    error: LifecycleError | None = None
    pending: tuple[Command, ...] = ()
    reason: str = ""
    blocked_by: str | None = None


Decision = tuple[PipelineState, tuple[Action, ...]]


def decide(state: PipelineState, event: Event, now: int) -> Decision:
    match event:
        case Wanted():
            return _wanted(state, event, now)
        case DriverRuns():
            return _runs(state, now)
        case DriverBlocked():
            return _blocked(state, event)
        case DriverFailed():
            return replace(state, problems=event.problems, error=event.error), ()
        case DriverEnded():
            return _ended(replace(state, driver=False), event, now)
        case Tick():
            return _tick_closing(state, now) if state.closing else _tick(state, now)
        case _:
            assert_never(event)


def _wanted(state: PipelineState, event: Wanted, now: int) -> Decision:
    changed = event.record.generation != state.record.generation
    superseded = tuple(
        Answer(
            command=command,
            state="failed",
            errors=(Problem(message=f"superseded by a later {event.record.desired} command"),),
        )
        for command in state.pending
        if event.command is not None and event.command.id != command.id
    )
    pending = (event.command,) if event.command is not None else state.pending
    state = replace(state, record=event.record, pending=pending)
    if event.record.desired == "running":
        after, actions = _want_running(state, changed, now)
    else:
        after, actions = _want_stopped(state, now)
    return after, superseded + actions


def _want_running(state: PipelineState, changed: bool, now: int) -> Decision:
    if not state.driver:
        return _start(replace(state, attempt=0), now, "started")
    if state.phase is Phase.STOPPING:
        return state, ()  # it starts again when the driver has ended
    if changed:
        stopping, actions = _enter(replace(state, attempt=0), Phase.STOPPING, now, _why(state))
        return stopping, (StopDriver(), *actions)
    if state.phase is Phase.RUNNING:
        return _answer_all(state, "done")
    return state, ()


def _why(state: PipelineState) -> str:
    """In a word that a person reads as the reason of the phase."""
    words = {"restart": "restarted", "start": "started"}
    return next((words[c.action] for c in state.pending if c.action in words), "definition changed")


def _want_stopped(state: PipelineState, now: int) -> Decision:
    if state.driver:
        if state.phase is Phase.STOPPING:
            return state, ()
        stopping, actions = _enter(state, Phase.STOPPING, now, f"to be {state.record.desired}")
        return stopping, (StopDriver(), *actions)
    if state.record.desired == "deleted" and not state.record.closed:
        return _close(replace(state, attempt=0), now)
    stopped, actions = _enter(state, Phase.STOPPED, now, state.record.desired)
    answered, answers = _answer_all(stopped, "done")
    return answered, actions + answers


def _close(state: PipelineState, now: int) -> Decision:
    """Its driver may have been killed between a sink's commit and the report of it."""
    fresh = replace(state, driver=True, closing=True, next_at=None, problems=(), error=None)
    stopping, actions = _enter(fresh, Phase.STOPPING, now, f"to be {state.record.desired}")
    return replace(stopping, since=now), (*actions, StartDriver(closing=True))


def _runs(state: PipelineState, now: int) -> Decision:
    if state.phase is not Phase.STARTING:
        return state, ()
    running, actions = _enter(replace(state, error=None), Phase.RUNNING, now, "driver runs")
    answered, answers = _answer_all(running, "done")
    return answered, actions + answers


def _blocked(state: PipelineState, event: DriverBlocked) -> Decision:
    going = state.phase in (Phase.STARTING, Phase.RUNNING)
    if not going or state.blocked_by == event.blocked_by:
        return state, ()
    return replace(state, blocked_by=event.blocked_by), (Beat(),)


def _ended(state: PipelineState, event: DriverEnded, now: int) -> Decision:
    if state.closing:
        return _closing_ended(state, event, now)
    if state.record.desired != "running":
        return _want_stopped(state, now)
    if state.phase is Phase.STOPPING:
        return _start(state, now, _why(state))
    error = state.error or _crash(event)
    state = replace(state, error=error)
    if _worth_another(state, error):
        return _enter(_later(state, now), Phase.RECOVERING, now, error.message)
    failed, actions = _enter(state, Phase.FAILED, now, error.message)
    errors = state.problems or (Problem(message=error.message, hint=error.hint),)
    answered, answers = _answer_all(replace(failed, problems=()), "failed", errors)
    return answered, actions + answers


def _closing_ended(state: PipelineState, event: DriverEnded, now: int) -> Decision:
    error = None if event.exit_code == 0 else state.error or _crash(event)
    state = replace(state, error=error)
    if error is not None and _worth_another(state, error):
        return _later(state, now), ()
    closed = replace(state, closing=False, record=replace(state.record, closed=True))
    stopped, actions = _enter(closed, Phase.STOPPED, now, state.record.desired)
    answered, answers = _answer_all(stopped, "done")
    return answered, (*actions, EndFacts(error=error), *answers)


def _crash(event: DriverEnded) -> LifecycleError:
    return LifecycleError(
        domain="internal",
        message=f"the driver ended with exit code {event.exit_code}",
        hint="see the driver's log: `waybill logs PIPELINE`",
        stage=None,
        retryable=True,
    )


def _worth_another(state: PipelineState, error: LifecycleError) -> bool:
    return error.retryable and state.attempt < ATTEMPTS_MAX


def _later(state: PipelineState, now: int) -> PipelineState:
    wait = min(BACKOFF_MS_FIRST * 2**state.attempt, BACKOFF_MS_MAX)
    return replace(state, attempt=state.attempt + 1, next_at=now + wait, problems=())


def _tick(state: PipelineState, now: int) -> Decision:
    in_phase_ms = now - state.since
    match state.phase:
        case Phase.RECOVERING if state.next_at is not None and now >= state.next_at:
            return _start(state, now, f"attempt {state.attempt + 1}")
        case Phase.RUNNING if state.attempt and in_phase_ms >= HEALTHY_MS:
            return replace(state, attempt=0), ()
        case Phase.STARTING if in_phase_ms >= STARTING_MS_MAX:
            return replace(state, since=now), (StopDriver(force=True),)
        case Phase.STOPPING if in_phase_ms >= STOPPING_MS_MAX:
            return replace(state, since=now), (StopDriver(force=True),)
        case _:
            return state, ()


def _tick_closing(state: PipelineState, now: int) -> Decision:
    if state.driver and now - state.since >= CLOSING_MS_MAX:
        return replace(state, since=now), (StopDriver(force=True),)
    if state.next_at is not None and now >= state.next_at:
        return _close(state, now)
    return state, ()


def _start(state: PipelineState, now: int, reason: str) -> Decision:
    fresh = replace(state, driver=True, next_at=None, problems=(), error=None)
    starting, actions = _enter(fresh, Phase.STARTING, now, reason)
    return starting, (*actions, StartDriver())


def _enter(state: PipelineState, phase: Phase, now: int, reason: str) -> Decision:
    if state.phase is phase:
        return state, ()
    blocked_by = state.blocked_by if phase is Phase.RUNNING else None
    entered = replace(state, phase=phase, since=now, reason=reason, blocked_by=blocked_by)
    return entered, (Announce(phase_from=state.phase),)


def _answer_all(
    state: PipelineState, result: Literal["done", "failed"], errors: tuple[Problem, ...] = ()
) -> Decision:
    answers = tuple(Answer(command=c, state=result, errors=errors) for c in state.pending)
    return replace(state, pending=()), answers
