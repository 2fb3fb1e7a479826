"""Rows become records of a topic: in the transaction of a driver, or sent by an executor."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NoReturn, TypeAlias

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fence
from waybill_shared.kafka.clients import flush_until_cause, make_producer, position_of
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.errors import explain
from waybill_shared.process.failpoints import reach
from waybill_spark.kafka.fence_topic.moving import RECORD_BYTES_MAX
from waybill_spark.tracking.distributed_rows import Share
from waybill_spark.tracking.sink import RowsRefused

KEY: Final = "__waybill_key"  # the columns of its rows; they never reach a table
VALUE: Final = "__waybill_value"
BATCH_HEADER: Final = "waybill-batch"  # of every record: `lineage:batch`
FLUSH_TIMEOUT_S: Final = 60.0
QUEUE_WAIT_S: Final = 0.05
Placed: TypeAlias = dict[int, tuple[int, int]]
"""First offset and end by partition, as Kafka reported them."""


@dataclass(slots=True)
class Sent:
    """The fate of rows: `count` of them are where they were `placed`, if that is all."""

    topic: str
    placed: Placed = field(default_factory=dict)
    count: int = 0
    failures: list[KafkaError] = field(default_factory=list)
    left: int = 0
    ended: KafkaException | None = None
    """The error that ended the transaction at an earlier record; the report of that record may be
    missing yet.
    """

    @property
    def whole(self) -> bool:
        return not self.failures and not self.left and self.ended is None

    def refuse(self, what: str) -> NoReturn:
        """Raise why the records are not accepted."""
        if any(each.code() == KafkaError.MSG_SIZE_TOO_LARGE for each in self.failures):
            message = f"{what}: a record is larger than the topic takes"
            raise RowsRefused(message, hint=f"raise max.message.bytes of {self.topic}")
        if self.ended is not None:
            raise self.ended
        reason = explain(self.failures[0]) if self.failures else f"{self.left} not acknowledged"
        raise Retryable(f"{what}: {reason}" + ("" if self.failures else " in time"))


def batch_of(fence: Fence) -> bytes:
    return f"{fence.batch.lineage}:{fence.batch.batch_id}".encode()


def send(producer: Producer, topic: str, rows: Iterable[pa.RecordBatch], batch: bytes) -> Sent:
    """Produce and flush."""
    sent = Sent(topic)
    record = _Record(topic, [(BATCH_HEADER, batch)])

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            sent.failures.append(error)
            return
        partition, offset = position_of(message)
        if offset < 0:  # acknowledged, but nobody knows where: not a place to report
            sent.failures.append(KafkaError(KafkaError.UNKNOWN, "a record without an offset"))
            return
        first, end = sent.placed.get(partition, (offset, offset + 1))
        sent.placed[partition] = (min(first, offset), max(end, offset + 1))
        sent.count += 1

    try:
        for part in rows:
            keys, values = part.column(KEY).to_pylist(), part.column(VALUE).to_pylist()
            for key, value in zip(keys, values, strict=True):
                _produce(producer, record, key, value, on_delivery)
    except KafkaException as error:
        sent.ended = error
    sent.left = flush_until_cause(producer, sent.failures, FLUSH_TIMEOUT_S)
    return sent


@dataclass(frozen=True, slots=True)
class Produced:
    """The records of one share: how many there are, and where."""

    placed: Placed
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Producing:
    """Work of an executor, outside of any transaction."""

    sink: str
    cluster: Kafka = field(repr=False)
    topic: str
    fence: Fence

    def __call__(self, share: Share) -> Iterator[Produced]:
        what = f"sink {self.sink}, topic {self.topic}"
        producer = make_producer(self.cluster, **{"message.max.bytes": RECORD_BYTES_MAX})
        sent = send(producer, self.topic, share.rows, batch_of(self.fence))
        if not sent.whole:
            try:
                sent.refuse(what)
            except KafkaException as error:
                raise Retryable(f"{what}: {explain(error.args[0])}") from error
        reach(f"{self.fence.pipeline_uid}.{self.sink}.in_share")
        yield Produced(sent.placed, sent.count)


@dataclass(frozen=True, slots=True)
class _Record:
    """The common part of all records of a batch."""

    topic: str
    headers: list[tuple[str, str | bytes | None]]


def _produce(
    producer: Producer,
    record: _Record,
    key: str | None,
    value: str,
    on_delivery: Callable[[KafkaError | None, Message], None],
) -> None:
    while True:
        try:
            producer.produce(
                record.topic,
                key=key,
                value=value,
                headers=record.headers,
                on_delivery=on_delivery,
            )
            return
        except BufferError:
            producer.poll(QUEUE_WAIT_S)
