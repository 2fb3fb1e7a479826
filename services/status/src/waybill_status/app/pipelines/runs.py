"""Answers which runs a pipeline had in the last 30 days, as pages.

Promise: who follows the cursors gets each run once, with its end if it has ended. Runs are composed
of changes of phase, which are read as pages of `History`: a bounded part of the topic at a time. A
run may be longer than such a part, so the cursor of a page names one more event to read.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Final

from waybill_shared.contract.errors import Retryable, invalid
from waybill_shared.contract.words import HistoryGap
from waybill_shared.process.signal import loop_time_s
from waybill_status.app.pipelines.history import PAGE_S, History, read_start
from waybill_status.core.outcomes.views import PipelineKey
from waybill_status.core.pipelines.history import (
    OLDEST,
    Cursor,
    EventPlace,
    PipelineEvent,
)
from waybill_status.core.pipelines.runs import (
    PipelineRun,
    RunsCursor,
    RunsPage,
    compose,
    is_of_runs,
    read_runs_cursor,
)

EVENTS_MAX: Final = 1_000  # of one page of history
SEARCH_S: Final = 5.0  # then a page ends with what it has


@dataclass(slots=True, kw_only=True)
class _Search:
    """The events that are read so far: changes of phase in order, and where to read on."""

    events: list[PipelineEvent]
    cursor: Cursor | None
    gap: HistoryGap | None = None

    def runs(self) -> list[PipelineRun]:
        return compose(self.events)


class Runs:
    def __init__(self, history: History) -> None:
        self._history = history

    async def page(
        self, pipeline: PipelineKey, *, limit: int, after: str = "", cursor: str = ""
    ) -> RunsPage:
        """Return the newest runs, or those that began after an event, or those of the page after
        another one. If there is much to search, a page may have less than `limit`, or nothing, and
        `next`."""
        wanted = _read_start(after, cursor)
        try:
            async with asyncio.timeout(PAGE_S):
                if wanted.at.back:
                    return await self._back(pipeline, wanted, limit)
                return await self._forward(pipeline, wanted, limit)
        except TimeoutError as error:
            detail = f"the runs could not be read within {PAGE_S:.0f} s: try again"
            raise Retryable(detail) from error

    async def _back(self, pipeline: PipelineKey, wanted: RunsCursor, limit: int) -> RunsPage:
        low = wanted.at.place
        later = await self._later(pipeline, low, wanted.extra)
        search = _Search(events=[], cursor=wanted.at)
        over_at = loop_time_s() + SEARCH_S
        while search.cursor is not None:
            await self._read_back(pipeline, search)
            runs = [each for each in compose([*search.events, *later]) if _before(each, low)]
            if len(_whole(runs)) >= limit or loop_time_s() > over_at:
                break
        rows = runs if search.cursor is None else _whole(runs)
        items = rows[-limit:]
        following: RunsCursor | None = None
        if len(rows) > limit:
            at = Cursor(place=items[0].place, back=True)
            following = RunsCursor(at=at, extra=(items[0].place.offset,))
        elif search.cursor is not None:
            following = RunsCursor(at=search.cursor, extra=_extra(runs, wanted.extra))
        return RunsPage(items=tuple(items), next=following, gap=search.gap)

    async def _read_back(self, pipeline: PipelineKey, search: _Search) -> None:
        text = "" if search.cursor is None or search.cursor.place is None else str(search.cursor)
        page = await self._history.page(pipeline, limit=EVENTS_MAX, cursor=text)
        search.events[:0] = filter(is_of_runs, page.items)
        search.cursor, search.gap = page.next, search.gap or page.gap

    async def _later(
        self, pipeline: PipelineKey, low: EventPlace | None, extra: tuple[int, ...]
    ) -> list[PipelineEvent]:
        """Return the events that say how a run that began before `low` has ended."""
        if low is None or not extra:
            return []
        found: list[PipelineEvent] = []
        cursor: Cursor | None = Cursor(place=replace(low, offset=extra[0] - 1))
        while cursor is not None and not _has_ended(found):
            page = await self._history.page(pipeline, limit=EVENTS_MAX, after=_text(cursor.place))
            if page.gap is not None:
                return []
            found += filter(is_of_runs, page.items)
            cursor = page.next
        return [each for each in found if each.offset >= low.offset]

    async def _forward(self, pipeline: PipelineKey, wanted: RunsCursor, limit: int) -> RunsPage:
        search = _Search(events=await self._first(pipeline, wanted), cursor=wanted.at)
        over_at = loop_time_s() + SEARCH_S
        while search.cursor is not None:
            await self._read_on(pipeline, search)
            if len(_whole(search.runs())) > limit or loop_time_s() > over_at:
                break
        runs = search.runs()
        first_is_known = wanted.at.place is not None and not wanted.extra
        rows = _whole(runs) if first_is_known and search.gap is None else runs
        items, following = rows[:limit], None
        if len(rows) > limit:
            following = RunsCursor(at=Cursor(place=items[-1].place))
        elif search.cursor is not None and rows and rows[-1].end is None:
            known = (rows[-1].place.offset, rows[-1].leaving.offset)
            items, following = rows[:-1], RunsCursor(at=search.cursor, extra=known)
        elif search.cursor is not None:
            following = RunsCursor(at=search.cursor)
        return RunsPage(items=tuple(items), next=following, gap=search.gap)

    async def _read_on(self, pipeline: PipelineKey, search: _Search) -> None:
        place = None if search.cursor is None else search.cursor.place
        page = await self._history.page(pipeline, limit=EVENTS_MAX, after=_text(place))
        search.events += filter(is_of_runs, page.items)
        search.cursor, search.gap = page.next, search.gap or page.gap

    async def _first(self, pipeline: PipelineKey, wanted: RunsCursor) -> list[PipelineEvent]:
        """Return the events that are known of the run of which the page has the rest."""
        found: list[PipelineEvent] = []
        for offset in dict.fromkeys(wanted.extra):
            place = wanted.at.place and replace(wanted.at.place, offset=offset - 1)
            page = await self._history.page(pipeline, limit=1, after=_text(place))
            found += (each for each in page.items if each.offset == offset and page.gap is None)
        return found


def _read_start(after: str, cursor: str) -> RunsCursor:
    """Return where to begin. Raises Refusal for a text that is none of ours."""
    if cursor:
        found = read_runs_cursor(cursor)
        if found is None or after:
            detail = f"{cursor!r:.100} is no cursor of ours, or `after` is there as well"
            raise invalid("query.cursor", detail)
        return found
    return RunsCursor(at=read_start(after, "", "run of a pipeline"))


def _has_ended(events: list[PipelineEvent]) -> bool:
    """Return True if these events say how their first run has ended."""
    return any(run.end is not None for run in compose(events)[:1])


def _whole(runs: list[PipelineRun]) -> list[PipelineRun]:
    """Return the runs of which the begin was read."""
    return [run for run in runs if run.began is not None]


def _before(run: PipelineRun, low: EventPlace | None) -> bool:
    return low is None or run.place.offset < low.offset


def _extra(runs: list[PipelineRun], before: tuple[int, ...]) -> tuple[int, ...]:
    """Return where the first event is that may say how the run before these has ended."""
    if not runs:
        return before
    first = runs[0]
    return (first.leaving.offset if first.began is None else first.place.offset,)


def _text(place: EventPlace | None) -> str:
    """Return the place as `after` of a history; a place before the first offset is the oldest."""
    return OLDEST if place is None or place.offset < 0 else str(place)
