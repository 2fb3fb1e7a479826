"""Which part of the work is this process's: the partitions of a topic that a group gives it.

The group reads nothing, and it has no offsets. It keeps the peace; a promise needs more.
"""

import logging
import threading
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from waybill_shared.contract.errors import Retryable
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_consumer, subscribe
from waybill_shared.kafka.errors import REFUSED
from waybill_shared.kafka.membership import Membership
from waybill_shared.kafka.partitioner import partition_of

logger = logging.getLogger(__name__)

POLL_S: Final = 0.2
RETRY_S: Final = 1.0


class GroupShares:
    def __init__(self, admin: KafkaAdmin, topic: str, group: str) -> None:
        self._admin = admin
        self._topic = topic
        self._group = group
        self._mine: frozenset[int] = frozenset()
        self._partitions = 1
        self._epoch = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"shares of {topic}", daemon=True)

    def __enter__(self) -> "GroupShares":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def mine(self) -> frozenset[int]:
        return self._mine

    @property
    def epoch(self) -> int:
        """A number that changes whenever partitions were assigned or revoked."""
        return self._epoch

    def partition_of(self, key: str) -> int:
        return partition_of(key, self._partitions)

    def has(self, key: str) -> bool:
        """Return True if this process owns the partition of the key."""
        return self.partition_of(key) in self._mine

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._take_part()
            except (Retryable, RuntimeError, KafkaException) as error:
                fields = {"group": self._group, "reason": str(error)}
                logger.warning("no share of the work for now", extra=fields)
                self._stop.wait(RETRY_S)
            except Exception:  # the thread's boundary
                logger.exception("no share of the work for now", extra={"group": self._group})
                self._stop.wait(RETRY_S)
            finally:
                self._give(frozenset())

    def _give(self, partitions: frozenset[int]) -> None:
        self._mine = partitions
        self._epoch += 1

    def _take_part(self) -> None:
        identity = self._admin.identify([self._topic]).get(self._topic)
        if identity is None:
            raise Retryable(f"topic {self._topic} does not exist; create it with the admin step")
        self._partitions = len(identity.partitions)
        membership = Membership(self._admin)
        consumer = make_consumer(self._admin.cluster, self._group)

        def assigned(at: Consumer, given: list[TopicPartition]) -> None:
            at.assign(given)
            at.pause(given)
            self._give(frozenset(each.partition for each in given))
            membership.joined()

        def revoked(at: Consumer, taken: list[TopicPartition]) -> None:
            at.unassign()
            self._give(frozenset())
            membership.left()

        subscribe(consumer, [self._topic], on_assign=assigned, on_revoke=revoked)
        try:
            while not self._stop.is_set():
                message = consumer.poll(POLL_S)
                error = None if message is None else message.error()
                if error is not None and error.code() in REFUSED:
                    raise KafkaException(error)
                membership.check()
        finally:
            consumer.close()
