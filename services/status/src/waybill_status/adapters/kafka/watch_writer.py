"""Reports watches in Kafka transactions, with one producer for each partition. Implements
`WatchWriters`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from waybill_shared.contract.codec import encode
from waybill_shared.contract.status_events import HEADERS, StatusEvent
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.partition_producer import PartitionProducer
from waybill_shared.kafka.transactions import Outgoing
from waybill_status.app.ports import DeliveryNote, WatchReport


class KafkaWatchWriters:
    def __init__(self, kafka: Kafka, prefix: str) -> None:
        self._kafka = kafka
        self._prefix = prefix

    @asynccontextmanager
    async def writer(self, partition: int) -> AsyncIterator["KafkaWatchWriter"]:
        producer = PartitionProducer(self._kafka, f"{self._prefix}/status/{partition}")
        await asyncio.to_thread(producer.claim)
        yield KafkaWatchWriter(producer, self._prefix)


class KafkaWatchWriter:
    """The writer of one partition. Its transactions follow one another."""

    def __init__(self, producer: PartitionProducer, prefix: str) -> None:
        self._producer = producer
        self._prefix = prefix
        self._turn = asyncio.Lock()

    async def report(self, reports: Sequence[WatchReport]) -> None:
        messages = []
        for event, text, watch, delivery in reports:
            messages += [
                self._event(event, text.encode()),
                self._message("watches", watch.id, encode(watch)),
            ]
            if delivery is not None:
                messages.append(self._message("deliveries", watch.id, encode(delivery)))
        await self._send(messages)

    async def note(self, notes: Sequence[DeliveryNote]) -> None:
        messages = []
        for delivery, event in notes:
            messages.append(self._message("deliveries", delivery.watch, encode(delivery)))
            if event is not None:
                messages.append(self._event(event, encode(event)))
        await self._send(messages)

    async def finish(self) -> None:
        async with self._turn:
            await asyncio.to_thread(self._producer.finish)

    async def _send(self, messages: Sequence[Outgoing]) -> None:
        async with self._turn:
            await asyncio.to_thread(self._producer.send, messages)

    def _event(self, event: StatusEvent, value: bytes) -> Outgoing:
        return replace(self._message("status", event.subject, value), headers=HEADERS)

    def _message(self, topic: str, key: str, value: bytes) -> Outgoing:
        return Outgoing(topic=f"{self._prefix}.{topic}", key=key, value=value)
