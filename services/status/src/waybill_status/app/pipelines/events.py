"""Remembers what has happened to each pipeline, and lets requests follow what happens next.

A claim and a change of phase are events, and so is a change of the obstacle.
"""

from collections import defaultdict, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.problems import Slug
from waybill_shared.process.signal import Signal
from waybill_status.core.outcomes.views import PipelineKey

KEPT_MS = 24 * 3_600_000  # of the topic's 30 days
EVENTS_MAX = 500  # per pipeline, the newest
PIPELINES_MAX = 10_000  # then the oldest is forgotten: it was deleted long ago
SILENCE_S = 15.0  # then a comment says that the connection lives


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineEvent:
    """An event of a pipeline. `id` follows from the topic, so it is the same in every process and
    after every restart."""

    id: str
    kind: str
    event: LifecycleEvent


@dataclass(slots=True)
class _Story:
    events: deque[PipelineEvent] = field(default_factory=lambda: deque(maxlen=EVENTS_MAX))
    blocked_by: str | None = None
    last_at: int = -1
    same_at: int = 0


class Events:
    """The newest events of all pipelines; `take`, `of` and `follow` are called on the event
    loop."""

    def __init__(self, *, streams_max: int) -> None:
        self._streams_max = streams_max
        self._streams = 0
        self._stories: dict[PipelineKey, _Story] = defaultdict(_Story)
        self._changed = Signal()
        self._closing = False

    def take(self, event: LifecycleEvent) -> None:
        story = self._stories[event.tenant, event.pipeline_uid]
        kind: str = event.kind
        if kind == "heartbeat":
            kind = "blocked"
            if event.blocked_by == story.blocked_by:
                return
        story.blocked_by = event.blocked_by
        story.same_at = story.same_at + 1 if event.at == story.last_at else 0
        story.last_at = event.at
        story.events.append(PipelineEvent(id=f"{event.at}.{story.same_at}", kind=kind, event=event))
        if len(self._stories) > PIPELINES_MAX:
            del self._stories[next(iter(self._stories))]
        self._changed.notify()

    def of(self, pipeline: PipelineKey) -> list[PipelineEvent]:
        """Return the events of a pipeline, oldest first."""
        story = self._stories.get(pipeline)
        return [] if story is None else list(story.events)

    def follow(self, pipeline: PipelineKey, after: str) -> AsyncIterator[PipelineEvent | None]:
        """Yield all events after the one with that id, or all, and then each new one. Yield None
        after a while without events. Raises Refusal if too many follow."""
        if self._streams >= self._streams_max:
            detail = f"{self._streams} streams of events are open: try again"
            raise Refusal(Slug.TOO_MANY_WAITERS, detail)
        return self._follow(pipeline, after)

    async def _follow(
        self, pipeline: PipelineKey, after: str
    ) -> AsyncIterator[PipelineEvent | None]:
        self._streams += 1
        try:
            while True:
                new = _after(self.of(pipeline), after)
                for event in new:
                    after = event.id
                    yield event
                if self._closing:
                    return
                if not new and not await self._changed.wait(SILENCE_S):
                    yield None
        finally:
            self._streams -= 1

    def close(self) -> None:
        """End every stream."""
        self._closing = True
        self._changed.notify()


def _after(events: list[PipelineEvent], id: str) -> list[PipelineEvent]:
    ids = [each.id for each in events]
    return events[ids.index(id) + 1 :] if id in ids else events
