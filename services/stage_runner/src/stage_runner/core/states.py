"""A pipeline as its runner sees it. Values only: `supervision` decides.

Times are those of a clock that never goes back, so that no change of the wall clock makes anything
wait. What people read is made of them where it is said.
"""

from dataclasses import dataclass, replace
from typing import Literal

from shared.events import Command, LifecycleError, PipelineRecord, Problem
from shared.lifecycle import Phase
from stage_runner.core.moves import Action, Announce, Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineState:
    record: PipelineRecord
    next: PipelineRecord | None = None  # accepted, but not said before what it removes is closed
    phase: Phase = Phase.CREATED
    since: int = 0
    driver: bool = False
    closing: PipelineRecord | None = None  # what the driver that lives or is waited for closes
    attempt: int = 0
    crashes: int = 0  # those of the attempts that had nothing to do with the outside world
    next_at: int | None = None
    problems: tuple[Problem, ...] = ()
    error: LifecycleError | None = None
    pending: tuple[Command, ...] = ()
    reason: str = ""
    blocked_by: str | None = None


Decision = tuple[PipelineState, tuple[Action, ...]]


def enter(state: PipelineState, phase: Phase, now: int, reason: str) -> Decision:
    if state.phase is phase:
        return state, ()
    blocked_by = state.blocked_by if phase is Phase.RUNNING else None
    entered = replace(state, phase=phase, since=now, reason=reason, blocked_by=blocked_by)
    return entered, (Announce(phase_from=state.phase),)


def answer_all(
    state: PipelineState, result: Literal["done", "failed"], errors: tuple[Problem, ...] = ()
) -> Decision:
    answers = tuple(Answer(command=c, state=result, errors=errors) for c in state.pending)
    return replace(state, pending=()), answers
