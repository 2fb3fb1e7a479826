"""Decides what to do with a pipeline's driver. Never does I/O, never reads the clock.

State and event go in; the next state and the actions to take come out.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal, assert_never

from shared.events import Command, LifecycleError, PipelineRecord, Problem
from shared.lifecycle import Phase

BACKOFF_MS_FIRST: Final = 500
BACKOFF_MS_MAX: Final = 60_000
ATTEMPTS_MAX: Final = 20
HEALTHY_MS: Final = 120_000  # running this long means the fault is over: attempts begin anew
STARTING_MS_MAX: Final = 180_000  # a cold JVM on a loaded machine takes 20 s
STOPPING_MS_MAX: Final = 60_000  # a running batch may finish


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineState:
    record: PipelineRecord
    phase: Phase = Phase.CREATED
    since: int = 0
    driver: bool = False
    attempt: int = 0
    next_at: int | None = None
    problems: tuple[Problem, ...] = ()
    error: LifecycleError | None = None
    pending: tuple[Command, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A new record: by a command, or found at start (`command` None)."""

    record: PipelineRecord
    command: Command | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRuns:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFailed:
    """The driver says why it is about to end."""

    problems: tuple[Problem, ...]
    error: LifecycleError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverEnded:
    """The whole process group is gone."""

    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    pass


Event = Wanted | DriverRuns | DriverFailed | DriverEnded | Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDriver:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class StopDriver:
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Announce:
    """The phase has changed."""

    phase_from: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    command: Command
    state: Literal["done", "failed"]
    errors: tuple[Problem, ...] = ()


Action = StartDriver | StopDriver | Announce | Answer
Decision = tuple[PipelineState, tuple[Action, ...]]


def decide(state: PipelineState, event: Event, now: int) -> Decision:
    match event:
        case Wanted():
            return _wanted(state, event, now)
        case DriverRuns():
            return _runs(state, now)
        case DriverFailed():
            return replace(state, problems=event.problems, error=event.error), ()
        case DriverEnded():
            return _ended(state, event, now)
        case Tick():
            return _tick(state, now)
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
    if changed:
        stopped, actions = _enter(state, Phase.STOPPING, now, "definition changed")
        return stopped, (StopDriver(), *actions)
    if state.phase is Phase.RUNNING:
        return _answer_all(state, "done")
    return state, ()


def _want_stopped(state: PipelineState, now: int) -> Decision:
    if state.driver:
        if state.phase is Phase.STOPPING:
            return state, ()
        stopping, actions = _enter(state, Phase.STOPPING, now, f"to be {state.record.desired}")
        return stopping, (StopDriver(), *actions)
    stopped, actions = _enter(state, Phase.STOPPED, now, state.record.desired)
    answered, answers = _answer_all(stopped, "done")
    return answered, actions + answers


def _runs(state: PipelineState, now: int) -> Decision:
    if state.phase is not Phase.STARTING:
        return state, ()
    running, actions = _enter(replace(state, error=None), Phase.RUNNING, now, "driver runs")
    answered, answers = _answer_all(running, "done")
    return answered, actions + answers


def _ended(state: PipelineState, event: DriverEnded, now: int) -> Decision:
    state = replace(state, driver=False)
    if state.record.desired != "running":
        return _want_stopped(state, now)
    if state.phase is Phase.STOPPING:
        return _start(state, now, "definition changed")
    error = state.error or LifecycleError(
        domain="internal",
        message=f"the driver ended with exit code {event.exit_code}",
        hint="see the driver's log",
        stage=None,
        retryable=True,
    )
    state = replace(state, error=error)
    if error.retryable and state.attempt < ATTEMPTS_MAX:
        return _recover(state, now)
    failed, actions = _enter(state, Phase.FAILED, now, error.message)
    errors = state.problems or (Problem(message=error.message, hint=error.hint),)
    answered, answers = _answer_all(replace(failed, problems=()), "failed", errors)
    return answered, actions + answers


def _recover(state: PipelineState, now: int) -> Decision:
    wait = min(BACKOFF_MS_FIRST * 2**state.attempt, BACKOFF_MS_MAX)
    assert state.error is not None
    waiting = replace(state, attempt=state.attempt + 1, next_at=now + wait, problems=())
    return _enter(waiting, Phase.RECOVERING, now, state.error.message)


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


def _start(state: PipelineState, now: int, reason: str) -> Decision:
    fresh = replace(state, driver=True, next_at=None, problems=(), error=None)
    starting, actions = _enter(fresh, Phase.STARTING, now, reason)
    return starting, (*actions, StartDriver())


def _enter(state: PipelineState, phase: Phase, now: int, reason: str) -> Decision:
    if state.phase is phase:
        return state, ()
    entered = replace(state, phase=phase, since=now, reason=reason)
    return entered, (Announce(phase_from=state.phase),)


def _answer_all(
    state: PipelineState, result: Literal["done", "failed"], errors: tuple[Problem, ...] = ()
) -> Decision:
    answers = tuple(Answer(command=c, state=result, errors=errors) for c in state.pending)
    return replace(state, pending=()), answers
