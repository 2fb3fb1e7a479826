"""Composes the runs of a pipeline of what happened to it. Pure.

A run begins when its driver is started: with the first change of phase that has its number. It ends
when its driver has ended: with the change of phase to `Recovering`, `Failed` or `Finished`, or with
the one after a phase in which it stops. What comes with a higher number, and no end before, was
another runner.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from waybill_shared.contract.lifecycle import RUN_FOLLOWS, STOPS, WITHOUT_DRIVER, Phase
from waybill_shared.contract.lifecycle_events import LifecycleError, LifecycleEvent
from waybill_shared.contract.run_words import NEXT_RUN, READ_ALL, TO_BE, RunEnd
from waybill_shared.contract.words import HistoryGap
from waybill_status.core.pipelines.history import (
    Cursor,
    EventPlace,
    PipelineEvent,
    read_cursor,
)

BY_ITSELF: Final = frozenset({Phase.RECOVERING, Phase.FAILED})
EXTRA: Final = "~"
_OFFSET: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRun:
    """A run. `place`: of its first event that is known. `began`: None if it began before that.
    `leaving`: its last event, or the one with which its end begins. A stop that becomes a stronger
    one, or that a start overtakes, began with the first event; one that overtakes a rescale or a
    restart, with its own."""

    place: EventPlace
    run: int
    generation: int
    began: int | None
    started_by: str | None
    attempt: int
    parallelism: int | None
    phase: str
    leaving: EventPlace
    stopping: LifecycleEvent | None = None
    ended: int | None = None
    end: RunEnd | None = None
    reason: str | None = None
    ended_by: str | None = None
    error: LifecycleError | None = None
    batches: int | None = None
    rows: int | None = None

    @property
    def id(self) -> str:
        return str(self.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsCursor:
    """The start of a page. `extra`: offsets of events that are read, too. Back: of the first one
    that may say how the newest run of the page has ended. Else: of the first and the last one that
    are known of a run, of which the page has the rest."""

    at: Cursor
    extra: tuple[int, ...] = ()

    def __str__(self) -> str:
        return EXTRA.join([str(self.at), *map(str, self.extra)])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsPage:
    """Runs, oldest first. `next` and `gap`: as in a page of events."""

    items: tuple[PipelineRun, ...]
    next: RunsCursor | None = None
    gap: HistoryGap | None = None


def read_runs_cursor(text: str) -> RunsCursor | None:
    """Return the cursor that is written so; None if it is no cursor."""
    place, *extra = text.split(EXTRA)
    at = read_cursor(place)
    if at is None or len(extra) > 2 or not all(map(_OFFSET.fullmatch, extra)):
        return None
    return RunsCursor(at=at, extra=tuple(map(int, extra)))


def is_of_runs(event: PipelineEvent) -> bool:
    """Return True for an event that says something of a run."""
    return event.event.kind == "transition" and event.event.run > 0


def compose(events: Iterable[PipelineEvent]) -> list[PipelineRun]:
    """Return the runs of these changes of phase, oldest first. The first one may have started
    before them."""
    runs: list[PipelineRun] = []
    for each in events:
        if runs:
            runs[-1] = _count(runs[-1], each.event)
        current = runs[-1] if runs else None
        if current is not None and current.run >= each.event.run:
            runs[-1] = _go_on(current, each)
            continue
        if current is not None and current.end is None:
            runs[-1] = _supersede(current, each.event)
        runs.append(_begin(each))
    return runs


def _begin(first: PipelineEvent) -> PipelineRun:
    event = first.event
    known = event.phase == Phase.STARTING and event.phase_from in WITHOUT_DRIVER
    run = PipelineRun(
        place=first.place,
        run=event.run,
        generation=event.generation,
        began=event.at if known else None,
        started_by=event.actor if known else None,
        attempt=event.attempt,
        parallelism=event.parallelism,
        phase=event.phase,
        leaving=first.place,
    )
    return run if known else _count(_go_on(run, first), event)


def _count(run: PipelineRun, event: LifecycleEvent) -> PipelineRun:
    """Return the run with what its driver has done, if the event says it. Other events say less."""
    done = event.done
    if done is None or done.run != run.run:
        return run
    return replace(
        run, batches=max(done.batches, run.batches or 0), rows=max(done.rows, run.rows or 0)
    )


def _go_on(run: PipelineRun, at: PipelineEvent) -> PipelineRun:
    """Return the run after another event with its number."""
    event = at.event
    if run.end is not None:
        return run  # such as a sink that is closed after the end
    stops = event.phase in STOPS and _is_first_stop(run.stopping, event)
    leaves = stops or run.stopping is None
    run = replace(run, phase=event.phase, leaving=at.place if leaves else run.leaving)
    if event.phase in BY_ITSELF:
        crashed = event.error is not None and event.error.domain == "internal"
        return _end(run, event, RunEnd.CRASHED if crashed else RunEnd.FAILED)
    if event.phase == Phase.FINISHED:
        return _end(run, event, RunEnd.FINISHED)
    if event.phase == Phase.STOPPED:
        return _stop(run, event)
    return replace(run, stopping=event) if stops else run


def _is_first_stop(stopping: LifecycleEvent | None, event: LifecycleEvent) -> bool:
    if stopping is None:
        return True
    return stopping.phase in RUN_FOLLOWS and stopping.phase != event.phase


def _stop(run: PipelineRun, event: LifecycleEvent) -> PipelineRun:
    if run.stopping is None:
        return _take_over(run)
    return _end(run, event, _find_end(run.stopping), run.stopping)


def _supersede(run: PipelineRun, following: LifecycleEvent) -> PipelineRun:
    """Return the run as it has ended when the next one begins."""
    if run.stopping is None:
        return _take_over(run)
    return _end(run, following, _find_end(run.stopping), run.stopping)


def _find_end(stopping: LifecycleEvent) -> RunEnd:
    if stopping.reason in (READ_ALL, NEXT_RUN):
        return RunEnd.FINISHED
    return RunEnd.STOPPED if stopping.reason.startswith(TO_BE) else RunEnd.SUPERSEDED


def _take_over(run: PipelineRun) -> PipelineRun:
    return replace(run, end=RunEnd.TAKEN_OVER)


def _end(
    run: PipelineRun, event: LifecycleEvent, end: RunEnd, said: LifecycleEvent | None = None
) -> PipelineRun:
    because = said or event
    return replace(
        run,
        ended=event.at,
        end=end,
        reason=because.reason or None,
        ended_by=because.actor,
        error=event.error if said is None else said.error,
        phase=event.phase if said is None else Phase.STOPPED,
    )
