"""A tracker of this process on a real Kafka, with a store in memory."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from builders import ORDERS_ID
from integration.conftest import Surroundings
from unit.token_tracker.fakes import FakeStore
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_consumer
from waybill_shared.kafka.membership import Membership
from waybill_shared.kafka.own_topics import OwnTopics
from waybill_shared.process.clock import SystemClock
from waybill_token_tracker.adapters.journal import STAMPED, KafkaJournal
from waybill_token_tracker.adapters.kafka import FactStream
from waybill_token_tracker.app.tracker import Tracker

POLL_S = 0.05
WITHIN_S = 120.0


@dataclass
class Member:
    around: Surroundings
    store: FakeStore = field(default_factory=FakeStore)

    def __post_init__(self) -> None:
        prefix, admin = self.around.prefix, make_admin(self.around.kafka)
        options: dict[str, object] = {"enable.partition.eof": True}
        self.consumer = make_consumer(self.around.kafka, f"{prefix}.token_tracker", **options)
        topics = OwnTopics(admin, [f"{prefix}.{name}" for name in STAMPED])
        self.journal = KafkaJournal(self.consumer, admin, topics, prefix=prefix)
        clock = SystemClock()
        self.tracker = Tracker(self.store, self.journal, clock)
        self.stream = FactStream(
            self.consumer,
            admin,
            self.journal,
            prefix=prefix,
            tracker=self.tracker,
            membership=Membership(admin),
            clock=clock,
        )

    def feed_until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not done():
            assert time.monotonic() < deadline, f"not so within {WITHIN_S} s"
            self.stream.feed(POLL_S)
            self.tracker.flush()

    def close(self) -> None:
        self.consumer.close()


def reached(member: Member, uid: str) -> int:
    stored = member.store.slots.get(uid)
    if stored is None or "enrich/lake@1" not in stored.slot.sinks:
        return -1
    return stored.slot.sinks["enrich/lake@1"].reached.get((ORDERS_ID, 0), -1)
