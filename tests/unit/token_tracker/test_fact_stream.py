"""What a tracker does with the partitions that its group assigns."""

from typing import Any

from confluent_kafka import TopicPartition

from unit.token_tracker.fakes import FakeStore
from waybill_shared.kafka.clients import Rebalance
from waybill_shared.kafka.membership import Membership
from waybill_shared.kafka.own_topics import OwnTopics
from waybill_shared.process.clock import SystemClock
from waybill_token_tracker.adapters.journal import KafkaJournal
from waybill_token_tracker.adapters.kafka import FactStream
from waybill_token_tracker.app.tracker import Tracker


class ClosingConsumer:
    """A consumer that knows nothing of its group once it closes, as librdkafka's does."""

    closing = False

    def consumer_group_metadata(self) -> object:
        if self.closing:
            raise RuntimeError("Consumer group metadata not available")
        return object()

    def subscribe(self, topics: list[str], on_assign: Rebalance, on_revoke: Rebalance) -> None:
        self.assign = on_assign


def test_a_consumer_that_closes_starts_no_partition() -> None:
    consumer: Any = ClosingConsumer()
    admin: Any = None
    journal = KafkaJournal(consumer, admin, OwnTopics(admin, []), prefix="w")
    clock = SystemClock()
    tracker = Tracker(FakeStore(), journal, clock)
    FactStream(
        consumer,
        admin,
        journal,
        prefix="w",
        tracker=tracker,
        membership=Membership(admin),
        clock=clock,
    )

    consumer.closing = True
    consumer.assign(consumer, [TopicPartition("w.commits", 0)])

    assert not tracker.partitions()
