"""Reads events again that are remembered no more. Fulfils `PastEvents`."""

import asyncio
import logging
from itertools import islice

from waybill_shared.contract import codec
from waybill_shared.contract.errors import InvalidMessage
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.kafka.clients import position_of, read_ranges
from waybill_shared.kafka.cluster import Kafka
from waybill_status.app.event_log import Ends, PlacedEvent

logger = logging.getLogger(__name__)


class KafkaPastEvents:
    def __init__(self, kafka: Kafka, topic: str) -> None:
        self._kafka = kafka
        self._topic = topic

    async def read(self, begin: Ends, end: Ends, most: int) -> list[PlacedEvent]:
        return await asyncio.to_thread(self._read, begin, end, most)

    def _read(self, begin: Ends, end: Ends, most: int) -> list[PlacedEvent]:
        ranges = {partition: (at, end[partition]) for partition, at in begin.items()}
        messages = read_ranges(self._kafka, self._topic, ranges)
        found: list[PlacedEvent] = []
        try:
            for message in islice(messages, most):
                partition, offset = position_of(message)
                try:
                    event = codec.decode(StatusEvent, message.value() or b"")
                except InvalidMessage as error:
                    logger.error("message skipped", extra={"reason": str(error)})
                    continue
                found.append(PlacedEvent(event=event, partition=partition, offset=offset))
        finally:
            messages.close()
        return found
