"""Kafka for the tracker: facts and lifecycle in, snapshots out. Fulfils `Journal`.

The group's offset is committed only together with snapshots, so it always means: everything below
is in them.
"""

import logging
import time
from collections.abc import Iterable
from typing import Final

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from shared import codec, metrics
from shared.errors import InvalidMessage, Retryable
from shared.events import Fact, LifecycleEvent, Snapshot, pipeline_key
from shared.kafka import position_of, read_to_end
from shared.kafka_admin import KafkaAdmin
from shared.kafka_cluster import Kafka
from shared.membership import Membership
from token_tracker.app import Tracker

logger = logging.getLogger(__name__)

BATCH_MESSAGES_MAX: Final = 500
FLUSH_TIMEOUT_S: Final = 10.0
TAKEOVER_MAX_S: Final = 30.0
TAKEOVER_PAUSE_S: Final = 0.5
# A slot with many hops is megabytes of JSON that compresses to a small part of what brokers take.
SNAPSHOT_PRODUCER: Final = {"message.max.bytes": 50_000_000, "compression.type": "zstd"}


class KafkaJournal:
    def __init__(
        self, consumer: Consumer, producer: Producer, admin: KafkaAdmin, *, prefix: str
    ) -> None:
        self._consumer = consumer
        self._producer = producer
        self._admin = admin
        self._commits = f"{prefix}.commits"
        self._lifecycle = f"{prefix}.lifecycle"
        self._frontiers = f"{prefix}.frontiers"

    def end(self, partition: int) -> int:
        return self._admin.ends(self._commits, [partition])[partition]

    def save(self, snapshots: Iterable[Snapshot], positions: dict[int, int]) -> None:
        failures: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(error)

        for snapshot in snapshots:
            key = pipeline_key(snapshot.tenant, snapshot.pipeline_uid)
            value = codec.encode(snapshot)
            self._producer.produce(self._frontiers, key=key, value=value, on_delivery=on_delivery)
        if self._producer.flush(FLUSH_TIMEOUT_S) or failures:
            reason = failures[0].str() if failures else "not acknowledged in time"
            raise Retryable(f"topic {self._frontiers}: {reason}")
        self._commit(positions)

    def _commit(self, positions: dict[int, int]) -> None:
        offsets = [TopicPartition(self._commits, p, offset) for p, offset in positions.items()]
        lifecycle = self._consumer.position(
            [TopicPartition(self._lifecycle, partition) for partition in positions]
        )
        offsets += [at for at in lifecycle if at.offset >= 0]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            raise Retryable(f"offsets not committed: {error.args[0].str()}") from error


class FactStream:
    """Feeds a tracker the messages of the partitions that the group gives this process."""

    def __init__(
        self,
        consumer: Consumer,
        kafka: Kafka,
        *,
        prefix: str,
        tracker: Tracker,
        membership: Membership,
    ) -> None:
        self._consumer = consumer
        self._membership = membership
        self._kafka = kafka
        self._tracker = tracker
        self._commits = f"{prefix}.commits"
        self._frontiers = f"{prefix}.frontiers"
        topics = [self._commits, f"{prefix}.lifecycle"]
        consumer.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke)

    def feed(self, timeout_s: float) -> None:
        """Hand over what has come: wait for the first message, then take what else is there, and
        what comes meanwhile. Writing after each few would take longer than applying them."""
        self._membership.check()
        first = self._consumer.poll(timeout_s)
        messages = [] if first is None else [first]
        left = BATCH_MESSAGES_MAX
        failure: str | None = None
        while messages:
            for message in messages:
                error = message.error()
                if error is None:
                    self._take(message)
                else:
                    failure = error.str()
            left -= len(messages)
            messages = self._consumer.consume(left, 0) if left > 0 and failure is None else []
        if failure is not None:
            raise Retryable(f"facts cannot be read: {failure}")

    def _take(self, message: Message) -> None:
        (partition, offset), value = position_of(message), message.value() or b""
        is_fact = message.topic() == self._commits
        try:
            if is_fact:
                self._tracker.handle_fact(partition, offset, codec.decode(Fact, value))
            else:
                event = codec.decode(LifecycleEvent, value)
                self._tracker.handle_lifecycle(partition, event)
        except InvalidMessage as error:
            place = f"{message.topic()}[{partition}]@{offset}"
            metrics.count("waybill_messages_skipped_total", topic=message.topic() or "")
            logger.error("message skipped", extra={"position": place, "reason": str(error)})
            if is_fact:
                self._tracker.skip(partition, offset)

    def _on_assign(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        """Start from the snapshots, and from the offset that was committed with them.

        What stays wrong here ends the process: half a takeover must not be fed.
        """
        deadline = time.monotonic() + TAKEOVER_MAX_S
        while True:
            try:
                self._take_over(consumer, assigned)
            except Retryable as error:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"partitions cannot be taken over: {error}") from error
                logger.warning("takeover is tried again", extra={"reason": str(error)})
                time.sleep(TAKEOVER_PAUSE_S)
            else:
                break
        self._membership.joined()

    def _take_over(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        try:
            committed = consumer.committed(assigned, timeout=FLUSH_TIMEOUT_S)
        except KafkaException as error:
            raise Retryable(f"the group's offsets: {error.args[0].str()}") from error
        for at in committed:
            at.offset = 0 if at.offset == OFFSET_INVALID else at.offset
        facts = {at.partition: at.offset for at in committed if at.topic == self._commits}
        snapshots: dict[int, dict[str, Snapshot]] = {partition: {} for partition in facts}
        for message in read_to_end(self._kafka, self._frontiers, facts):
            try:
                snapshot = codec.decode(Snapshot, message.value() or b"")
            except InvalidMessage as error:
                metrics.count("waybill_messages_skipped_total", topic=self._frontiers)
                logger.error("snapshot skipped", extra={"reason": str(error)})
                continue
            snapshots[snapshot.partition][snapshot.pipeline_uid] = snapshot
        for partition, position in facts.items():
            self._tracker.acquire(partition, position, snapshots[partition].values())
        consumer.assign(committed)

    def _on_revoke(self, consumer: Consumer, revoked: list[TopicPartition]) -> None:
        for at in revoked:
            self._tracker.release(at.partition)
        self._membership.left()
