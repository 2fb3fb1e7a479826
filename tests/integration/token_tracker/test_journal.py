"""The journal over a real Kafka: a group, its offsets, and the topic of snapshots."""

from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition

from builders import TENANT, make_fact
from contracts.journal import JournalContract
from integration.conftest import Surroundings
from integration.token_tracker.member import Member
from integration.topics import create_anew
from waybill_shared.contract import codec
from waybill_shared.contract.events import Snapshot, pipeline_key
from waybill_shared.kafka.clients import make_consumer, make_producer, produce_and_wait, read_to_end
from waybill_shared.kafka.partitioner import partition_of
from waybill_token_tracker.adapters.journal import KafkaJournal

PARTITIONS = 8
ANSWER_TIMEOUT_S = 10.0


class Real:
    partition = 0

    def __init__(self, around: Surroundings) -> None:
        numbered = (f"uid-{number}" for number in range(1_000))
        mine = (u for u in numbered if partition_of(pipeline_key(TENANT, u), PARTITIONS) == 0)
        self.uids = (next(mine), next(mine))
        self._around = around
        self._members: list[Member] = []
        self.journal = self._member().journal

    def tell(self, count: int) -> None:
        producer, key = make_producer(self._around.kafka), pipeline_key(TENANT, self.uids[0])
        topic, fact = f"{self._around.prefix}.commits", codec.encode(make_fact(uid=self.uids[0]))
        for _ in range(count):
            produce_and_wait(producer, topic, key, fact)
        tracker = self._members[0].tracker
        self._members[0].feed_until(lambda: bool(tracker.slots()))

    def saved(self) -> tuple[dict[str, str], int]:
        around = self._around
        stored = read_to_end(around.kafka, f"{around.prefix}.frontiers", [self.partition])
        found: dict[str, str] = {}
        for message in stored:
            key, value = (message.key() or b"").decode().partition("/")[2], message.value()
            found[key] = "" if value is None else codec.decode(Snapshot, value).slot
        group = make_consumer(around.kafka, f"{around.prefix}.token_tracker")
        asked = [TopicPartition(f"{around.prefix}.commits", self.partition)]
        (committed,) = group.committed(asked, timeout=ANSWER_TIMEOUT_S)
        group.close()
        return {key: slot for key, slot in found.items() if slot}, committed.offset

    def replace(self) -> None:
        """The group forgets the first, whose journal is not told of it."""
        self._members[0].consumer.unsubscribe()
        self._member()

    def create_anew(self) -> None:
        create_anew(self._around, "commits")

    def close(self) -> None:
        for member in self._members:
            member.close()

    def _member(self) -> Member:
        member = Member(self._around)
        self._members.append(member)
        member.feed_until(lambda: self.partition in member.tracker.partitions())
        return member


class TestKafkaJournal(JournalContract):
    @pytest.fixture
    def bench(self, around: Surroundings) -> Iterator[Real]:
        real = Real(around)
        assert isinstance(real.journal, KafkaJournal)
        yield real
        real.close()
