"""Answers what happened to a pipeline in the last 30 days, as pages and as a stream.

Promise: who continues after the id of an event, or with the cursor of a page, misses no later
event and gets none twice, on any status process and after any restart. If events are missing, a
word says why. The newest events are in memory; older ones are read again from the topic, a bounded
part at a time.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Protocol

from waybill_shared.contract.errors import Refusal, Retryable, invalid
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import HistoryGap
from waybill_shared.process.signal import loop_time_s
from waybill_status.app.pipelines.events import Events, RecentEvents
from waybill_status.core.outcomes.views import PipelineKey
from waybill_status.core.pipelines.history import (
    OLDEST,
    Cursor,
    EventPlace,
    HistoryPage,
    PipelineEvent,
    read_cursor,
    read_place,
    without_repeats,
)

OFFSETS_MAX: Final = 20_000  # that one page examines: some megabytes
STEP_MIN: Final = 1_000  # offsets that are read together, at first
STEP_GROWTH: Final = 4
PAGE_S: Final = 15.0  # for one page; two are read at a time, and others wait
SILENCE_S: Final = 15.0  # then a comment says that the connection lives
RETRY_S: Final = 1.0  # until a stream reads again what could not be read
STREAM_MAX: Final = 500  # events that a stream reads at a time
Part = tuple[int, int]
"""Offsets, from the first to before the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastReading:
    """The content of a part of the topic: the raw events of one pipeline, up to before `end`.
    `start`: the first offset that the topic keeps after the reading."""

    events: tuple[PipelineEvent, ...]
    end: int
    start: int


class PastPipelineEvents(Protocol):
    """The topic of events. Each call raises Retryable."""

    async def start(self, topic_id: str, partition: int) -> int:
        """Return the first offset that is kept. Raises Retryable also if the topic has another id
        now."""

    async def read(
        self, pipeline: PipelineKey, recent: RecentEvents, part: Part, most: int
    ) -> PastReading:
        """Return the events there, at most `most` of them. Raises Retryable also if the topic was
        created again meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begin:
    """The position to read from, in the present topic: from `place` on, or before it."""

    place: EventPlace | None
    gap: HistoryGap | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """The events that were read again, up to the position `at`. `last`: the last event, maybe a
    repetition."""

    at: EventPlace
    events: tuple[PipelineEvent, ...] = ()
    last: PipelineEvent | None = None
    gap: HistoryGap | None = None


class History:
    def __init__(self, events: Events, past: PastPipelineEvents, *, streams_max: int) -> None:
        self._events = events
        self._past = past
        self._streams_max = streams_max
        self._streams = 0
        self._closing = False

    async def page(
        self, pipeline: PipelineKey, *, limit: int, after: str = "", cursor: str = ""
    ) -> HistoryPage:
        """Return the newest events, or those after an id, or those of the page after another one.
        If there is much to search, a page may have less than `limit`, or nothing, and `next`."""
        wanted = read_start(after, cursor, "event of a pipeline")
        try:
            async with asyncio.timeout(PAGE_S):
                if wanted.back:
                    return await self._back(pipeline, wanted.place, limit)
                return await self._forward(pipeline, wanted.place, limit)
        except TimeoutError as error:
            detail = f"the history could not be read within {PAGE_S:.0f} s: try again"
            raise Retryable(detail) from error

    def follow(
        self, pipeline: PipelineKey, after: str
    ) -> AsyncIterator[PipelineEvent | HistoryGap | None]:
        """Yield all events after the one with that id, or those in memory, and then each new one.
        Yield a word where there is a gap, and None after a while without events.
        Raises Refusal if too many follow."""
        if after:
            place = read_start(after, "", "event of a pipeline").place
        else:
            recent = self._events.recent(pipeline)
            place = _place(recent, recent.floor - 1)
        if self._streams >= self._streams_max:
            detail = f"{self._streams} streams of events are open: try again"
            raise Refusal(Slug.TOO_MANY_WAITERS, detail)
        return self._follow(pipeline, place)

    def close(self) -> None:
        """End every stream."""
        self._closing = True
        self._events.changed.notify()

    async def _follow(
        self, pipeline: PipelineKey, place: EventPlace | None
    ) -> AsyncIterator[PipelineEvent | HistoryGap | None]:
        self._streams += 1
        try:
            while True:
                try:
                    page = await self._forward(pipeline, place, STREAM_MAX)
                except Retryable:
                    if self._closing:
                        return
                    yield None
                    await asyncio.sleep(RETRY_S)
                    continue
                if page.gap is not None:
                    yield page.gap
                for event in page.items:
                    yield event
                place = page.seen
                if page.next is not None:
                    yield None  # the connection lives while much is searched
                elif self._closing:
                    return
                elif not page.items and not await self._events.changed.wait(SILENCE_S):
                    yield None
        finally:
            self._streams -= 1

    async def _forward(
        self, pipeline: PipelineKey, place: EventPlace | None, limit: int
    ) -> HistoryPage:
        recent = self._events.recent(pipeline)
        begin = await self._begin(recent, place)
        if begin.place is not None and begin.place.offset + 1 >= recent.floor:
            past = _Past(at=begin.place)
        else:
            past = await self._read_past(pipeline, recent, begin, limit)
            recent = self._events.recent(pipeline)  # more came meanwhile
        at, found = past.at, list(past.events)
        more = at.topic_id != recent.topic_id or at.offset + 1 < recent.floor
        if not more:
            newer = [each for each in recent.events if each.offset > at.offset]
            found += without_repeats(newer, past.last)
            at = newer[-1].place if newer else at
        if len(found) > limit:
            more, found = True, found[:limit]
            at = found[-1].place
        following = Cursor(place=at) if more else None
        return HistoryPage(items=tuple(found), next=following, seen=at, gap=past.gap)

    async def _read_past(
        self, pipeline: PipelineKey, recent: RecentEvents, begin: _Begin, limit: int
    ) -> _Past:
        """Read a part of the topic after a place, up to what is in memory."""
        start = await self._past.start(recent.topic_id, recent.partition)
        place = begin.place
        # From the place itself: what is a repetition depends on the event there.
        first = start if place is None else max(start, place.offset)
        end = max(first, min(first + OFFSETS_MAX, recent.floor))
        reading = await self._past.read(pipeline, recent, (first, end), limit + 2)
        seen = -1 if place is None else place.offset
        found = [each for each in without_repeats(reading.events, None) if each.offset > seen]
        expired = place is not None and place.offset + 1 < reading.start
        return _Past(
            at=_place(recent, max(seen, reading.end - 1)),
            events=tuple(found),
            last=reading.events[-1] if reading.events else None,
            gap=HistoryGap.EXPIRED if expired else begin.gap,
        )

    async def _back(
        self, pipeline: PipelineKey, place: EventPlace | None, limit: int
    ) -> HistoryPage:
        recent = self._events.recent(pipeline)
        begin = await self._begin(recent, place)
        if begin.gap is not None:
            return HistoryPage(items=(), gap=begin.gap)
        end = None if place is None else place.offset
        found = [each for each in recent.events if end is None or each.offset < end]
        low = recent.floor if end is None else min(end, recent.floor)
        if len(found) >= limit:
            return _newest(recent, found, limit, low, 0)
        try:
            start = await self._past.start(recent.topic_id, recent.partition)
            older, low = await self._search_back(pipeline, recent, (start, low), limit - len(found))
        except Retryable:
            if not found:
                raise
            return _newest(recent, found, limit, low, 0)
        gap = HistoryGap.EXPIRED if end is not None and end < start else None
        last = older[-1] if older else None
        page = _newest(recent, [*older, *without_repeats(found, last)], limit, low, start)
        return HistoryPage(items=page.items, next=page.next, gap=gap)

    async def _search_back(
        self, pipeline: PipelineKey, recent: RecentEvents, part: Part, wanted: int
    ) -> tuple[list[PipelineEvent], int]:
        """Return events before the end of the part, and where the search has ended."""
        start, low = part
        end, step, over_at = low, max(STEP_MIN, STEP_GROWTH * wanted), loop_time_s() + PAGE_S / 2
        raw: list[PipelineEvent] = []
        found: list[PipelineEvent] = []
        while low > start and end - low < OFFSETS_MAX and len(found) < wanted:
            if raw and loop_time_s() > over_at:
                break
            first = max(start, low - step, end - OFFSETS_MAX)
            reading = await self._past.read(pipeline, recent, (first, low), low - first)
            raw[:0] = reading.events
            low, step = first, step * STEP_GROWTH
            found = without_repeats(raw, None)
            if low > start and _may_repeat(raw):
                found = found[1:]
        if low > start and _may_repeat(raw):
            return (found, raw[0].offset + 1) if len(raw) > 1 else (raw, low)
        return found, low

    async def _begin(self, recent: RecentEvents, place: EventPlace | None) -> _Begin:
        if place is None:
            return _Begin(place=None)
        if place.topic_id != recent.topic_id:
            await self._past.start(recent.topic_id, recent.partition)  # is it still that one?
            return _Begin(place=None, gap=HistoryGap.TOPIC_RECREATED)
        if place.partition != recent.partition:
            return _Begin(place=None, gap=HistoryGap.OTHER_PIPELINE)
        return _Begin(place=place)


def _may_repeat(raw: list[PipelineEvent]) -> bool:
    """Return True if it depends on what is before the first one whether that is an event."""
    return bool(raw) and raw[0].kind == "blocked"


def _newest(
    recent: RecentEvents, found: list[PipelineEvent], limit: int, low: int, start: int
) -> HistoryPage:
    """Return the newest of what was found from `low` on; the topic begins at `start`."""
    items = found[-limit:]
    before = items[0].offset if len(found) > limit else low
    if len(found) <= limit and low <= start:
        return HistoryPage(items=tuple(items))
    return HistoryPage(items=tuple(items), next=Cursor(place=_place(recent, before), back=True))


def _place(recent: RecentEvents, offset: int) -> EventPlace:
    return EventPlace(topic_id=recent.topic_id, partition=recent.partition, offset=offset)


def read_start(after: str, cursor: str, what: str) -> Cursor:
    """Return where a page of `what` begins. Raises Refusal for a text that is none of ours."""
    if cursor:
        found = read_cursor(cursor)
        if found is None or after:
            detail = f"{cursor!r:.100} is no cursor of ours, or `after` is there as well"
            raise invalid("query.cursor", detail)
        return found
    if not after:
        return Cursor(back=True)
    place = read_place(after)
    if place is None and after != OLDEST:
        raise invalid("query.after", f"{after!r:.100} is the id of no {what}")
    return Cursor(place=place)
