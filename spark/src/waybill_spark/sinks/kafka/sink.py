"""The Kafka sink: one transaction per batch holds the rows and the fence, in `waybill.fences`.

Claiming is `init_transactions`, which shuts out a paused driver of the same stage and sink.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from waybill_shared.contract import codec
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fence
from waybill_shared.contract.words import LossReason
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import claim_transactions, make_producer, position_of
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.kafka.errors import FENCED, explain
from waybill_shared.process.failpoints import reach
from waybill_spark.outputs import SinkTopic, outputs_after
from waybill_spark.sinks.contract import SinkLife, SinkSuperseded, Written
from waybill_spark.sinks.kafka.fences import newest_fence
from waybill_spark.stopping import StageStopped
from waybill_spark.topic_ids import sure_ids

KEY: Final = "__waybill_key"  # the columns of its rows; they never reach a table
VALUE: Final = "__waybill_value"
TRANSACTION_TIMEOUT_S: Final = 60.0
FLUSH_TIMEOUT_S: Final = 60.0
QUEUE_WAIT_S: Final = 0.05
VISIBLE_WAIT_S: Final = 1.0
VISIBLE_POLL_S_MIN: Final = 0.001  # what the markers of our own commit usually take
VISIBLE_POLL_S_MAX: Final = 0.1
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSinkTarget:
    kafka: Kafka
    topic_prefix: str
    topic: str
    topic_id: str
    absent_s: float  # so long the topic must be unknown until it counts as gone


class KafkaSink:
    def __init__(self, life: SinkLife, target: KafkaSinkTarget, admin: KafkaAdmin) -> None:
        self.name = life.name
        self.since = life.since
        self.moved = life.moved
        self._target = target
        self._to = SinkTopic(topic=target.topic, topic_id=target.topic_id)
        self._fence_key = life.fence_key
        self._fences_topic = f"{target.topic_prefix}.fences"
        self._admin = admin
        self._producer: Producer | None = None

    def claim(self) -> None:
        transactional_id = f"{self._target.topic_prefix}/{self._fence_key}"
        self._producer = make_producer(
            self._target.kafka,
            **{
                "transactional.id": transactional_id,
                "transaction.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
            },
        )
        self._guard(lambda p: claim_transactions(p, TRANSACTION_TIMEOUT_S))

    def last(self) -> Written | None:
        value = newest_fence(self._admin, self._fences_topic, self._fence_key)
        if value is None:
            return None
        return Written(fence=codec.decode(Fence, value), version={})

    def write(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> Written:
        return self._guard(lambda producer: self._write(producer, rows, fence))

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
        self._producer = None

    def _covered(self, ends: Mapping[int, int]) -> bool:
        try:
            stable = self._admin.stable_ends(self._target.topic, ends) if ends else {}
        except Retryable:
            self._check_topic()  # a topic that is gone is no fault that passes
            raise
        return all(stable.get(partition, 0) >= end for partition, end in ends.items())

    def _write(
        self, producer: Producer, rows: Iterable[pa.RecordBatch] | None, fence: Fence
    ) -> Written:
        producer.begin_transaction()
        try:
            placed = self._produce_rows(producer, rows) if rows is not None else {}
            if rows is not None:
                self._check_topic()
            complete = replace(fence, outputs=outputs_after(fence.outputs, placed, self._to))
            producer.produce(self._fences_topic, key=self._fence_key, value=codec.encode(complete))
            reach(f"{fence.pipeline_uid}.{self.name}.before_commit")
            producer.commit_transaction(TRANSACTION_TIMEOUT_S)
        except (Retryable, StageStopped):
            producer.abort_transaction(TRANSACTION_TIMEOUT_S)
            raise
        return Written(fence=complete, version={})

    def _produce_rows(
        self, producer: Producer, rows: Iterable[pa.RecordBatch]
    ) -> dict[int, tuple[int, int]]:
        """Produce and flush; first offset and end by partition, as Kafka reported them."""
        placed: dict[int, tuple[int, int]] = {}
        failures: list[KafkaError] = []

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

        for batch in rows:
            keys, values = batch.column(KEY).to_pylist(), batch.column(VALUE).to_pylist()
            for key, value in zip(keys, values, strict=True):
                _produce(producer, self._target.topic, key, value, on_delivery)
        left = producer.flush(FLUSH_TIMEOUT_S)
        if failures or left:
            self._check_topic()  # a topic that is gone is no fault that passes
            reason = explain(failures[0]) if failures else f"{left} not acknowledged in time"
            raise Retryable(f"sink {self.name}, topic {self._target.topic}: {reason}")
        return placed

    def _check_topic(self) -> None:
        topic, wanted = self._target.topic, self._target.topic_id
        found = sure_ids(self._admin, {topic: wanted}, absent_s=self._target.absent_s).get(topic)
        if found != wanted:
            now = f"now it is {found}" if found is not None else "gone"
            detail = f"sink {self.name}: topic {topic} had id {wanted}, {now}"
            hint = "restart the pipeline with --from earliest (or latest): it writes to the new one"
            reason = LossReason.TOPIC_RECREATED if found else LossReason.TOPIC_DELETED
            raise StageStopped(reason, detail, hint)

    def _guard(self, action: Callable[[Producer], T]) -> T:
        """Run `action`, telling a newer driver's claim from the world's faults.

        After an error whose effect is not known the producer is dropped: the stage ends, and the
        next `claim` finds out by reading the fence.
        """
        assert self._producer is not None, "claim comes first"
        try:
            return action(self._producer)
        except KafkaException as error:
            self._producer = None
            cause = error.args[0]
            if cause.code() in FENCED:
                raise SinkSuperseded(f"sink {self.name}: {cause.str()}") from error
            raise Retryable(f"sink {self.name}: {explain(cause)}") from error


def _produce(
    producer: Producer,
    topic: str,
    key: str | None,
    value: str,
    on_delivery: Callable[[KafkaError | None, Message], None],
) -> None:
    while True:
        try:
            producer.produce(topic, key=key, value=value, on_delivery=on_delivery)
            return
        except BufferError:
            producer.poll(QUEUE_WAIT_S)
