"""What is in topics of a cluster of which brokers die and lag, and who writes there."""

import json
from collections.abc import Iterable
from typing import Final, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from batch_reading import in_pieces_of
from builders import make_fence
from integration.cluster import Cluster
from waybill_ingress.adapters.kafka.producer import AdminTopics
from waybill_ingress.app.ports import Directory, News, SealingClock
from waybill_ingress.app.registry import Registry
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fence
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer, position_of, read_to_end
from waybill_spark.driver.reading.sizes import RecordSizes
from waybill_spark.driver.reading.topics import TopicSource
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.kafka.topic_ids import OTHER_ID_S
from waybill_spark.sinks.kafka.sending import KEY, VALUE
from waybill_spark.sinks.kafka.sink import KafkaSink, KafkaSinkTarget
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.sink import SinkLife
from waybill_stage_runner.adapters.topics import KafkaTopics

PREFIX: Final = "brokers"
FENCES: Final = f"{PREFIX}.fences"
COMPACTED: Final = {"cleanup.policy": "compact"}
TRANSACTIONS: Final = "__transaction_state"
ANEW: Final = "created.anew"
LATE: Final = "created.late"
BEFORE: Final = (20, 30)  # what the first topic of that name held
NOW: Final = (0, 5)  # and what the second one holds
CLIENTS: Final = 12  # with chance none of them asks the broker that lags: 1 in 130
ADMIN_TIMEOUT_S: Final = 2.0
SILENCE_S: Final = 3.0
WITHIN_S: Final = 120.0


def source(admin: KafkaAdmin, *, absent_s: float = OTHER_ID_S) -> TopicSource:
    return TopicSource(
        admin,
        cast(SparkSession, Session()),
        admin.cluster,
        lambda frame: BatchRows({}),
        lambda record, verdict: pytest.fail("no record is dead"),
        sizes=RecordSizes(),
        limits=in_pieces_of(1),
        absent_s=absent_s,
    )


class Session:
    def newSession(self) -> "Session":  # noqa: N802 - Spark's name
        return self


def topics_of(admin: KafkaAdmin) -> KafkaTopics:
    return KafkaTopics(admin, prefix="waybill", replication=3)


def registry(admin: KafkaAdmin) -> Registry:
    nobody = (cast(Directory, None), cast(News, None))
    return Registry(*nobody, AdminTopics(admin), cast(SealingClock, None))


def fill(kafka: str, topic: str, count: int) -> None:
    producer = make_producer(kafka)
    for _ in range(count):
        producer.produce(topic, value=b"{}", partition=0)
    assert producer.flush(WITHIN_S) == 0


def committed(cluster: Cluster, topic: str) -> list[tuple[int, bytes]]:
    messages = read_to_end(cluster.kafka, topic, [0])
    return [(position_of(message)[1], message.value() or b"") for message in messages]


def sides(admin: KafkaAdmin, topic: str) -> tuple[int, int, int] | None:
    """Where it begins and ends, and up to where it can be read; None while somebody is silent."""
    try:
        start, end, stable = (
            ask(topic, [0])[0] for ask in (admin.starts, admin.ends, admin.stable_ends)
        )
    except Retryable:
        return None
    return start, end, stable


def empty(admin: KafkaAdmin, topic: str) -> bool:
    return sides(admin, topic) == (0, 0, 0)


def sink_in(admin: KafkaAdmin, topic: str, topic_id: str) -> KafkaSink:
    target = KafkaSinkTarget(
        topic=topic,
        topic_id=topic_id,
        absent_s=OTHER_ID_S,
    )
    life = SinkLife(name="out", since=1, fence_key=f"default/{topic}/copy/out@1")
    return KafkaSink(life, target, Fences(admin, PREFIX))


def opened(admin: KafkaAdmin, topic: str) -> KafkaSink:
    sink = sink_in(admin, topic, admin.identify([topic])[topic].topic_id)
    sink.claim()
    return sink


def after(fence: Fence) -> Fence:
    """The next fence, as a stage makes it before the sink writes."""
    return make_fence(sequence=fence.batch.sequence + 1, outputs=fence.outputs)


def rows(*numbers: int) -> Iterable[pa.RecordBatch]:
    values = [json.dumps({"order_id": number}) for number in numbers]
    batches: list[pa.RecordBatch] = pa.table(
        {KEY: [str(number) for number in numbers], VALUE: values}
    ).to_batches()
    return batches
