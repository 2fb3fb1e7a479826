"""What ingress has of Kafka: its log, its topics, and the pipelines that it follows."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest
from confluent_kafka.admin import NewTopic

from containers import Servers
from contracts.follower import FollowerContract
from contracts.log import PARTITIONS, LogContract, TopicsContract
from integration.waiting import eventually
from waybill_ingress.adapters.kafka.producer import AdminTopics, ProducerLog
from waybill_ingress.app.idempotency_ports import Aborted
from waybill_ingress.core.rows import Record
from waybill_shared.contract import codec
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import PipelineRecord, pipeline_key
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import claim_transactions, make_producer, produce_and_wait
from waybill_shared.kafka.follower import TopicFollower
from waybill_shared.kafka.news import News
from waybill_shared.kafka.topics import create_missing
from waybill_shared.topic_views.pipelines import PipelineDirectory

T = TypeVar("T")
WAIT_S = 120.0


class Asked:
    def __init__(self, kafka: str, log: ProducerLog) -> None:
        self.topic = f"ports-{uuid.uuid4().hex[:8]}"
        self.log = log
        self._admin = make_admin(kafka)
        self.topics = AdminTopics(self._admin)
        create(self._admin, self.topic)

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        return finished(work)

    def delete(self) -> None:
        self._admin.client.delete_topics([self.topic])[self.topic].result()
        eventually(lambda: not self._admin.identify([self.topic]), within_s=WAIT_S)

    def create_anew(self) -> None:
        self.delete()
        create(self._admin, self.topic)


class Following:
    def __init__(self, kafka: str) -> None:
        self.topic = f"ports-{uuid.uuid4().hex[:8]}"
        create(make_admin(kafka), self.topic)
        self.directory = PipelineDirectory()
        self.follower = TopicFollower(kafka, self.topic, PipelineRecord, self.directory.accept)
        self.news = News(self.follower)
        self._producer = make_producer(kafka)

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        return finished(work)

    def tell(self, record: PipelineRecord) -> None:
        key = pipeline_key(record.tenant, record.pipeline_uid)
        produce_and_wait(self._producer, self.topic, key, codec.encode(record))


def finished(work: Callable[[], Awaitable[T]]) -> T:
    async def run() -> T:
        return await work()

    return asyncio.run(run())


def create(admin: KafkaAdmin, topic: str, config: dict[str, str] | None = None) -> None:
    """As soon as every partition has a leader."""

    def there() -> bool:
        try:
            create_missing(admin, [NewTopic(topic, len(PARTITIONS), 1, config=config or {})])
            return admin.ends(topic, PARTITIONS) == dict.fromkeys(PARTITIONS, 0)
        except Retryable:
            return False

    eventually(there, within_s=WAIT_S)


@pytest.fixture(scope="module")
def log(servers: Servers) -> Iterator[ProducerLog]:
    options: dict[str, object] = {"delivery.timeout.ms": 5_000}
    with ProducerLog(servers.kafka, options, on_fatal=pytest.fail) as log:
        yield log


@pytest.fixture
def bench(servers: Servers, log: ProducerLog) -> Asked:
    return Asked(servers.kafka, log)


class TestProducerLog(LogContract):
    """Over a broker."""


@pytest.fixture
def spoilt(servers: Servers) -> Iterator[tuple[ProducerLog, str]]:
    """In a transaction, and a topic that takes no record without a key."""
    topic = f"ports-{uuid.uuid4().hex[:8]}"
    create(make_admin(servers.kafka), topic, {"cleanup.policy": "compact"})
    options: dict[str, object] = {"transactional.id": topic, "delivery.timeout.ms": 5_000}
    with ProducerLog(servers.kafka, options, on_fatal=pytest.fail) as log:
        claim_transactions(log.producer, WAIT_S)
        log.producer.begin_transaction()
        yield log, topic
        log.producer.abort_transaction(WAIT_S)


def test_a_record_that_spoils_a_transaction_is_named_and_what_follows_is_for_another(
    spoilt: tuple[ProducerLog, str],
) -> None:
    """Also if its refusal is there before all of its own request is handed over."""
    log, topic = spoilt
    good = [Record(row, b"key", b"{}") for row in range(1, 50_001)]
    bad = [Record(0, None, b"{}"), *good]
    written = finished(lambda: log.append(topic, bad, whole=True))
    assert written.refused
    with pytest.raises(Aborted, match="same transaction"):
        finished(lambda: log.append(topic, good[:1], whole=True))


class TestAdminTopics(TopicsContract):
    """Over a broker."""


class TestTopicFollower(FollowerContract):
    @pytest.fixture
    def bench(self, servers: Servers) -> Iterator[Following]:
        following = Following(servers.kafka)
        with following.follower:
            yield following
