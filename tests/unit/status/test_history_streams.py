"""Who follows the events of a pipeline gets each once, over any restart."""

import asyncio
import random

import pytest

from unit.status.coroutines import in_a_loop
from unit.status.histories import LifeTopic, a_life, compare, events_after, receive
from unit.status.slots import KEY
from waybill_status.app.pipelines import history as module
from waybill_status.app.pipelines.history import History
from waybill_status.core.pipelines.history import PipelineEvent


@pytest.mark.parametrize("seed", range(20))
@in_a_loop
async def test_a_stream_has_each_event_once_over_restarts(seed: int, small: None) -> None:
    dice, topic = random.Random(seed), a_life(seed, 100)
    seen: list[PipelineEvent] = []
    while left := events_after(topic, seen):
        process = topic.process(dice.randrange(topic.end + 1))
        after = seen[-1].id if seen else "0"
        for sent in await receive(process, after, dice.randrange(1, min(len(left), 30) + 1)):
            assert isinstance(sent, PipelineEvent)
            seen.append(sent)
        if len(topic.placed) < 120:
            topic.phases(dice.randrange(3))
    compare([each.id for each in seen], topic)


@in_a_loop
async def test_a_stream_waits_for_kafka_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    topic = LifeTopic()
    old = topic.phases(2)
    stream = topic.process().follow(KEY, "0")
    topic.away = True
    assert [await anext(stream), await anext(stream)] == [None, None]
    topic.away = False
    assert await anext(stream) == old[0]


@in_a_loop
async def test_what_happens_while_older_events_are_read_is_not_missed() -> None:
    topic, new = LifeTopic(), list[PipelineEvent]()
    (last,) = topic.phases(1)
    topic.end += 5  # of other pipelines
    history = topic.process()

    async def happen() -> None:
        topic.meanwhile = _idle
        new.extend(topic.phases(1))

    topic.meanwhile = happen
    async with asyncio.timeout(5):
        assert await receive(history, last.id, 1) == new


async def _idle() -> None:
    """Nothing more happens."""


@in_a_loop
async def test_a_slow_reader_gets_again_what_memory_has_dropped(small: None) -> None:
    topic = LifeTopic()
    topic.phases(1)
    stream = topic.process(0).follow(KEY, "0")
    seen = [await anext(stream)]
    topic.phases(200)
    while len(seen) < 201:
        if (sent := await anext(stream)) is not None:
            seen.append(sent)
    assert [each.id for each in seen if isinstance(each, PipelineEvent)] == topic.events()


@in_a_loop
async def test_a_stream_without_an_id_begins_with_what_is_in_memory() -> None:
    topic = LifeTopic()
    topic.phases(1)
    first = topic.end
    written = topic.phases(2)
    assert await receive(topic.process(first), "", 2) == written
    assert topic.parts == []
    fresh = LifeTopic()
    assert await receive(_process_with(fresh), "", 2) == fresh.placed, "also that at offset 0"


def _process_with(topic: LifeTopic) -> History:
    topic.phases(2)
    return topic.process(0)
