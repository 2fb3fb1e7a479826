"""Finds the event of a watch again in `waybill.status`. Implements `EventLookup`."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import read_ranges
from waybill_shared.kafka.partitioner import partition_of

BEFORE_MS: Final = 60_000  # a clock that was set back a little


class KafkaEventLookup:
    def __init__(self, admin: KafkaAdmin, topic: str) -> None:
        self._admin = admin
        self._topic = topic
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="event lookup")

    async def find(self, watch: TokenWatch) -> str | None:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._find, watch)

    def _find(self, watch: TokenWatch) -> str | None:
        """Read from shortly before the watch was reported; its key says in which partition. If
        there is an open transaction, wait for its end, or raise Retryable."""
        identity = self._admin.identify([self._topic]).get(self._topic)
        if identity is None:
            raise Retryable(f"topic {self._topic} does not exist")
        partition = [partition_of(watch.id, len(identity.partitions))]
        end = self._admin.ends(self._topic, partition)
        begin = self._admin.starts_at(self._topic, partition, (watch.reported_at or 0) - BEFORE_MS)
        ranges = {p: (begin.get(p, end[p]), end[p]) for p in partition}
        messages = read_ranges(self._admin.cluster, self._topic, ranges)
        wanted, id_there = watch.id.encode(), f'"id":"{watch.event_id}"'.encode()
        try:
            for message in messages:
                value = message.value() or b""
                if message.key() == wanted and id_there in value:
                    return value.decode()
        finally:
            messages.close()
        return None
