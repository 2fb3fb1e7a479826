"""Whoever goes on behind an event misses none and sees none twice, on any process."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

import pytest

from unit.status.coroutines import in_a_loop
from waybill_shared.access.authentication import DEFAULT_TENANT
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.contract.words import EventType
from waybill_status.app import event_log
from waybill_status.app.event_log import (
    Ends,
    EventFilter,
    EventLog,
    PlacedEvent,
    SentEvent,
    read_ends,
    write_ends,
)

PARTITIONS = 8
ALL = EventFilter(tenant=DEFAULT_TENANT)
NO_IDS = ["x", "1", "1-", "-1", "1-2-3", "1-²", "9" * 30 + "-1", "1-2.", "1 -2"]


def event(number: int, *, tenant: str = DEFAULT_TENANT, pipeline: str = "orders") -> StatusEvent:
    return StatusEvent(
        id=f"w{number}.final",
        source="/waybill/test",
        type=EventType.TOKEN_FINAL,
        subject=f"w{number}",
        time="2026-11-26T21:00:00.000Z",
        tenant=tenant,
        pipeline=pipeline,
        data={"watch": f"w{number}", "labels": {"even": str(number % 2 == 0)}},
    )


class Topic:
    """Where events stand, between the marks of transactions."""

    def __init__(self, seed: int = 0) -> None:
        self._dice = random.Random(seed)
        self.placed: list[PlacedEvent] = []
        self._ends = dict.fromkeys(range(PARTITIONS), 0)
        self.reads = 0

    def write(self, count: int) -> list[PlacedEvent]:
        new = []
        for _ in range(count):
            partition = self._dice.randrange(PARTITIONS)
            offset = self._ends[partition]
            self._ends[partition] += self._dice.choice([1, 1, 2])
            number = len(self.placed)
            placed = PlacedEvent(event=event(number), partition=partition, offset=offset)
            self.placed.append(placed)
            new.append(placed)
        return new

    async def read(self, begin: Ends, end: Ends, most: int) -> tuple[list[PlacedEvent], bool]:
        self.reads += 1
        await asyncio.sleep(0)
        found = [
            each
            for each in self.placed
            if begin.get(each.partition, 0) <= each.offset < end.get(each.partition, 0)
        ]
        found.sort(key=lambda each: (each.partition, each.offset))
        return found[:most], len(found) <= most

    def process(self, since: int = 0) -> EventLog:
        """One that has read what was written from the event of that number on."""
        later = self.placed[since:]
        begins = {
            partition: min(
                (each.offset for each in later if each.partition == partition),
                default=self._ends[partition],
            )
            for partition in range(PARTITIONS)
        }
        log = EventLog(self, begins=lambda: begins, streams_max=2)
        for each in self._dice.sample(range(PARTITIONS), PARTITIONS):
            for placed in later:
                if placed.partition == each:
                    log.take(placed.event, (placed.partition, placed.offset))
        return log


async def told(log: EventLog, after: str | None, count: int) -> list[SentEvent]:
    stream = cast(AsyncGenerator[SentEvent, None], log.follow(ALL, after))
    found: list[SentEvent] = []
    async with aclosing(stream):
        while len(found) < count:
            sent = await anext(stream)
            if sent.event is not None or sent.cut:
                found.append(sent)
    return found


@pytest.mark.parametrize("seed", range(10))
@in_a_loop
async def test_a_reader_that_goes_from_one_process_to_the_next_gets_each_once(seed: int) -> None:
    dice = random.Random(seed)
    topic = Topic(seed)
    topic.write(dice.randrange(200))
    before, after, seen = len(topic.placed), "", list[str]()
    if before:  # from the beginning of all
        after = "0-0"
    topic.write(1_000)
    while len(seen) < 1_000 + before:
        log = topic.process(since=dice.randrange(len(topic.placed)))
        for sent in await told(log, after, dice.randrange(1, 1_001 + before - len(seen))):
            assert sent.event is not None
            seen.append(sent.event.id)
            after = sent.id
    assert sorted(seen) == sorted(each.event.id for each in topic.placed)


@in_a_loop
async def test_what_is_not_remembered_is_read_again_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_log, "EVENTS_MAX", 100)
    topic = Topic()
    topic.write(10_000)
    log = topic.process()
    sent = await told(log, "0-0", 10_000)
    assert len({each.id for each in sent}) == len(sent)
    assert topic.reads == 10
    await told(log, sent[-50].id, 49)
    assert topic.reads == 10


@in_a_loop
async def test_without_an_id_the_stream_begins_now() -> None:
    topic = Topic()
    topic.write(5)
    log = topic.process()
    reading = asyncio.create_task(told(log, None, 1))
    await asyncio.sleep(0.01)
    (new,) = topic.write(1)
    log.take(new.event, (new.partition, new.offset))
    (sent,) = await reading
    assert sent.event == new.event


@in_a_loop
async def test_a_stream_from_now_on_brings_nothing_of_before_this_process() -> None:
    """Also of partitions in which nothing came since."""
    topic = Topic()
    topic.write(50)
    log = topic.process(since=50)
    assert log.newest(ALL)[0] == []
    for known in (False, True):
        after = log.newest(ALL)[1] if known else None
        reading = asyncio.create_task(told(log, after, 1))
        await asyncio.sleep(0.01)
        (new,) = topic.write(1)
        log.take(new.event, (new.partition, new.offset))
        (sent,) = await reading
        assert sent.event == new.event
    assert topic.reads == 0


@in_a_loop
async def test_a_stream_whose_filter_takes_nothing_is_told_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_log, "SILENCE_S", 0.02)
    topic = Topic()
    log = topic.process()
    none = EventFilter(tenant="other")
    stream = cast(AsyncGenerator[SentEvent, None], log.follow(none, None))
    ids = [(await anext(stream)).id]
    for _ in range(3):
        for _ in range(5):
            (new,) = topic.write(1)
            log.take(new.event, (new.partition, new.offset))
            await asyncio.sleep(0.01)
        ids.append((await anext(stream)).id)
    assert len(set(ids)) == len(ids), "the position moves"


@in_a_loop
async def test_an_id_of_a_topic_that_was_deleted_hides_no_event() -> None:
    topic = Topic()
    log = topic.process()
    reading = asyncio.create_task(told(log, "0-999.1-999.2-999.3-999.77-5", 8))
    await asyncio.sleep(0.01)
    for new in topic.write(8):
        log.take(new.event, (new.partition, new.offset))
    assert len(await reading) == 8


@in_a_loop
async def test_a_reader_that_is_too_slow_is_cut_off_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_log, "EVENTS_MAX", 10)
    topic = Topic()
    log = topic.process()
    stream = cast(AsyncGenerator[SentEvent, None], log.follow(ALL, None))
    begun = await anext(stream)
    assert begun == SentEvent(id="0-0")
    reading = asyncio.create_task(anext(stream))
    await asyncio.sleep(0.01)
    for new in topic.write(30):
        log.take(new.event, (new.partition, new.offset))
    first = await reading
    seen = [first] if first.event is not None else []
    cut = first if not seen else await anext(stream)
    assert cut.cut, "the reader was 20 events late"
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    rest = await told(log, cut.id, 30 - len(seen))
    ids = [each.event.id for each in [*seen, *rest] if each.event]
    assert sorted(ids) == sorted(each.event.id for each in topic.placed)


@in_a_loop
async def test_what_is_read_again_behind_a_fault_is_told_once() -> None:
    topic = Topic()
    log = topic.process()
    for placed in topic.write(20) * 2:
        log.take(placed.event, (placed.partition, placed.offset))
    assert len({each.event.id for each in await told(log, "0-0", 20) if each.event}) == 20


@pytest.mark.parametrize(
    ("wanted", "takes"),
    [
        (ALL, True),
        (EventFilter(tenant="other"), False),
        (EventFilter(tenant=DEFAULT_TENANT, types=frozenset({EventType.TOKEN_FINAL})), True),
        (EventFilter(tenant=DEFAULT_TENANT, types=frozenset({"waybill.other"})), False),
        (EventFilter(tenant=DEFAULT_TENANT, pipeline="orders"), True),
        (EventFilter(tenant=DEFAULT_TENANT, pipeline="others"), False),
        (EventFilter(tenant=DEFAULT_TENANT, stage="enrich"), False),
        (EventFilter(tenant=DEFAULT_TENANT, watch="w2"), True),
        (EventFilter(tenant=DEFAULT_TENANT, watch="w3"), False),
        (EventFilter(tenant=DEFAULT_TENANT, labels={"even": "True"}), True),
        (EventFilter(tenant=DEFAULT_TENANT, labels={"even": "True", "more": ""}), False),
    ],
)
def test_filters(wanted: EventFilter, takes: bool) -> None:
    assert wanted.takes(event(2)) is takes


@pytest.mark.parametrize("text", NO_IDS)
def test_an_id_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="is the id of no event"):
        read_ends(text)


def test_an_id_says_how_far_each_partition_was_read() -> None:
    ends = {0: 5, 3: 17, 7: 1}
    assert read_ends(write_ends({**ends, 4: 0})) == ends


@in_a_loop
async def test_too_many_streams_are_refused() -> None:
    log = Topic().process()
    streams = [cast(AsyncGenerator[SentEvent, None], log.follow(ALL, None)) for _ in range(2)]
    reading = [asyncio.create_task(anext(stream)) for stream in streams]
    await asyncio.sleep(0.01)
    with pytest.raises(Refusal, match="2 streams of events are open"):
        log.follow(ALL, None)
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)
