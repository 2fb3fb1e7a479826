"""Reads events again that are no longer in memory. Implements `PastEvents`."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from waybill_shared.contract import codec
from waybill_shared.contract.errors import InvalidMessage
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.kafka.clients import position_of, read_ranges
from waybill_shared.kafka.cluster import Kafka
from waybill_status.app.event_log import Ends, PlacedEvent

logger = logging.getLogger(__name__)


AT_ONCE: Final = 2  # readings; more readings wait, but nothing else does


class KafkaPastEvents:
    def __init__(self, kafka: Kafka, topic: str) -> None:
        self._kafka = kafka
        self._topic = topic
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="past events")

    async def read(self, begin: Ends, end: Ends, most: int) -> tuple[list[PlacedEvent], bool]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._read, begin, end, most)

    def _read(self, begin: Ends, end: Ends, most: int) -> tuple[list[PlacedEvent], bool]:
        ranges = {partition: (at, end[partition]) for partition, at in begin.items()}
        messages = read_ranges(self._kafka, self._topic, ranges)
        found: list[PlacedEvent] = []
        try:
            for message in messages:
                partition, offset = position_of(message)
                try:
                    event = codec.decode(StatusEvent, message.value() or b"")
                except InvalidMessage as error:
                    logger.error("message skipped", extra={"reason": str(error)})
                    continue
                found.append(PlacedEvent(event=event, partition=partition, offset=offset))
                if len(found) == most:
                    return found, False
        finally:
            messages.close()
        return found, True
