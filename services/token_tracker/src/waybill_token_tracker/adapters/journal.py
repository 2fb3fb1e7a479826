"""Writes snapshots and the group's offsets in one transaction. Implements `Journal`.

So an offset always means: everything below it is in snapshots. A process that was replaced saves
nothing: Kafka accepts offsets only from members of the group's present generation, and snapshots
only with them. See ADR 31.
"""

import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from waybill_shared.contract import codec
from waybill_shared.contract.errors import Retryable, UserError
from waybill_shared.contract.events import Snapshot, snapshot_key
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.own_topics import OwnTopics
from waybill_shared.kafka.transactions import (
    IdRefused,
    Outgoing,
    TransactionalProducer,
    TransactionFailed,
    make_transactional,
)

logger = logging.getLogger(__name__)

STAMPED: Final = ("commits", "frontiers", "lifecycle")  # an offset counts in these very topics
# A successor waits this long for a tracker that was killed while it saved. It also waits for the
# next check of the broker, which happens every ten seconds.
TRANSACTION_TIMEOUT_S: Final = 5.0
STEP_TIMEOUT_S: Final = 5.0  # for each of: claim, send offsets, commit, abort


class KafkaJournal:
    """The journal of one process. It is made before its consumer subscribes; call `joined` after
    each assignment."""

    def __init__(
        self, consumer: Consumer, admin: KafkaAdmin, topics: OwnTopics, *, prefix: str
    ) -> None:
        self.topics = topics
        self._consumer = consumer
        self._admin = admin
        self._commits = f"{prefix}.commits"
        self._lifecycle = f"{prefix}.lifecycle"
        self._frontiers = f"{prefix}.frontiers"
        # The group's generation shuts out replaced processes, so the id need not be shared.
        self._id = f"{prefix}/token_tracker/{uuid.uuid4().hex}"
        self._producer: TransactionalProducer | None = None
        self._outside = self._member = consumer.consumer_group_metadata()

    @property
    def topic_id(self) -> str:
        return self.topics.id_of(self._commits)

    def end(self, partition: int) -> int:
        found = self._admin.stable_ends(self._commits, [partition])[partition]
        self.topics.require(self._commits)  # checked after: else it is the end of another
        return found

    def joined(self) -> None:
        """Save as this member of the group, in this generation, from now on.

        The member is asked for here and not in `save`. By then the client may know that it was
        replaced and name no member; and without a member Kafka accepts everything.
        """
        self._member = self._consumer.consumer_group_metadata()

    def save(self, snapshots: Iterable[Snapshot], positions: dict[int, int]) -> None:
        topic_id = self.topic_id
        messages = [
            Outgoing(
                topic=self._frontiers,
                partition=snapshot.partition,
                key=snapshot_key(snapshot),
                value=codec.encode(replace(snapshot, topic_id=topic_id)) if snapshot.slot else None,
            )
            for snapshot in snapshots
        ]
        self._transact(messages, self._places(positions))

    def stamp(self, topic: str) -> str:
        return stamp(self.topics, topic, self._frontiers)

    def _places(self, positions: dict[int, int]) -> list[TopicPartition]:
        lifecycle = self._consumer.position(
            [TopicPartition(self._lifecycle, partition) for partition in positions]
        )
        places = [(self._commits, partition, offset) for partition, offset in positions.items()]
        places += [(self._lifecycle, at.partition, at.offset) for at in lifecycle if at.offset >= 0]
        return [
            TopicPartition(topic, partition, offset, self.stamp(topic))
            for topic, partition, offset in places
        ]

    def _transact(self, messages: Sequence[Outgoing], offsets: Sequence[TopicPartition]) -> None:
        """Write all of it or nothing. After Retryable the result is not known, and all may be
        written again.

        Messages go to the partition of the pipeline, which its owner reads. The keys of chunks
        would lead to other partitions.
        """
        if self._member == self._outside:
            raise Retryable("snapshots are not saved: the group knows this process no more")
        try:
            producer = self._ready()
            producer.begin()
            producer.enqueue(messages)
            producer.add_offsets(offsets, self._member, STEP_TIMEOUT_S)
            producer.commit(STEP_TIMEOUT_S)
        except TransactionFailed as error:
            self._abort()
            if isinstance(error, IdRefused):
                raise UserError([error.problem]) from error
            unsaved = f"topic {self._frontiers}: snapshots are not saved: {error}"
            raise Retryable(unsaved) from error

    def _ready(self) -> TransactionalProducer:
        """Return the producer. After a fault that it does not survive a new one is made with the
        same id, which aborts the transaction that the old one left open."""
        if self._producer is None:
            producer = make_transactional(
                self._admin.cluster,
                self._id,
                timeout_s=TRANSACTION_TIMEOUT_S,
                **{"message.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000)},
            )
            producer.claim(STEP_TIMEOUT_S)
            self._producer = producer
        return self._producer

    def _abort(self) -> None:
        """Abort at once, because a successor waits for it."""
        if self._producer is None:
            return
        try:
            self._producer.abort(STEP_TIMEOUT_S)
        except TransactionFailed as error:
            logger.warning("transaction not aborted", extra={"reason": str(error)})
            self._producer = None


def stamp(topics: OwnTopics, topic: str, frontiers: str) -> str:
    """Return the ids of both topics: an offset is valid only in this very topic, with snapshots in
    that one."""
    return f"{topics.id_of(topic)} {topics.id_of(frontiers)}"
