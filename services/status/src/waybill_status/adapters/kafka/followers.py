"""Follows the topics that status shows, each in a thread, and passes messages to the event loop."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.deliveries import WebhookDelivery
from waybill_shared.contract.events import PipelineRecord, Reply
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.replays import ReplayMessage
from waybill_shared.contract.status_events import StatusEvent
from waybill_shared.contract.watches import TokenWatch
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.follower import (
    FETCH_WAIT_MS,
    IdentifiedFollower,
    PlacedFollower,
    TopicFollower,
)
from waybill_shared.kafka.replies import follow_replies
from waybill_shared.process.health import Check
from waybill_shared.topic_views.connectors import KnownConnectors
from waybill_shared.topic_views.pipelines import PipelineDirectory
from waybill_shared.topic_views.watches import WatchBook
from waybill_status.app.dead_letters.replays import KnownReplays
from waybill_status.core.pipelines.history import EventPlace, PipelineEvent
from waybill_status.core.watches.delivery_book import DeliveryBook


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """The receivers of messages, called on the loop. A record is in the directory by then."""

    record: Callable[[], None]
    reply: Callable[[Reply], None]
    event: Callable[[PipelineEvent], None]
    watch: Callable[[TokenWatch], None]
    delivery: Callable[[WebhookDelivery], None]
    status_event: Callable[[StatusEvent, tuple[int, int]], None]


class Followers:
    """The followers of all topics. `replays` and `connectors` accept messages in the threads of
    their followers: these wake nobody."""

    def __init__(
        self,
        kafka: Kafka,
        prefix: str,
        directory: PipelineDirectory,
        replays: KnownReplays,
        *,
        connectors: KnownConnectors,
        watches: WatchBook,
        deliveries: DeliveryBook,
        events_since_ms: int,
    ) -> None:
        self._directory = directory
        self._book = watches
        self._deliveries = deliveries
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: Listeners | None = None
        self.pipelines = TopicFollower(
            kafka,
            f"{prefix}.pipelines",
            PipelineRecord,
            self._accept_record,
            fetch_wait_ms=FETCH_WAIT_MS,
        )
        self.replies = follow_replies(kafka, prefix, self.pipelines, self._accept_reply)
        self.lifecycle = IdentifiedFollower(
            kafka,
            f"{prefix}.lifecycle",
            LifecycleEvent,
            self._accept_event,
            since_ms=events_since_ms,
        )
        self.replays = TopicFollower(kafka, f"{prefix}.replays", ReplayMessage, replays.accept)
        self.connectors = TopicFollower(
            kafka, f"{prefix}.connectors", ConnectorProgress, connectors.accept
        )
        self.watches = TopicFollower(kafka, f"{prefix}.watches", TokenWatch, self._accept_watch)
        self.deliveries = TopicFollower(
            kafka, f"{prefix}.deliveries", WebhookDelivery, self._accept_delivery
        )
        self.events = PlacedFollower(
            kafka,
            f"{prefix}.status",
            StatusEvent,
            self._accept_status_event,
            since_ms=events_since_ms,
        )

    @contextmanager
    def notify(self, listeners: Listeners) -> Iterator[None]:
        """Follow all topics. Call it on the event loop."""
        self._loop, self._listeners = asyncio.get_running_loop(), listeners
        with ExitStack() as stack:
            stack.enter_context(self.pipelines)
            stack.enter_context(self.replies)
            stack.enter_context(self.lifecycle)
            stack.enter_context(self.replays)
            stack.enter_context(self.connectors)
            stack.enter_context(self.watches)
            stack.enter_context(self.deliveries)
            stack.enter_context(self.events)
            yield

    def checks(self) -> dict[str, Check]:
        """Return the checks of the followers without which status is not ready, by name."""
        return {
            "pipelines": self.pipelines.check,
            "replies": self.replies.check,
            "replays": self.replays.check,
            "connectors": self.connectors.check,
            "watches": self.watches.check,
            "deliveries": self.deliveries.check,
        }

    def _accept_record(self, record: PipelineRecord) -> None:
        self._directory.accept(record)
        assert self._loop is not None and self._listeners is not None
        self._loop.call_soon_threadsafe(self._listeners.record)

    def _accept_watch(self, watch: TokenWatch) -> None:
        self._book.accept(watch)
        assert self._loop is not None and self._listeners is not None
        self._loop.call_soon_threadsafe(self._listeners.watch, watch)

    def _accept_delivery(self, delivery: WebhookDelivery) -> None:
        self._deliveries.accept(delivery)
        assert self._loop is not None and self._listeners is not None
        self._loop.call_soon_threadsafe(self._listeners.delivery, delivery)

    def _accept_status_event(self, event: StatusEvent, place: tuple[int, int]) -> None:
        assert self._loop is not None and self._listeners is not None
        self._loop.call_soon_threadsafe(self._listeners.status_event, event, place)

    def _accept_event(self, event: LifecycleEvent, topic_id: str, at: tuple[int, int]) -> None:
        assert self._loop is not None and self._listeners is not None
        place = EventPlace(topic_id=topic_id, partition=at[0], offset=at[1])
        placed = PipelineEvent(place=place, event=event)
        self._loop.call_soon_threadsafe(self._listeners.event, placed)

    def _accept_reply(self, reply: Reply) -> None:
        assert self._loop is not None and self._listeners is not None
        self._loop.call_soon_threadsafe(self._listeners.reply, reply)
