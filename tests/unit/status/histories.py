"""The lifecycle topic in memory, and processes of status that have read a part of it."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from clocks import NOW
from unit.status.slots import KEY, life
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import pipeline_key
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.words import HistoryGap
from waybill_shared.kafka.follower import FollowedTopic
from waybill_shared.kafka.partitioner import partition_of
from waybill_status.app.pipelines.events import Events, RecentEvents
from waybill_status.app.pipelines.history import History, Part, PastReading
from waybill_status.core.outcomes.views import PipelineKey
from waybill_status.core.pipelines.history import EventPlace, PipelineEvent, without_repeats

Sent = PipelineEvent | HistoryGap | None
PARTITIONS = 8
MINE = partition_of(pipeline_key(*KEY), PARTITIONS)
BEAT = replace(life(), kind="heartbeat")


async def _nothing() -> None:
    """Nothing happens while a part is read."""


def beat(blocked_by: str | None) -> LifecycleEvent:
    return replace(BEAT, blocked_by=blocked_by)


class LifeTopic:
    """Fulfils `PastPipelineEvents`. Offsets from `start` on are kept."""

    def __init__(self, id: str = "topic-1") -> None:
        self.id = id
        self.placed: list[PipelineEvent] = []
        self.start_at = 0
        self.end = 0
        self.away = False
        self.parts: list[int] = []
        self.meanwhile: Callable[[], Awaitable[None]] = _nothing
        self._listeners: list[Events] = []

    def write(self, *events: LifecycleEvent, others: int = 0) -> list[PipelineEvent]:
        """Write events, with so many of other pipelines before each."""
        new = []
        for event in events:
            place = EventPlace(topic_id=self.id, partition=MINE, offset=self.end + others)
            new.append(PipelineEvent(place=place, event=event))
            self.end += others + 1
        self.placed += new
        for each in new:
            for listener in self._listeners:
                listener.take(each)
        return new

    def phases(self, count: int, *, others: int = 0) -> list[PipelineEvent]:
        return self.write(*(life(at=NOW + self.end) for _ in range(count)), others=others)

    def events(self) -> list[str]:
        """The ids of all events that are kept."""
        kept = (each for each in self.placed if each.offset >= self.start_at)
        return [each.id for each in without_repeats(kept, None)]

    def process(self, since: int | None = None) -> History:
        """Return what a process knows that has read the topic from this offset on."""
        begin = self.end if since is None else since
        begins = dict.fromkeys(range(PARTITIONS), begin)
        events = Events(lambda: FollowedTopic(topic_id=self.id, begins=begins))
        for each in self.placed:
            if each.offset >= max(begin, self.start_at):
                events.take(each)
        self._listeners.append(events)
        return History(events, self, streams_max=1)

    async def start(self, topic_id: str, partition: int) -> int:
        self._answer(topic_id)
        assert partition == MINE
        return self.start_at

    async def read(
        self, pipeline: PipelineKey, recent: RecentEvents, part: Part, most: int
    ) -> PastReading:
        self._answer(recent.topic_id)
        first, last = part
        self.parts.append(last - first)
        await asyncio.sleep(0)
        assert pipeline == KEY
        within = (each for each in self.placed if max(first, self.start_at) <= each.offset < last)
        found = [*within][:most]
        await self.meanwhile()
        end = found[-1].offset + 1 if len(found) >= most else last
        return PastReading(events=tuple(found), end=end, start=self.start_at)

    def _answer(self, topic_id: str) -> None:
        if self.away:
            raise Retryable("kafka is away")
        if topic_id != self.id:
            raise Retryable("the topic was created again")


def a_life(seed: int, count: int) -> LifeTopic:
    """A topic with events, obstacles that are repeated, and gaps between the offsets."""
    dice, topic = random.Random(seed), LifeTopic()
    for _ in range(count):
        event = dice.choice([life(), life(), beat("a"), beat(None), beat("b")])
        topic.write(event, others=dice.choice([0, 0, 1, 7]))
    return topic


def events_after(topic: LifeTopic, seen: list[PipelineEvent]) -> list[str]:
    last = seen[-1].offset if seen else -1
    events = set(topic.events())
    return [each.id for each in topic.placed if each.offset > last and each.id in events]


async def receive(history: History, after: str, count: int) -> list[Sent]:
    stream = cast(AsyncGenerator[Sent, None], history.follow(KEY, after))
    found: list[Sent] = []
    async with asyncio.timeout(10), aclosing(stream):
        while len(found) < count:
            sent = await anext(stream)
            if sent is not None:
                found.append(sent)
    return found


def compare(seen: list[str], topic: LifeTopic) -> None:
    """Each event once and in order. What repeats an obstacle may be among them."""
    assert len(set(seen)) == len(seen)
    events = set(topic.events())
    assert [each for each in seen if each in events] == topic.events()
    beats = {each.id for each in topic.placed if each.kind == "blocked"}
    assert set(seen) - events <= beats
