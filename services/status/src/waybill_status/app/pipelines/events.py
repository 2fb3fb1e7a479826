"""Remembers what has happened to each pipeline lately.

A claim and a change of phase are events, and so is a change of the obstacle. Older events are read
again, by `waybill_status.app.pipelines.history`.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import pipeline_key
from waybill_shared.kafka.follower import FollowedTopic
from waybill_shared.kafka.partitioner import partition_of
from waybill_shared.process.signal import Signal
from waybill_status.core.outcomes.views import PipelineKey
from waybill_status.core.pipelines.history import PipelineEvent, repeats

KEPT_MS = 24 * 3_600_000  # of the topic's 30 days
EVENTS_MAX = 500  # per pipeline, the newest
PIPELINES_MAX = 10_000  # then the oldest is forgotten: it was deleted long ago


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentEvents:
    """All events of a pipeline from `floor` on, oldest first."""

    topic_id: str
    partition: int
    floor: int
    events: tuple[PipelineEvent, ...]


@dataclass(slots=True, kw_only=True)
class _Story:
    floor: int
    events: deque[PipelineEvent] = field(default_factory=deque)

    def add(self, event: PipelineEvent) -> None:
        self.events.append(event)
        if len(self.events) > EVENTS_MAX:
            self.floor = self.events.popleft().offset + 1


class Events:
    """The newest events of all pipelines; used on the event loop only. `following`: which topic
    this process follows, and from where on."""

    def __init__(self, following: Callable[[], FollowedTopic | None]) -> None:
        self._following = following
        self._topic_id: str | None = None
        self._stories: dict[PipelineKey, _Story] = {}
        self._ends: dict[int, int] = {}
        self._forgotten: dict[int, int] = {}  # by partition: the end of what was forgotten
        self.changed = Signal()

    def take(self, event: PipelineEvent) -> None:
        place = event.place
        if place.topic_id != self._topic_id:
            self._start_anew(place.topic_id)
        if place.offset < self._ends.get(place.partition, 0):
            return  # read again after a fault
        self._ends[place.partition] = place.offset + 1
        key = (event.event.tenant, event.event.pipeline_uid)
        story = self._stories.get(key)
        if story is None:
            story = self._stories[key] = _Story(floor=self._floor(place.partition))
            self._make_room()
        if not repeats(event, story.events[-1] if story.events else None):
            story.add(event)
            self.changed.notify()

    def recent(self, pipeline: PipelineKey) -> RecentEvents:
        """Return what is remembered of a pipeline. Raises Retryable before the topic is read."""
        following = self._following()
        if following is None or not following.begins:
            raise Retryable("what happened is still being read: this process has just started")
        partition = partition_of(pipeline_key(*pipeline), len(following.begins))
        if self._topic_id != following.topic_id:
            self._start_anew(following.topic_id)
        story = self._stories.get(pipeline) or _Story(floor=self._floor(partition))
        return RecentEvents(
            topic_id=following.topic_id,
            partition=partition,
            floor=story.floor,
            events=tuple(story.events),
        )

    def _floor(self, partition: int) -> int:
        following = self._following()
        begin = 0 if following is None else following.begins.get(partition, 0)
        return max(begin, self._forgotten.get(partition, 0))

    def _make_room(self) -> None:
        if len(self._stories) > PIPELINES_MAX:
            gone = self._stories.pop(next(iter(self._stories)))
            last = gone.events[-1].place
            self._forgotten[last.partition] = last.offset + 1

    def _start_anew(self, topic_id: str) -> None:
        """Forget the topic before, which was deleted."""
        self._topic_id = topic_id
        self._stories.clear()
        self._ends.clear()
        self._forgotten.clear()
