"""Reads facts, phases and beats of the partitions that the group assigns to the tracker.

A takeover starts with snapshots, and at the group's offset: everything below it is in them. The
metadata of the offset names the topics for which that is true.
"""

import logging
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from waybill_shared.contract import codec
from waybill_shared.contract.errors import InvalidMessage, Retryable
from waybill_shared.contract.events import Fact, Snapshot
from waybill_shared.contract.lifecycle import HEARTBEAT_AGE_MS_MAX
from waybill_shared.contract.lifecycle_events import Beat, LifecycleEvent
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import position_of, read_to_end, subscribe
from waybill_shared.kafka.membership import Membership
from waybill_shared.kafka.own_topics import TopicRecreated
from waybill_shared.process.clock import Clock
from waybill_token_tracker.adapters.journal import KafkaJournal
from waybill_token_tracker.app.measuring import count_skipped
from waybill_token_tracker.app.tracker import Tracker

logger = logging.getLogger(__name__)

BATCH_MESSAGES_MAX: Final = 500
ANSWER_TIMEOUT_S: Final = 10.0
TAKEOVER_MAX_S: Final = 30.0
TAKEOVER_PAUSE_S: Final = 0.5


class _Closing(Retryable):
    """The consumer is closing, so it must not be called any more."""


class FactStream:
    """The messages of the partitions that the group assigns to this process, given to a tracker."""

    def __init__(
        self,
        consumer: Consumer,
        admin: KafkaAdmin,
        journal: KafkaJournal,
        *,
        prefix: str,
        tracker: Tracker,
        membership: Membership,
        clock: Clock,
    ) -> None:
        self._consumer = consumer
        self._membership = membership
        self._admin = admin
        self._journal = journal
        self._topics = journal.topics
        self._clock = clock
        self._tracker = tracker
        self._commits = f"{prefix}.commits"
        self._frontiers = f"{prefix}.frontiers"
        self._lifecycle = f"{prefix}.lifecycle"
        self._beats = f"{prefix}.beats"
        names = [self._commits, self._lifecycle, self._beats]
        subscribe(consumer, names, on_assign=self._on_assign, on_revoke=self._on_revoke)

    def feed(self, timeout_s: float) -> None:
        """Give new messages to the tracker: wait for the first, then read what else is there, up to
        a limit. The caller writes slots once afterwards; writes after every few messages would take
        longer than applying them. Raises Retryable if a topic cannot be read."""
        self._membership.check()
        self._check_topics()
        first = self._consumer.poll(timeout_s)
        messages = [] if first is None else [first]
        left = BATCH_MESSAGES_MAX
        failure: str | None = None
        while messages:
            for message in messages:
                error = message.error()
                if error is None:
                    self._take(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    self._take_end(message)
                else:
                    failure = error.str()
            left -= len(messages)
            messages = self._consumer.consume(left, 0) if left > 0 and failure is None else []
        if failure is not None:
            raise Retryable(f"facts cannot be read: {failure}")

    def _check_topics(self) -> None:
        """Check that the topics have their ids. If one was created again, save everything first:
        only this process may know what the old one contained."""
        try:
            self._topics.check()
        except TopicRecreated:
            self._tracker.save(whole=True, again=True)
            raise

    def _take(self, message: Message) -> None:
        (partition, offset), value = position_of(message), message.value() or b""
        topic = message.topic()
        try:
            if topic == self._commits:
                self._tracker.handle_fact(partition, offset, codec.decode(Fact, value))
            elif topic == self._lifecycle:
                event = codec.decode(LifecycleEvent, value)
                self._tracker.handle_lifecycle(partition, event)
            else:
                self._tracker.handle_beat(partition, codec.decode(Beat, value))
        except InvalidMessage as error:
            place = f"{topic}[{partition}]@{offset}"
            count_skipped(topic or "")
            logger.error("message skipped", extra={"position": place, "reason": str(error)})
            if topic == self._commits:
                self._tracker.pass_to(partition, offset + 1)

    def _take_end(self, message: Message) -> None:
        """Move the position to the end. After the last commit there may be transaction markers,
        which no message shows."""
        if message.topic() == self._commits:
            self._tracker.pass_to(*position_of(message))

    def _on_assign(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        """Start from the snapshots, and from the offset that was committed with them.

        Offsets are read first: that waits for the end of a transaction with some of them. If the
        takeover keeps failing, the process ends, because half a takeover must not receive messages.
        """
        try:
            self._journal.joined()
        except RuntimeError:  # the consumer is closing: another process gets these partitions
            return
        deadline = time.monotonic() + TAKEOVER_MAX_S
        while True:
            try:
                self._take_over(consumer, assigned)
            except _Closing:
                return  # another process gets these partitions at once
            except Retryable as error:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"partitions cannot be started: {error}") from error
                logger.warning("takeover is tried again", extra={"reason": str(error)})
                time.sleep(TAKEOVER_PAUSE_S)
            else:
                break
        self._membership.joined()

    def _take_over(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        self._topics.check()
        try:
            committed = consumer.committed(
                [at for at in assigned if at.topic != self._beats], timeout=ANSWER_TIMEOUT_S
            )
        except KafkaException as error:
            kind = _Closing if error.args[0].code() == KafkaError._DESTROY else Retryable
            raise kind(f"the group's offsets: {error.args[0].str()}") from error
        places = [self._begin(at) for at in committed]
        facts = {at.partition: at.offset for at in places if at.topic == self._commits}
        snapshots = self._read_snapshots(facts)
        for partition, position in facts.items():
            self._tracker.acquire(partition, position, snapshots[partition])
        consumer.assign(places + self._recent(consumer, assigned))

    def _begin(self, at: TopicPartition) -> TopicPartition:
        """Return where to start. Of a topic that was created again nothing is known, as if nothing
        was saved."""
        now = self._journal.stamp(at.topic)  # asked before anything is read
        known = at.offset >= 0 and at.metadata == now
        return TopicPartition(at.topic, at.partition, at.offset if known else 0)

    def _recent(self, consumer: Consumer, assigned: list[TopicPartition]) -> list[TopicPartition]:
        """Return where beats start that are new enough to count."""
        since = self._clock.now_ms() - HEARTBEAT_AGE_MS_MAX
        asked = [TopicPartition(at.topic, at.partition, since) for at in assigned]
        asked = [at for at in asked if at.topic == self._beats]
        if not asked:
            return []
        try:
            found = consumer.offsets_for_times(asked, timeout=ANSWER_TIMEOUT_S)
        except KafkaException as error:
            raise Retryable(f"topic {self._beats}: {error.args[0].str()}") from error
        return [
            TopicPartition(at.topic, at.partition, at.offset if at.offset >= 0 else OFFSET_END)
            for at in found
        ]

    def _read_snapshots(self, partitions: Iterable[int]) -> dict[int, list[Snapshot]]:
        """Return the snapshots by partition. Only the newest of each key is decoded: that of each
        pipeline, and those of its dead letters."""
        newest: dict[int, dict[bytes, bytes]] = {partition: {} for partition in partitions}
        for message in read_to_end(self._admin.cluster, self._frontiers, newest):
            of_partition, key = newest[position_of(message)[0]], message.key() or b""
            if (value := message.value()) is None:
                of_partition.pop(key, None)
            else:
                of_partition[key] = value
        return {
            partition: [s for value in found.values() if (s := self._decode(value)) is not None]
            for partition, found in newest.items()
        }

    def _decode(self, value: bytes) -> Snapshot | None:
        """Return the snapshot. If the commits topic is another one now, its content is still true,
        but its position is not."""
        try:
            snapshot = codec.decode(Snapshot, value)
        except InvalidMessage as error:
            count_skipped(self._frontiers)
            logger.error("snapshot skipped", extra={"reason": str(error)})
            return None
        if snapshot.topic_id != self._topics.id_of(self._commits):
            return replace(snapshot, position=0)
        return snapshot

    def _on_revoke(self, consumer: Consumer, revoked: list[TopicPartition]) -> None:
        for at in revoked:
            self._tracker.release(at.partition)
        self._membership.left()
