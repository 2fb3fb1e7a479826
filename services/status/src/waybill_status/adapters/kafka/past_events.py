"""Reads parts of a topic again that are no longer in memory. Implements `PastEvents` and
`PastPipelineEvents`."""

import asyncio
import logging
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final, Generic, TypeVar

from waybill_shared.contract import codec
from waybill_shared.contract.errors import InvalidMessage, Retryable
from waybill_shared.contract.events import Message, pipeline_key
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import SILENCE_S, position_of, read_ranges
from waybill_shared.kafka.cluster import Kafka
from waybill_status.app.event_log import Ends, PlacedEvent
from waybill_status.app.pipelines.events import RecentEvents
from waybill_status.app.pipelines.history import Part, PastReading
from waybill_status.core.outcomes.views import PipelineKey
from waybill_status.core.pipelines.history import EventPlace, PipelineEvent

logger = logging.getLogger(__name__)


AT_ONCE: Final = 2  # readings of a topic; more readings wait, but nothing else does
READ_S: Final = 10.0  # for one part of what happened to pipelines, which is some megabytes
M = TypeVar("M", bound=Message)
T = TypeVar("T")


class PastMessages(Generic[M]):
    """The messages of a topic, which are read by offsets. A few readings run at a time, each with
    a client of its own."""

    def __init__(self, kafka: Kafka, topic: str, message_type: type[M]) -> None:
        self._kafka = kafka
        self._topic = topic
        self._type = message_type
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix=f"past of {topic}")

    async def run(self, ask: Callable[[], T]) -> T:
        """Run a reading in a thread, as soon as one is free."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, ask)

    def read(
        self,
        ranges: Mapping[int, tuple[int, int]],
        *,
        key: str | None = None,
        silence_s: float = SILENCE_S,
        within_s: float = float("inf"),
    ) -> Generator[tuple[M, tuple[int, int]], None, None]:
        """Yield messages with their partition and offset; with `key` only those that have it.
        Raises Retryable when it takes too long."""
        wanted = None if key is None else key.encode()
        over_at = time.monotonic() + within_s
        reading = read_ranges(self._kafka, self._topic, ranges, silence_s=silence_s)
        with closing(reading) as messages:
            for message in messages:
                if time.monotonic() > over_at:
                    raise Retryable(f"topic {self._topic} was not read within {within_s:.0f} s")
                if wanted is not None and message.key() != wanted:
                    continue
                try:
                    found = codec.decode(self._type, message.value() or b"")
                except InvalidMessage as error:
                    logger.error("message skipped", extra={"reason": str(error)})
                    continue
                yield found, position_of(message)


class KafkaPastEvents:
    def __init__(self, kafka: Kafka, topic: str) -> None:
        self._messages = PastMessages(kafka, topic, StatusEvent)

    async def read(self, begin: Ends, end: Ends, most: int) -> tuple[list[PlacedEvent], bool]:
        return await self._messages.run(lambda: self._read(begin, end, most))

    def _read(self, begin: Ends, end: Ends, most: int) -> tuple[list[PlacedEvent], bool]:
        ranges = {partition: (at, end[partition]) for partition, at in begin.items()}
        found: list[PlacedEvent] = []
        with closing(self._messages.read(ranges)) as messages:
            for event, (partition, offset) in messages:
                found.append(PlacedEvent(event=event, partition=partition, offset=offset))
                if len(found) == most:
                    return found, False
        return found, True


class KafkaPastPipelineEvents:
    """The lifecycle topic. Its id is compared before each page is read, and after each reading."""

    def __init__(self, admin: KafkaAdmin, topic: str) -> None:
        self._admin = admin
        self._topic = topic
        self._messages = PastMessages(admin.cluster, topic, LifecycleEvent)

    async def start(self, topic_id: str, partition: int) -> int:
        return await self._messages.run(lambda: self._start(topic_id, partition))

    async def read(
        self, pipeline: PipelineKey, recent: RecentEvents, part: Part, most: int
    ) -> PastReading:
        return await self._messages.run(lambda: self._read(pipeline, recent, part, most))

    def _start(self, topic_id: str, partition: int) -> int:
        self._require(topic_id)
        return self._admin.starts(self._topic, [partition])[partition]

    def _read(
        self, pipeline: PipelineKey, recent: RecentEvents, part: Part, most: int
    ) -> PastReading:
        found: list[PipelineEvent] = []
        end = part[1]
        reading = self._messages.read(
            {recent.partition: part},
            key=pipeline_key(*pipeline),
            silence_s=READ_S,
            within_s=READ_S,
        )
        with closing(reading) as messages:
            for event, (partition, offset) in messages:
                place = EventPlace(topic_id=recent.topic_id, partition=partition, offset=offset)
                found.append(PipelineEvent(place=place, event=event))
                if len(found) >= most:
                    end = offset + 1
                    break
        start = self._start(recent.topic_id, recent.partition)
        return PastReading(events=tuple(found), end=end, start=start)

    def _require(self, topic_id: str) -> None:
        identity = self._admin.identify([self._topic]).get(self._topic)
        if identity is None:
            raise Retryable(f"topic {self._topic} does not exist")
        if identity.topic_id != topic_id:
            raise Retryable(f"topic {self._topic} was created again a moment ago: try again")
