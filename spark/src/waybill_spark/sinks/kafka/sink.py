"""The Kafka sink: one transaction per batch holds the rows and the fence."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from confluent_kafka import Producer

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Fence
from waybill_shared.contract.words import LossReason
from waybill_spark.kafka.fence_topic.moving import FenceTransactions
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.kafka.topic_ids import sure_ids
from waybill_spark.sinks.kafka.sending import Placed, Producing, batch_of, send
from waybill_spark.tracking.distributed_rows import DistributedRows
from waybill_spark.tracking.outputs import SinkTopic, outputs_after
from waybill_spark.tracking.sink import RowsRefused, SinkLife, Written
from waybill_spark.tracking.stopping import StageStopped

VISIBLE_WAIT_S: Final = 1.0
VISIBLE_POLL_S_MIN: Final = 0.001  # what the markers of our own commit usually take
VISIBLE_POLL_S_MAX: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSinkTarget:
    topic: str
    topic_id: str
    absent_s: float  # so long the topic must be unknown until it counts as deleted
    at_least_once: bool = False  # whether rows may be there again, so that executors may write


class KafkaSink:
    def __init__(self, life: SinkLife, target: KafkaSinkTarget, fences: Fences) -> None:
        self.name = life.name
        self.since = life.since
        self.key = life.key
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
        if isinstance(rows, DistributedRows) and self._target.at_least_once:
            done = self._spread(rows, fence)
            moved = self._transactions.move(lambda _: done)
        else:
            moved = self._transactions.move(lambda producer: self._produce(producer, rows, fence))
        return Written(fence=moved, version={})

    def find_refusal(self, rows: Iterable[pa.RecordBatch]) -> str | None:
        try:
            self._transactions.undone(lambda producer: self._produce_rows(producer, rows, b""))
        except RowsRefused as refusal:
            return str(refusal)
        return None

    def await_visible(self, fence: Fence) -> bool:
        """Wait until readers see the rows.

        Our own markers take a moment; an open transaction of others takes as long as they like.
        """
        ends = {o.partition: o.end for o in fence.outputs if o.topic_id == self._target.topic_id}
        deadline = time.monotonic() + VISIBLE_WAIT_S
        pause_s = VISIBLE_POLL_S_MIN
        while True:
            visible = self._covers(ends)
            self._check_topic()  # after it: the ends of another topic of that name say nothing
            if visible:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, VISIBLE_POLL_S_MAX)

    def close(self) -> None:
        self._transactions.close()

    def _covers(self, ends: Mapping[int, int]) -> bool:
        try:
            stable = self._admin.stable_ends(self._target.topic, ends) if ends else {}
        except Retryable:
            self._check_topic()  # a deleted topic is no fault that passes
            raise
        return all(stable.get(partition, 0) >= end for partition, end in ends.items())

    def _produce(
        self, producer: Producer, rows: Iterable[pa.RecordBatch] | None, fence: Fence
    ) -> Fence:
        placed: Placed = {}
        if rows is not None:
            placed = self._produce_rows(producer, rows, batch_of(fence))
            self._check_topic()
        return replace(fence, outputs=outputs_after(fence.outputs, placed, self._to))

    def _produce_rows(
        self, producer: Producer, rows: Iterable[pa.RecordBatch], batch: bytes
    ) -> Placed:
        """Produce and flush; first offset and end by partition, as Kafka reported them."""
        sent = send(producer, self._target.topic, rows, batch)
        if not sent.whole:
            self._check_topic()  # a deleted topic is no fault that passes
            sent.refuse(f"sink {self.name}, topic {self._target.topic}")
        return sent.placed

    def _spread(self, rows: DistributedRows, fence: Fence) -> Fence:
        """Let executors write, each for itself. What is run again is written again."""
        work = Producing(
            sink=self.name, cluster=self._admin.cluster, topic=self._target.topic, fence=fence
        )
        results = rows.carry_out(work, lambda done: None)
        if sum(each.count for each in results) != rows.num_rows:
            raise Retryable(f"sink {self.name}: records went while executors wrote them")
        self._check_topic()
        placed: Placed = {}
        for each in results:
            for partition, (first, end) in each.placed.items():
                known = placed.get(partition, (first, end))
                placed[partition] = (min(first, known[0]), max(end, known[1]))
        return replace(fence, outputs=outputs_after(fence.outputs, placed, self._to))

    def _check_topic(self) -> None:
        topic, wanted = self._target.topic, self._target.topic_id
        found = sure_ids(self._admin, {topic: wanted}, absent_s=self._target.absent_s).get(topic)
        if found != wanted:
            now = f"now it is {found}" if found is not None else "gone"
            detail = f"sink {self.name}: topic {topic} had id {wanted}, {now}"
            hint = "restart the pipeline with --from earliest (or latest): it writes to the new one"
            reason = LossReason.TOPIC_RECREATED if found else LossReason.TOPIC_DELETED
            raise StageStopped(reason, detail, hint)
