"""Reads the newest records of a topic without a consumer group. Fulfils `Samples`.

The reading itself raises Retryable if Kafka does not answer in time.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Final

from waybill_ingress.core.proposals import windows
from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import position_of, read_ranges
from waybill_shared.kafka.cluster import Kafka

READ_S: Final = 5.0  # after that, the records read so far are enough
AT_ONCE: Final = 2  # readings: each has a client of its own, and the records it fetches


class KafkaSamples:
    def __init__(self, kafka: Kafka, admin: KafkaAdmin) -> None:
        self._kafka = kafka
        self._admin = admin
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def newest(self, topic: str, partitions: Iterable[int]) -> Sequence[bytes | None]:
        async with self._turn:
            return await asyncio.to_thread(self._read, topic, list(partitions))

    def _read(self, topic: str, partitions: list[int]) -> list[bytes | None]:
        starts = self._admin.starts(topic, partitions)
        # Not beyond an open transaction: reading would wait for its end.
        wanted = windows(starts, self._admin.stable_ends(topic, partitions))
        kept: dict[int, deque[bytes | None]] = {
            at: deque(maxlen=window.records) for at, window in wanted.items()
        }
        ranges = {at: (window.start, window.end) for at, window in wanted.items()}
        deadline = time.monotonic() + READ_S
        with closing(read_ranges(self._kafka, topic, ranges, silence_s=READ_S)) as messages:
            for message in messages:
                kept[position_of(message)[0]].append(message.value())
                if time.monotonic() > deadline:
                    break
        found = [value for values in kept.values() for value in values]
        if not found and time.monotonic() > deadline:
            raise Retryable(f"topic {topic}: no record arrived within {READ_S:.0f} s")
        return found
