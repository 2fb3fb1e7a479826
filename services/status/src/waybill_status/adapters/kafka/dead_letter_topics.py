"""Reads dead-letter topics without a consumer group. Implements `DeadTopics` over Kafka."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from contextlib import closing
from typing import Final, TypeVar, cast

from confluent_kafka import Message

from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import position_of, read_ranges
from waybill_shared.kafka.cluster import Kafka
from waybill_status.app.dead_letters.reading import DeletedDeadLetter, Take
from waybill_status.core.dead_letters.dead_letter_view import DeadLetterSummary, DeadRecord
from waybill_status.core.dead_letters.pages import Bounds, Partition

AT_ONCE: Final = 2  # readings: each has a client of its own, and its fetched data
SILENCE_S: Final = 10.0  # the longest time without an answer of a broker
T = TypeVar("T")


class KafkaDeadTopics:
    def __init__(self, kafka: Kafka, admin: KafkaAdmin) -> None:
        self._kafka = kafka
        self._admin = admin
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def bounds(self, topics: Collection[str], since_ms: int | None) -> Bounds:
        return await self._in_turn(lambda: self._bounds(topics, since_ms))

    async def read(self, asked: Bounds, take: Take) -> dict[Partition, list[DeadLetterSummary]]:
        return await self._in_turn(lambda: self._read(asked, take))

    async def one(self, id: LetterId) -> DeadRecord | DeletedDeadLetter | None:
        return await self._in_turn(lambda: self._one(id))

    async def _in_turn(self, ask: Callable[[], T]) -> T:
        async with self._turn:
            return await asyncio.to_thread(ask)

    def _bounds(self, topics: Collection[str], since_ms: int | None) -> Bounds:
        found: dict[Partition, tuple[int, int]] = {}
        for name, topic in self._admin.identify(topics).items():
            starts = self._admin.starts(name, topic.partitions)
            # Not past an open transaction, because the reader would wait for its end.
            ends = self._admin.stable_ends(name, topic.partitions)
            if since_ms is not None:
                later = self._admin.starts_at(name, topic.partitions, since_ms)
                starts |= {at: later.get(at, end) for at, end in ends.items()}
            found |= {(name, at): (starts[at], ends[at]) for at in topic.partitions}
        return found

    def _read(self, asked: Bounds, take: Take) -> dict[Partition, list[DeadLetterSummary]]:
        """Read the records, and shorten each when it arrives: values may have megabytes."""
        found: dict[Partition, list[DeadLetterSummary]] = {}
        for topic in {topic for topic, _ in asked}:
            ranges = {at: ends for (name, at), ends in asked.items() if name == topic}
            reading = read_ranges(self._kafka, topic, ranges, silence_s=SILENCE_S)
            with closing(reading) as messages:
                for letter in filter(None, map(take, map(_record, messages))):
                    found.setdefault((topic, letter.partition), []).append(letter)
        return found

    def _one(self, id: LetterId) -> DeadRecord | DeletedDeadLetter | None:
        topic = self._admin.identify([id.topic]).get(id.topic)
        if topic is None or id.partition not in topic.partitions:
            return None
        start = self._admin.starts(id.topic, [id.partition])[id.partition]
        end = self._admin.stable_ends(id.topic, [id.partition])[id.partition]
        if id.offset >= end:
            return None
        if id.offset < start:
            oldest = self._first(id, start, end)
            return DeletedDeadLetter(since=None if oldest is None else oldest.at)
        return self._first(id, id.offset, id.offset + 1)

    def _first(self, id: LetterId, start: int, end: int) -> DeadRecord | None:
        reading = read_ranges(
            self._kafka, id.topic, {id.partition: (start, end)}, silence_s=SILENCE_S
        )
        with closing(reading) as messages:
            return next(iter(map(_record, messages)), None)


def _record(message: Message) -> DeadRecord:
    partition, offset = position_of(message)
    headers = cast("Iterable[tuple[str, bytes | None]]", message.headers() or ())
    return DeadRecord(
        topic=str(message.topic()),
        partition=partition,
        offset=offset,
        at=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=tuple(headers),
    )
