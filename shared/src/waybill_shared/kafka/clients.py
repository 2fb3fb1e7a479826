"""How we talk to Kafka: producers and consumers with explicit options, and reading to the end.

Driver errors become `Retryable` here and in `waybill_shared.kafka.admin`, and nowhere else.
"""

import logging
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import wraps

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import ADMIN_TIMEOUT_S, make_admin
from waybill_shared.kafka.cluster import Kafka, cluster_of
from waybill_shared.kafka.errors import PURGED, explain
from waybill_shared.kafka.majority import highest_ends

logger = logging.getLogger(__name__)

POLL_S = 0.2
FLUSH_STEP_S = 0.1
SILENCE_S = 30.0  # so long a broker may say nothing before a read is given up
READ_MESSAGES_MAX = 1_000
END_WAIT_MS = 10  # a broker holds back that nothing is left for so long; news it sends at once

COMMON = {
    # Java's partitioner, so that a key lands where every other client puts it.
    "partitioner": "murmur2_random",
    "acks": "all",
    "enable.idempotence": True,
    "allow.auto.create.topics": False,  # one that was deleted stays so
}


def make_producer(kafka: Kafka, **options: object) -> Producer:
    """Make an idempotent producer with acks=all; `linger.ms` is low because somebody waits."""
    base = {**cluster_of(kafka).client_options(), "linger.ms": 1, "logger": logger}
    return Producer({**base, **COMMON, **options})


def claim_transactions(producer: Producer, timeout_s: float) -> None:
    """Fence the producer that had this transactional id, and end the transaction that it left open.

    A client drops its first connection as soon as it knows the brokers by their numbers. What it
    wants at that moment it tries again after half a second. So it asks twice here: the second
    question uses the connection that stays. It names no topic, since a broker may create a topic
    that is named and was deleted.
    """
    for _ in range(2):
        producer.list_topics(timeout=timeout_s)
    producer.init_transactions(timeout_s)


def make_consumer(kafka: Kafka, group: str, **options: object) -> Consumer:
    """Make a consumer that commits and stores no offset by itself."""
    return Consumer(
        {
            **cluster_of(kafka).client_options(),
            "logger": logger,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            # The broker's own minimum: so long nobody takes over from a process that was killed.
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 1_500,
            "allow.auto.create.topics": False,
            **options,
        }
    )


Rebalance = Callable[[Consumer, list[TopicPartition]], None]


def subscribe(
    consumer: Consumer, topics: Sequence[str], *, on_assign: Rebalance, on_revoke: Rebalance
) -> None:
    """Subscribe a consumer so that its `poll` and `close` raise the errors of the callbacks.

    On Python 3.11 the client garbles an error of its own functions that leaves a callback: it
    raises SystemError, or a KafkaError that no `except` catches. It keeps one that was raised by
    Python.
    """
    consumer.subscribe(
        list(topics), on_assign=_raise_errors_of(on_assign), on_revoke=_raise_errors_of(on_revoke)
    )


def _raise_errors_of(callback: Rebalance) -> Rebalance:
    """Return the callback with each of its errors raised by Python."""

    @wraps(callback)
    def call(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        try:
            callback(consumer, partitions)
        except Exception:
            raise  # not superfluous: this makes the error an object, which the client needs

    return call


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
        raise Retryable(f"topic {topic} refused a message: {explain(error)}")
    return message


def flush_until_cause(producer: Producer, failures: Sequence[KafkaError], timeout_s: float) -> int:
    """Flush until a failure is reported that is no mere consequence of another one.

    In a transaction, records that were sent with a refused one are never acknowledged. Return how
    many are left.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        left = producer.flush(FLUSH_STEP_S)
        known = any(failure.code() not in PURGED for failure in failures)
        if not left or known or time.monotonic() > deadline:
            return left


def position_of(message: Message) -> tuple[int, int]:
    """Return partition and offset of a message that Kafka delivered."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None
    return partition, offset


def read_to_end(kafka: Kafka, topic: str, partitions: Iterable[int]) -> Iterator[Message]:
    """Yield committed messages up to the present ends.

    The end is the high watermark: after an open transaction this waits until it has ended.
    """
    ends, reader = highest_ends(make_admin(kafka), topic, partitions)
    ranges = {partition: (0, end) for partition, end in ends.items()}
    yield from read_ranges(reader.cluster, topic, ranges)


def read_ranges(
    kafka: Kafka,
    topic: str,
    ranges: Mapping[int, tuple[int, int]],
    *,
    committed: bool = True,
    silence_s: float = SILENCE_S,
) -> Generator[Message, None, None]:
    """Yield messages of each partition from its first offset to before its second.

    Raise Retryable when nothing arrives for `silence_s`. There is no other limit of time while more
    arrives.
    """
    left = {partition: end for partition, (start, end) in ranges.items() if end > start}
    if not left:
        return
    level = "read_committed" if committed else "read_uncommitted"
    options: dict[str, object] = {"enable.partition.eof": True, "isolation.level": level}
    options["fetch.wait.max.ms"] = END_WAIT_MS
    consumer = make_consumer(kafka, "waybill-reader", **options)
    try:
        # By number: to look for the beginning costs this client half a second.
        consumer.assign([TopicPartition(topic, p, ranges[p][0]) for p in left])
        received_at = time.monotonic()
        while left:
            for message in _next_messages(consumer):
                received_at = time.monotonic()
                if _is_within(message, ranges, left):
                    yield message
            if time.monotonic() - received_at > silence_s:
                places = ", ".join(f"[{p}] to {end}" for p, end in sorted(left.items()))
                raise Retryable(
                    f"topic {topic}: nothing came for {silence_s:.0f} s, and {places} is not read:"
                    " a broker is slow, or a transaction is open there"
                )
    finally:
        consumer.close()


def _next_messages(consumer: Consumer) -> list[Message]:
    """Wait for the next message. Return it with all that have arrived; none if it is late."""
    first = consumer.poll(POLL_S)
    return [] if first is None else [first, *consumer.consume(READ_MESSAGES_MAX, 0)]


def _is_within(
    message: Message, ranges: Mapping[int, tuple[int, int]], left: dict[int, int]
) -> bool:
    """Return True if the message is one that was asked for, and remove its partition from `left`
    when it is read.

    Markers and compacted offsets give no message: the next message passes them. A broker that has
    lost the others may send the client back to the start.
    """
    error = message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise Retryable(f"topic {message.topic()}: {explain(error)}")
    partition, at = position_of(message)
    end = left.get(partition, 0)
    if at + (error is None) >= end:
        left.pop(partition, None)
    return error is None and ranges[partition][0] <= at < end
