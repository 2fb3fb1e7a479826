"""The newest records of a topic, as a broker has them."""

import asyncio
import uuid
from collections.abc import Sequence

import pytest
from confluent_kafka.admin import NewTopic

from containers import Servers
from integration.waiting import eventually
from waybill_ingress.adapters.kafka.samples import KafkaSamples
from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import claim_transactions, make_producer
from waybill_shared.kafka.topics import create_missing

WAIT_S = 120.0
PARTITIONS = (0, 1, 2)


@pytest.fixture(scope="module")
def admin(servers: Servers) -> KafkaAdmin:
    return make_admin(servers.kafka)


@pytest.fixture
def topic(admin: KafkaAdmin) -> str:
    """As soon as every partition has a leader."""
    name = f"samples-{uuid.uuid4().hex[:8]}"

    def there() -> bool:
        try:
            create_missing(admin, [NewTopic(name, len(PARTITIONS), 1)])
            return admin.ends(name, PARTITIONS) == dict.fromkeys(PARTITIONS, 0)
        except Retryable:
            return False

    eventually(there, within_s=WAIT_S)
    return name


def newest(servers: Servers, admin: KafkaAdmin, topic: str) -> Sequence[bytes | None]:
    async def read() -> Sequence[bytes | None]:
        return await KafkaSamples(servers.kafka, admin).newest(topic, PARTITIONS)

    return asyncio.run(read())


def write(servers: Servers, topic: str, partition: int, count: int) -> None:
    producer = make_producer(servers.kafka)
    for n in range(count):
        producer.produce(topic, b"%d:%d" % (partition, n), partition=partition)
    assert producer.flush(WAIT_S) == 0


def test_an_empty_topic_has_none(servers: Servers, admin: KafkaAdmin, topic: str) -> None:
    assert newest(servers, admin, topic) == []


def test_the_newest_of_each_partition_come(servers: Servers, admin: KafkaAdmin, topic: str) -> None:
    write(servers, topic, 0, 500)
    write(servers, topic, 2, 3)
    expected = [b"0:%d" % n for n in range(500 - 97, 500)] + [b"2:%d" % n for n in range(3)]
    assert sorted(newest(servers, admin, topic), key=str) == sorted(expected, key=str)


def test_only_what_is_committed_comes_and_an_open_transaction_is_not_waited_for(
    servers: Servers, admin: KafkaAdmin, topic: str
) -> None:
    producer = make_producer(servers.kafka, **{"transactional.id": f"{topic}-writer"})
    claim_transactions(producer, WAIT_S)
    for value, end in ((b"kept", "commit"), (b"gone", "abort"), (b"open", None)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(WAIT_S)
        if end == "commit":
            producer.commit_transaction(WAIT_S)
        elif end == "abort":
            producer.abort_transaction(WAIT_S)
    assert newest(servers, admin, topic) == [b"kept"]
    producer.abort_transaction(WAIT_S)
