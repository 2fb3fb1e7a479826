"""Reads single records of dead-letter topics without a group. Fulfils `DeadLetterLookup`."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from typing import Final, cast

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from waybill_ingress.core.dead_letters import ExpiredDeadLetter, Found, FoundDeadLetter, too_many
from waybill_shared.contract.dead_letters import LetterId
from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_shared.kafka.clients import END_WAIT_MS, make_consumer, position_of, read_ranges
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.errors import explain

AT_ONCE: Final = 2  # readings: each has a client of its own, and the records it fetches
POLL_S: Final = 0.2
SILENCE_S: Final = 10.0  # limit of a broker's silence
NEAR: Final = 200  # offsets that are read over, which is faster than to seek
Partition = tuple[str, int]
Wanted = dict[Partition, list[LetterId]]
"""Wanted letters by partition, in the order of offsets."""


class KafkaDeadLetterLookup:
    def __init__(self, kafka: Kafka, admin: KafkaAdmin) -> None:
        self._kafka = kafka
        self._admin = admin
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def read(self, places: Sequence[LetterId], *, bytes_max: int) -> Found:
        async with self._turn:
            return await asyncio.to_thread(self._read, places, bytes_max)

    def _read(self, places: Sequence[LetterId], bytes_max: int) -> Found:
        found: dict[LetterId, FoundDeadLetter | ExpiredDeadLetter] = {}
        topics = self._admin.identify({place.topic for place in places})
        wanted: Wanted = {}
        for topic, group in groupby(sorted(places, key=_order), lambda place: place.topic):
            if topic in topics:
                self._part(topics[topic], list(group), wanted, found)
        size = 0
        for place, message in self._messages(wanted):
            letter = _letter(message, topics[place.topic].topic_id)
            size += letter.size
            if size > bytes_max:
                raise too_many(f"their records have more than {bytes_max} bytes")
            found[place] = letter
        return found

    def _part(
        self,
        topic: TopicIdentity,
        places: list[LetterId],
        wanted: Wanted,
        found: dict[LetterId, FoundDeadLetter | ExpiredDeadLetter],
    ) -> None:
        """Sort the letters: those that the topic may still have, and those that it has deleted."""
        partitions = {place.partition for place in places} & {*topic.partitions}
        starts = self._admin.starts(topic.name, partitions)
        ends = self._admin.stable_ends(topic.name, partitions)
        since: dict[int, int | None] = {}
        for place in (each for each in places if each.partition in partitions):
            at = place.partition
            if place.offset < starts[at]:
                if at not in since:
                    since[at] = self._since(topic.name, at, starts[at], ends[at])
                found[place] = ExpiredDeadLetter(since=since[at])
            elif place.offset < ends[at]:
                wanted.setdefault((topic.name, at), []).append(place)

    def _since(self, topic: str, partition: int, start: int, end: int) -> int | None:
        """Return when the oldest record was written."""
        ranges = {partition: (start, end)}
        reading = read_ranges(self._kafka, topic, ranges, silence_s=SILENCE_S)
        with closing(reading) as messages:
            return next((message.timestamp()[1] for message in messages), None)

    def _messages(self, wanted: Wanted) -> Iterator[tuple[LetterId, Message]]:
        if not wanted:
            return
        options: dict[str, object] = {"enable.partition.eof": True}
        options["fetch.wait.max.ms"] = END_WAIT_MS
        consumer = make_consumer(self._kafka, "waybill-reader", **options)
        try:
            yield from _Reading(consumer, wanted).messages()
        finally:
            consumer.close()


class _Reading:
    """One reading of all partitions at the same time, each record by record."""

    def __init__(self, consumer: Consumer, wanted: Mapping[Partition, list[LetterId]]) -> None:
        self._consumer = consumer
        self._left = {partition: list(places) for partition, places in wanted.items()}
        consumer.assign([self._next(partition) for partition in self._left])

    def messages(self) -> Iterator[tuple[LetterId, Message]]:
        received_at = time.monotonic()
        while self._left:
            message = self._consumer.poll(POLL_S)
            if message is not None:
                received_at = time.monotonic()
                yield from self._take(message)
            elif time.monotonic() - received_at > SILENCE_S:
                topics = ", ".join(sorted({topic for topic, _ in self._left}))
                raise Retryable(
                    f"dead letters: nothing arrived from {topics} for {SILENCE_S:.0f} s"
                )

    def _take(self, message: Message) -> Iterator[tuple[LetterId, Message]]:
        """Yield the letter of this message, if it is wanted.

        A message after a wanted offset shows that there is no record at that offset.
        """
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise Retryable(f"topic {message.topic()}: {explain(error)}")
        at, offset = position_of(message)
        partition = (str(message.topic()), at)
        left = self._left.get(partition)
        if left is None:
            return
        while left and left[0].offset <= offset:
            place = left.pop(0)
            if error is None and place.offset == offset:
                yield place, message
        if not left:
            del self._left[partition]
        elif error is None and left[0].offset > offset + NEAR:
            self._consumer.seek(self._next(partition))

    def _next(self, partition: Partition) -> TopicPartition:
        topic, at = partition
        return TopicPartition(topic, at, self._left[partition][0].offset)


def _order(place: LetterId) -> tuple[str, int, int]:
    return place.topic, place.partition, place.offset


def _letter(message: Message, topic_id: str) -> FoundDeadLetter:
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    return FoundDeadLetter(
        key=message.key(), value=message.value(), headers=tuple(headers), topic_id=topic_id
    )
