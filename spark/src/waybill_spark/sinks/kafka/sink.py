"""The Kafka sink: one transaction per batch holds the rows and the fence."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fence
from waybill_shared.contract.words import LossReason
from waybill_shared.kafka.clients import flush_until_cause, position_of
from waybill_shared.kafka.errors import explain
from waybill_spark.fence_topic.moving import FenceTransactions
from waybill_spark.fence_topic.reading import Fences
from waybill_spark.outputs import SinkTopic, outputs_after
from waybill_spark.sinks.contract import RowsRefused, SinkLife, Written
from waybill_spark.stopping import StageStopped
from waybill_spark.topic_ids import sure_ids

KEY: Final = "__waybill_key"  # the columns of its rows; they never reach a table
VALUE: Final = "__waybill_value"
BATCH_HEADER: Final = "waybill-batch"  # of every record: `lineage:batch`
FLUSH_TIMEOUT_S: Final = 60.0
QUEUE_WAIT_S: Final = 0.05
VISIBLE_WAIT_S: Final = 1.0
VISIBLE_POLL_S_MIN: Final = 0.001  # what the markers of our own commit usually take
VISIBLE_POLL_S_MAX: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSinkTarget:
    topic: str
    topic_id: str
    absent_s: float  # so long the topic must be unknown until it counts as gone


class KafkaSink:
    def __init__(self, life: SinkLife, target: KafkaSinkTarget, fences: Fences) -> None:
        self.name = life.name
        self.since = life.since
        self.moved = life.moved
        self._target = target
        self._to = SinkTopic(topic=target.topic, topic_id=target.topic_id)
        self._transactions = FenceTransactions(f"sink {life.name}", life.fence_key, fences)
        self._admin = fences.admin

    def claim(self) -> None:
        self._transactions.claim()

    def last(self) -> Written | None:
        fence = self._transactions.last()
        return None if fence is None else Written(fence=fence, version={})

    def write(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> Written:
        moved = self._transactions.move(lambda producer: self._produce(producer, rows, fence))
        return Written(fence=moved, version={})

    def refused(self, rows: Iterable[pa.RecordBatch]) -> str | None:
        try:
            self._transactions.undone(lambda producer: self._produce_rows(producer, rows, b""))
        except RowsRefused as refusal:
            return str(refusal)
        return None

    def await_visible(self, fence: Fence) -> bool:
        """Our markers take a moment; a stranger's open transaction takes as long as it likes."""
        ends = {o.partition: o.end for o in fence.outputs if o.topic_id == self._target.topic_id}
        deadline = time.monotonic() + VISIBLE_WAIT_S
        pause_s = VISIBLE_POLL_S_MIN
        while True:
            visible = self._covered(ends)
            self._check_topic()  # behind it: the ends of another topic of that name say nothing
            if visible:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, VISIBLE_POLL_S_MAX)

    def close(self) -> None:
        self._transactions.close()

    def _covered(self, ends: Mapping[int, int]) -> bool:
        try:
            stable = self._admin.stable_ends(self._target.topic, ends) if ends else {}
        except Retryable:
            self._check_topic()  # a topic that is gone is no fault that passes
            raise
        return all(stable.get(partition, 0) >= end for partition, end in ends.items())

    def _produce(
        self, producer: Producer, rows: Iterable[pa.RecordBatch] | None, fence: Fence
    ) -> Fence:
        placed: dict[int, tuple[int, int]] = {}
        if rows is not None:
            batch = f"{fence.lineage}:{fence.batch_id}".encode()
            placed = self._produce_rows(producer, rows, batch)
            self._check_topic()
        return replace(fence, outputs=outputs_after(fence.outputs, placed, self._to))

    def _produce_rows(
        self, producer: Producer, rows: Iterable[pa.RecordBatch], batch: bytes
    ) -> dict[int, tuple[int, int]]:
        """Produce and flush; first offset and end by partition, as Kafka reported them."""
        placed: dict[int, tuple[int, int]] = {}
        failures: list[KafkaError] = []
        record = _Record(self._target.topic, [(BATCH_HEADER, batch)])

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(error)
                return
            partition, offset = position_of(message)
            if offset < 0:  # acknowledged, but nobody knows where: not a place to report
                failures.append(KafkaError(KafkaError.UNKNOWN, "a record without an offset"))
                return
            first, end = placed.get(partition, (offset, offset + 1))
            placed[partition] = (min(first, offset), max(end, offset + 1))

        ended: KafkaException | None = None
        try:
            for part in rows:
                keys, values = part.column(KEY).to_pylist(), part.column(VALUE).to_pylist()
                for key, value in zip(keys, values, strict=True):
                    _produce(producer, record, key, value, on_delivery)
        except KafkaException as error:
            ended = error  # by a record before, whose report may still be to come
        left = flush_until_cause(producer, failures, FLUSH_TIMEOUT_S)
        if failures or left or ended is not None:
            self._check_topic()  # a topic that is gone is no fault that passes
            self._refuse_too_large(failures)
            if ended is not None:
                raise ended
            reason = explain(failures[0]) if failures else f"{left} not acknowledged in time"
            raise Retryable(f"sink {self.name}, topic {self._target.topic}: {reason}")
        return placed

    def _refuse_too_large(self, failures: Iterable[KafkaError]) -> None:
        if any(failure.code() == KafkaError.MSG_SIZE_TOO_LARGE for failure in failures):
            topic = self._target.topic
            message = f"sink {self.name}, topic {topic}: a record is larger than the topic takes"
            raise RowsRefused(message, hint=f"raise max.message.bytes of {topic}")

    def _check_topic(self) -> None:
        topic, wanted = self._target.topic, self._target.topic_id
        found = sure_ids(self._admin, {topic: wanted}, absent_s=self._target.absent_s).get(topic)
        if found != wanted:
            now = f"now it is {found}" if found is not None else "gone"
            detail = f"sink {self.name}: topic {topic} had id {wanted}, {now}"
            hint = "restart the pipeline with --from earliest (or latest): it writes to the new one"
            reason = LossReason.TOPIC_RECREATED if found else LossReason.TOPIC_DELETED
            raise StageStopped(reason, detail, hint)


@dataclass(frozen=True, slots=True)
class _Record:
    """What all records of a batch have in common."""

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
