"""Records have the same sizes, however they are measured."""

import uuid

import pytest
from confluent_kafka.admin import NewTopic
from pyspark.sql import SparkSession

from containers import Servers
from integration.waiting import eventually
from waybill_shared.contract.events import Range
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import claim_transactions, make_producer
from waybill_shared.kafka.topics import create_missing
from waybill_spark.driver.reading.sizes import Sizes, measure, measure_few
from waybill_spark.driver.reading.source import read_ranges
from waybill_spark.tracking.pieces import Ranges

TIMEOUT_S = 10.0


@pytest.fixture(scope="module")
def ranges(servers: Servers) -> Ranges:
    """Two partitions: a record without a value, then one batch that was taken back, then others.
    The last offset of each is a marker."""
    topic = f"sizes.{uuid.uuid4().hex[:8]}"
    admin = make_admin(servers.kafka)
    create_missing(admin, [NewTopic(topic, 2, 1)])
    producer = make_producer(servers.kafka, **{"transactional.id": topic})
    eventually(lambda: len(admin.identify([topic])[topic].partitions) == 2)
    claim_transactions(producer, TIMEOUT_S)
    for values, kept in (([None, b"0123"], True), ([b"gone"], False), ([b"x" * 5_000], True)):
        producer.begin_transaction()
        for partition in (0, 1):
            for value in values:
                producer.produce(topic, value, partition=partition)
        producer.flush(TIMEOUT_S)  # what is taken back before it was sent leaves no gap
        end = producer.commit_transaction if kept else producer.abort_transaction
        end(TIMEOUT_S)
    eventually(lambda: admin.ends(topic, (0, 1)) == {0: 7, 1: 7})
    return (
        Range(topic=topic, topic_id="T", partition=0, start=0, end=7),
        Range(topic=topic, topic_id="T", partition=1, start=1, end=6),
    )


def sizes_by_place(sizes: Sizes) -> dict[int, list[tuple[int, int]]]:
    return {partition: sorted(found) for (_, partition), found in sizes.items()}


def test_what_spark_reads_and_what_a_consumer_reads(
    spark: SparkSession, servers: Servers, ranges: Ranges
) -> None:
    few = sizes_by_place(measure_few(servers.kafka, ranges))
    assert few == {0: [(0, 0), (1, 4), (5, 5_000)], 1: [(1, 4), (5, 5_000)]}
    assert few == sizes_by_place(measure(read_ranges(spark, servers.kafka, ranges)))
