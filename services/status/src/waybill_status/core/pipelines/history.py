"""What happened to a pipeline: events, their ids, and the cursors of pages. Pure.

An id is a position in the lifecycle topic: the topic's own id, a partition and an offset. So it is
the same in every process and after every restart, and is no position in a topic that was created
again.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.run_words import DegradedCause
from waybill_shared.contract.words import HistoryGap

OLDEST: Final = "0"
"""In the place of an id: before all events that are kept."""
_ID: Final = re.compile(r"([A-Za-z0-9_-]{1,64})\.([0-9]{1,9})\.([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPlace:
    topic_id: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic_id}.{self.partition}.{self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineEvent:
    """An event of a pipeline, where it is in the topic."""

    place: EventPlace
    event: LifecycleEvent

    @property
    def id(self) -> str:
        return str(self.place)

    @property
    def offset(self) -> int:
        return self.place.offset

    @property
    def kind(self) -> str:
        if self.event.kind != "heartbeat":
            return self.event.kind
        only_degraded = self.event.conditions and self.event.blocked_by is None
        return "degraded" if only_degraded else "blocked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The start of a page: after this position and on, or before it and `back`. Without a place: at
    the oldest event, or the newest."""

    place: EventPlace | None = None
    back: bool = False

    def __str__(self) -> str:
        return f"{'before' if self.back else 'after'}.{self.place or OLDEST}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """Events, oldest first. `next`: the cursor of the page after it; None: there is none now.
    `seen`: the place up to which was read. `gap`: why events are missing before the first one."""

    items: tuple[PipelineEvent, ...]
    next: Cursor | None = None
    seen: EventPlace | None = None
    gap: HistoryGap | None = None


def read_place(text: str) -> EventPlace | None:
    """Return the place that an id names; None if it is no id."""
    found = _ID.fullmatch(text)
    if found is None:
        return None
    topic_id, partition, offset = found.groups()
    return EventPlace(topic_id=topic_id, partition=int(partition), offset=int(offset))


def read_cursor(text: str) -> Cursor | None:
    """Return the cursor that is written so; None if it is no cursor."""
    side, _, place = text.partition(".")
    found = read_place(place)
    if found is None or side not in {"after", "before"}:
        return None
    return Cursor(place=found, back=side == "before")


def repeats(event: PipelineEvent, before: PipelineEvent | None) -> bool:
    """Return True for a heartbeat that reports the same obstacle, and the same stopped stages, as
    the event before it. That is no event."""
    if event.event.kind != "heartbeat" or before is None:
        return False
    return _news_of(event) == _news_of(before)


def _news_of(event: PipelineEvent) -> tuple[str | None, frozenset[str | None]]:
    failed = (c.stage for c in event.event.conditions if c.cause == DegradedCause.STAGE_FAILED)
    return event.event.blocked_by, frozenset(failed)


def without_repeats(
    events: Iterable[PipelineEvent], before: PipelineEvent | None
) -> list[PipelineEvent]:
    found = []
    for each in events:
        if not repeats(each, before):
            found.append(each)
        before = each
    return found
