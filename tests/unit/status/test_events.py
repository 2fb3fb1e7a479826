"""What status remembers of a pipeline's life, and how it lets requests follow it."""

import asyncio
from dataclasses import replace

import pytest

from clocks import NOW
from unit.status.histories import MINE, PARTITIONS, LifeTopic, beat
from unit.status.slots import KEY, life
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.lifecycle_events import Condition, LifecycleEvent
from waybill_shared.contract.words import HistoryGap
from waybill_shared.kafka.follower import FollowedTopic
from waybill_status.app.pipelines import events as module
from waybill_status.app.pipelines import history
from waybill_status.app.pipelines.events import EVENTS_MAX, Events
from waybill_status.core.pipelines.history import EventPlace, PipelineEvent

BEGINS = dict.fromkeys(range(PARTITIONS), 10)


class Topic:
    """What a process follows; `at` makes an event of it."""

    def __init__(self) -> None:
        self.following: FollowedTopic | None = FollowedTopic(topic_id="topic-1", begins=BEGINS)
        self.events = Events(lambda: self.following)

    def take(
        self, offset: int, event: LifecycleEvent | None = None, topic_id: str = "topic-1"
    ) -> None:
        place = EventPlace(topic_id=topic_id, partition=MINE, offset=offset)
        self.events.take(PipelineEvent(place=place, event=event or life()))

    def remembered(self) -> list[int]:
        return [each.offset for each in self.events.recent(KEY).events]


def test_of_heartbeats_only_new_obstacles_are_events() -> None:
    topic = Topic()
    topic.take(10, life(at=NOW))
    for offset, blocked_by in enumerate([None, "a", "a", None, None], start=11):
        topic.take(offset, beat(blocked_by))
    found = topic.events.recent(KEY).events
    assert [(each.id, each.kind, each.event.blocked_by) for each in found] == [
        (f"topic-1.{MINE}.10", "transition", None),
        (f"topic-1.{MINE}.12", "blocked", "a"),
        (f"topic-1.{MINE}.14", "blocked", None),
    ]


def test_a_stage_that_fails_alone_is_one_event_and_its_start_another() -> None:
    topic = Topic()
    failed = Condition(stage="load", cause="stage_failed", since=NOW, message="too many die")
    slow = Condition(stage="load", cause="batch_long", since=NOW)
    topic.take(10, life(at=NOW))
    for offset, conditions in enumerate([(slow,), (failed,), (failed, slow), ()], start=11):
        topic.take(offset, replace(beat(None), conditions=conditions))
    found = topic.events.recent(KEY).events
    assert [(each.offset, each.kind) for each in found] == [
        (10, "transition"),
        (12, "degraded"),
        (14, "blocked"),
    ]


def test_only_the_newest_are_kept_and_the_floor_says_from_where_on() -> None:
    topic = Topic()
    assert topic.events.recent(KEY).floor == 10, "where the process has begun to read"
    for offset in range(EVENTS_MAX):
        topic.take(20 + offset)
    assert topic.events.recent(KEY).floor == 10, "nothing was dropped"
    topic.take(20 + EVENTS_MAX)
    assert topic.events.recent(KEY).floor == 21
    assert topic.remembered() == [*range(21, 21 + EVENTS_MAX)]


def test_what_is_read_again_after_a_fault_is_there_once() -> None:
    topic = Topic()
    for offset in (10, 12, 10, 12, 13):
        topic.take(offset)
    assert topic.remembered() == [10, 12, 13]


def test_pipelines_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIPELINES_MAX", 1)
    topic = Topic()
    topic.take(15)
    topic.take(17, replace(life(), pipeline_uid="uid-2"))
    recent = topic.events.recent(KEY)
    assert (recent.events, recent.floor) == ((), 16), "before that it must be read again"


def test_of_a_topic_that_was_created_again_nothing_before_is_remembered() -> None:
    topic = Topic()
    topic.take(30)
    topic.following = FollowedTopic(topic_id="topic-2", begins=dict.fromkeys(range(PARTITIONS), 0))
    assert (topic.remembered(), topic.events.recent(KEY).floor) == ([], 0)
    topic.take(1, topic_id="topic-2")
    assert topic.events.recent(KEY).events[0].id == f"topic-2.{MINE}.1"


def test_before_the_topic_is_read_nothing_is_known() -> None:
    topic = Topic()
    for following in (None, FollowedTopic(topic_id="topic-2")):
        topic.following = following
        with pytest.raises(Retryable, match="has just started"):
            topic.events.recent(KEY)


def test_a_stream_goes_on_with_what_happens_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> list[PipelineEvent | HistoryGap | None]:
        topic = LifeTopic()
        topic.write(life("Starting"))
        process = topic.process(0)
        stream = process.follow(KEY, after="")
        seen = [await anext(stream)]
        monkeypatch.setattr(history, "SILENCE_S", 0.0)
        seen.append(await anext(stream))
        topic.write(life("Running"))
        seen.append(await anext(stream))
        with pytest.raises(Refusal, match="streams of events are open"):
            process.follow(KEY, after="")
        process.close()
        return [*seen, *[each async for each in stream]]

    first, silence, second, *more = asyncio.run(scene())
    assert isinstance(first, PipelineEvent)
    assert isinstance(second, PipelineEvent)
    assert (first.event.phase, silence, second.event.phase) == ("Starting", None, "Running")
    assert more == []
