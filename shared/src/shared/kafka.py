"""How we talk to Kafka: producers and consumers with explicit options, and reading to the end.

Driver errors become `Retryable` here and in `shared.kafka_admin`, and nowhere else.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

from shared.errors import Retryable
from shared.kafka_admin import ADMIN_TIMEOUT_S, make_admin
from shared.kafka_cluster import Kafka, cluster_of
from shared.kafka_errors import said

logger = logging.getLogger(__name__)

POLL_S = 0.2

COMMON = {
    # Java's partitioner, so that a key lands where every other client puts it.
    "partitioner": "murmur2_random",
    "acks": "all",
    "enable.idempotence": True,
}


def make_producer(kafka: Kafka, **options: object) -> Producer:
    """An idempotent producer with acks=all; `linger.ms` is low because somebody waits."""
    base = {**cluster_of(kafka).client_options(), "linger.ms": 1, "logger": logger}
    return Producer({**base, **COMMON, **options})


def make_consumer(kafka: Kafka, group: str, **options: object) -> Consumer:
    """A consumer whose offsets move only when its owner says so."""
    return Consumer(
        {
            **cluster_of(kafka).client_options(),
            "logger": logger,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 50,
            # The broker's own minimum: so long nobody takes over from a process that was killed.
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 1_500,
            "allow.auto.create.topics": False,
            **options,
        }
    )


def produce_and_wait(
    producer: Producer, topic: str, key: str, value: bytes, *, timeout_s: float = ADMIN_TIMEOUT_S
) -> Message:
    """Produce one message and return its delivery report; Retryable if it is not acknowledged."""
    reports: list[tuple[KafkaError | None, Message]] = []
    producer.produce(topic, key=key, value=value, on_delivery=lambda e, m: reports.append((e, m)))
    deadline = time.monotonic() + timeout_s
    while not reports and time.monotonic() < deadline:
        producer.poll(POLL_S)
    if not reports:
        raise Retryable(f"no acknowledgement from topic {topic} within {timeout_s} s")
    error, message = reports[0]
    if error is not None:
        raise Retryable(f"topic {topic} refused a message: {said(error)}")
    return message


def position_of(message: Message) -> tuple[int, int]:
    """Partition and offset of a message that came from Kafka."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None
    return partition, offset


def read_to_end(
    kafka: Kafka,
    topic: str,
    partitions: Iterable[int],
    *,
    starts: Callable[[int], int] = lambda partition: OFFSET_BEGINNING,
    timeout_s: float = 60.0,
) -> Iterator[Message]:
    """Committed messages from `starts` up to the ends as they stand now; Retryable when too slow.

    The end is the high watermark: behind somebody's open transaction this waits for its fate.
    """
    admin = make_admin(kafka)
    left = admin.ends(topic, partitions)
    consumer = make_consumer(kafka, "waybill-reader", **{"enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(topic, p, starts(p)) for p in left])
        deadline = time.monotonic() + timeout_s
        left = {partition: end for partition, end in left.items() if end > 0}
        while left:
            if time.monotonic() > deadline:
                raise Retryable(f"topic {topic} could not be read to its end in {timeout_s} s")
            message = consumer.poll(POLL_S)
            if message is None:
                continue
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise Retryable(f"topic {topic}: {error.str()}")
            partition, at = position_of(message)
            reached = at if error is not None else at + 1
            if reached >= left.get(partition, 0):
                left.pop(partition, None)
            if error is None:
                yield message
    finally:
        consumer.close()
