"""Lets requests follow the events of `waybill.status`.

Promise: a reader that continues after the id of an event misses none of the later ones, on any
status process and after any restart. The id names the position in each partition when the event was
sent. So any process can continue from there: it remembers the newest events and reads older ones
again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.process.signal import Signal, loop_time_s

EVENTS_MAX: Final = 20_000  # in memory
NEWEST_MAX: Final = 500
PAST_MAX: Final = 1_000  # events that are read again at a time
SILENCE_S: Final = 15.0  # then the reader gets the present position
TOGETHER_MAX: Final = 500  # skipped in a row before other tasks run
Ends = Mapping[int, int]
"""The offset after the last one read, by partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """The events that a reader wants; None: any. `labels`: those of a watch that must be there."""

    tenant: str
    types: frozenset[str] = frozenset()
    pipeline: str | None = None
    stage: str | None = None
    watch: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def takes(self, event: StatusEvent) -> bool:
        named = (
            (self.pipeline, event.pipeline),
            (self.stage, event.stage),
            (self.watch, event.data.get("watch")),
        )
        labels = event.data.get("labels")
        has = labels if isinstance(labels, dict) else {}
        return (
            event.tenant == self.tenant
            and (not self.types or event.type in self.types)
            and all(wanted is None or wanted == of for wanted, of in named)
            and all(has.get(name) == value for name, value in self.labels.items())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedEvent:
    event: StatusEvent
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SentEvent:
    """An event of a stream; `id`: where to continue after it. Without an event it only has the
    position. `cut`: the reader was too slow, and this is the last."""

    id: str
    event: StatusEvent | None = None
    cut: bool = False


class PastEvents(Protocol):
    async def read(self, begin: Ends, end: Ends, most: int) -> tuple[list[PlacedEvent], bool]:
        """Return the events that are still there, at most `most` of them, in the order of each
        partition. Also return True if these are all. Raises Retryable."""


def write_ends(ends: Ends) -> str:
    read = {partition: end for partition, end in ends.items() if end} or {0: 0}
    return ".".join(f"{partition}-{end}" for partition, end in sorted(read.items()))


def read_ends(text: str) -> dict[int, int]:
    """Return the positions in an id. Raises Refusal if it is no id."""
    found: dict[int, int] = {}
    try:
        for part in text.split(".") if text else ():
            partition, _, end = part.partition("-")
            found[_number(partition)] = _number(end)
    except ValueError:
        detail = f"{text!r:.100} is the id of no event: Last-Event-ID is that of the last one seen"
        error = {"message": detail, "path": "header.last-event-id"}
        raise Refusal(Slug.INVALID, detail, errors=[error]) from None
    return found


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise ValueError(text)
    return int(text)


class EventLog:
    """The newest events and their readers; used on the event loop only. `begins`: where this
    process started to read the topic, by partition."""

    def __init__(self, past: PastEvents, *, begins: Callable[[], Ends], streams_max: int) -> None:
        self._past = past
        self._begins = begins
        self._streams_max = streams_max
        self._streams = 0
        self._events: deque[PlacedEvent] = deque()
        self._first = 0  # how many were dropped from memory
        self._floor: dict[int, int] = {}  # by partition: the end of what was dropped
        self._ends: dict[int, int] = {}
        self._changed = Signal()
        self._closing = False

    def take(self, event: StatusEvent, place: tuple[int, int]) -> None:
        partition, offset = place
        if offset < self._ends.get(partition, 0):
            return  # read again after a fault
        self._ends[partition] = offset + 1
        self._events.append(PlacedEvent(event=event, partition=partition, offset=offset))
        if len(self._events) > EVENTS_MAX:
            gone = self._events.popleft()
            self._floor[gone.partition] = gone.offset + 1
            self._first += 1
        self._changed.notify()

    def newest(self, wanted: EventFilter) -> tuple[list[StatusEvent], str]:
        """Return the newest events in memory, oldest first, and the id after which to follow."""
        found = [each.event for each in self._events if wanted.takes(each.event)]
        return found[-NEWEST_MAX:], write_ends(self._now())

    def follow(self, wanted: EventFilter, after: str | None) -> AsyncIterator[SentEvent]:
        """Yield all events after the one with that id, or from now on, and then each new one. At
        the start of the stream, and after a while without events, an item has the position only."""
        begin = None if after is None else read_ends(after)
        if self._streams >= self._streams_max:
            detail = f"{self._streams} streams of events are open: try again"
            raise Refusal(Slug.TOO_MANY_WAITERS, detail)
        return self._follow(wanted, begin)

    def close(self) -> None:
        """End every stream."""
        self._closing = True
        self._changed.notify()

    async def _follow(self, wanted: EventFilter, begin: Ends | None) -> AsyncIterator[SentEvent]:
        self._streams += 1
        try:
            now = self._now()
            # An id that is further than the topic is of one that was deleted.
            seen = now if begin is None else {p: min(begin.get(p, 0), at) for p, at in now.items()}
            yield SentEvent(id=write_ends(seen))
            async for older in self._read_again(wanted, seen):
                yield older
            at, sent_at = self._first, loop_time_s()
            while not self._closing:
                while at >= self._first and (placed := self._at(at)) is not None:
                    at += 1
                    if (sent := _send(placed, wanted, seen)) is not None:
                        yield sent
                        sent_at = loop_time_s()
                    elif at % TOGETHER_MAX == 0:
                        await asyncio.sleep(0)
                if at < self._first:
                    yield SentEvent(id=write_ends(seen), cut=True)
                    return
                if (left_s := sent_at + SILENCE_S - loop_time_s()) <= 0:
                    yield SentEvent(id=write_ends(seen))
                    sent_at = loop_time_s()
                elif not self._closing:
                    await self._changed.wait(left_s)
        finally:
            self._streams -= 1

    def _at(self, index: int) -> PlacedEvent | None:
        place = index - self._first
        return self._events[place] if place < len(self._events) else None

    async def _read_again(
        self, wanted: EventFilter, seen: dict[int, int]
    ) -> AsyncIterator[SentEvent]:
        """Yield events that are no longer in memory; `seen` moves."""
        while older := {p: at for p, at in self._recall().items() if seen.get(p, 0) < at}:
            begin = {partition: seen.get(partition, 0) for partition in older}
            found, all_of_it = await self._past.read(begin, older, PAST_MAX)
            for placed in found:
                if (sent := _send(placed, wanted, seen)) is not None:
                    yield sent
            if all_of_it:
                seen.update({p: max(seen.get(p, 0), at) for p, at in older.items()})
            yield SentEvent(id=write_ends(seen))

    def _recall(self) -> Ends:
        """Return the positions from which events are in memory."""
        return {**self._begins(), **self._floor}

    def _now(self) -> dict[int, int]:
        """Return the positions up to which the topic was read here."""
        return {**self._begins(), **self._ends}


def _send(placed: PlacedEvent, wanted: EventFilter, seen: dict[int, int]) -> SentEvent | None:
    if placed.offset < seen.get(placed.partition, 0):
        return None
    seen[placed.partition] = placed.offset + 1
    return (
        SentEvent(id=write_ends(seen), event=placed.event) if wanted.takes(placed.event) else None
    )
