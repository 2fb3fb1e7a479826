"""A topic that was deleted stays so, on brokers that create those that a client names."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from integration.brokers import own_broker
from integration.waiting import eventually
from waybill_local.ports import address, pick
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Range
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_shared.kafka.clients import make_producer, produce_and_wait
from waybill_shared.kafka.topics import create_missing
from waybill_spark.driver.reading import source

TOPIC = "was.deleted"
SOON = {  # it is given up
    "kafkaConsumer.pollTimeoutMs": "1000",
    "kafka.request.timeout.ms": "1000",
    "kafka.default.api.timeout.ms": "2000",
}
TIMEOUT_S = 5.0
REFRESH_MS = 100
HEARD_WITHIN_S = 1.0  # of one that is created after all


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaAdmin]:
    ports = pick({"kafka": 0, "controller": 0})
    with own_broker(tmp_path_factory, ports, settings={"auto.create.topics.enable": "true"}):
        yield make_admin(address(ports["kafka"]))


@pytest.fixture
def topic(admin: KafkaAdmin) -> TopicIdentity:
    create_missing(admin, [NewTopic(TOPIC, 1, 1)])
    eventually(lambda: TOPIC in admin.identify([TOPIC]))
    assert admin.ends(TOPIC, [0]) == {0: 0}
    return admin.identify([TOPIC])[TOPIC]


def delete(admin: KafkaAdmin) -> None:
    admin.client.delete_topics([TOPIC])[TOPIC].result()
    eventually(lambda: not admin.identify([TOPIC]))


def stays_deleted(admin: KafkaAdmin) -> bool:
    deadline = time.monotonic() + HEARD_WITHIN_S
    while time.monotonic() < deadline:
        if make_admin(admin.cluster).identify([TOPIC]):
            return False
    return True


def test_brokers_here_create_what_a_client_names(admin: KafkaAdmin) -> None:
    """Else the others prove nothing."""
    Producer(admin.cluster.client_options()).list_topics("named", timeout=TIMEOUT_S)
    eventually(lambda: "named" in admin.identify(["named"]))


def test_producer_that_wrote_there(admin: KafkaAdmin, topic: TopicIdentity) -> None:
    """It asks from time to time for all topics that it knows."""
    producer = make_producer(admin.cluster, **{"topic.metadata.refresh.interval.ms": REFRESH_MS})
    produce_and_wait(producer, topic.name, "1", b"{}")
    delete(admin)
    assert stays_deleted(admin)


def test_question_where_it_ends(admin: KafkaAdmin, topic: TopicIdentity) -> None:
    delete(admin)
    with pytest.raises(Retryable):
        admin.ends(topic.name, [0])
    assert stays_deleted(admin)


def test_batch_that_was_planned_before(
    admin: KafkaAdmin, topic: TopicIdentity, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = source._options(admin.cluster)
    monkeypatch.setattr(source, "_options", lambda kafka: {**options, **SOON})
    records = Range(topic=topic.name, topic_id=topic.topic_id, partition=0, start=0, end=5)
    batch = source.read_ranges(spark, admin.cluster, (records,))
    batch._jdf.queryExecution().executedPlan()
    delete(admin)
    with pytest.raises(Py4JJavaError, match=TOPIC):
        batch.collect()
    assert stays_deleted(admin)
