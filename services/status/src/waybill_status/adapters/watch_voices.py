"""Tells of watches in Kafka's transactions: a voice for each partition. Fulfils `WatchVoices`."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

from waybill_shared.contract.codec import encode
from waybill_shared.contract.status_events import HEADERS
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.partition_producer import Outgoing, PartitionProducer
from waybill_status.app.ports import Told


class KafkaWatchVoices:
    def __init__(self, kafka: Kafka, prefix: str) -> None:
        self._kafka = kafka
        self._prefix = prefix

    @asynccontextmanager
    async def voice(self, partition: int) -> AsyncIterator["KafkaWatchVoice"]:
        producer = PartitionProducer(self._kafka, f"{self._prefix}/status/{partition}")
        await asyncio.to_thread(producer.claim)
        yield KafkaWatchVoice(producer, self._prefix)


class KafkaWatchVoice:
    def __init__(self, producer: PartitionProducer, prefix: str) -> None:
        self._producer = producer
        self._prefix = prefix

    async def tell(self, told: Sequence[Told]) -> None:
        await asyncio.to_thread(lambda: self._producer.send([*self._messages(told)]))

    async def settle(self) -> None:
        await asyncio.to_thread(self._producer.settle)

    def _messages(self, told: Sequence[Told]) -> Iterator[Outgoing]:
        for event, watch, _ in told:
            yield Outgoing(
                topic=f"{self._prefix}.status",
                key=event.subject,
                value=encode(event),
                headers=HEADERS,
            )
            yield Outgoing(topic=f"{self._prefix}.watches", key=watch.id, value=encode(watch))
