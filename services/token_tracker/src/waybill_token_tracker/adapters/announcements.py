"""Reads facts and phases in a consumer group of its own, and sends events.

Events and the group's offsets are in one Kafka transaction. Implements `EventSessions`.
"""

import logging
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from waybill_shared.contract import codec
from waybill_shared.contract.errors import InvalidMessage, Retryable
from waybill_shared.contract.events import Fact
from waybill_shared.contract.lifecycle_events import LifecycleEvent
from waybill_shared.contract.status_events import HEADERS
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_consumer, position_of, subscribe
from waybill_shared.kafka.errors import explain
from waybill_shared.kafka.transactions import Outgoing, make_transactional
from waybill_token_tracker.app.announcing import Announced, ReceivedMessage
from waybill_token_tracker.app.measuring import count_skipped

logger = logging.getLogger(__name__)

POLL_S: Final = 0.2
BATCH_MAX: Final = 200
TIMEOUT_S: Final = 10.0
TRANSACTION_TIMEOUT_S: Final = 30.0


class KafkaEventSessions:
    def __init__(self, admin: KafkaAdmin, prefix: str) -> None:
        self._admin = admin
        self._prefix = prefix

    @contextmanager
    def begin(self) -> Iterator["KafkaEventSession"]:
        session = KafkaEventSession(self._admin, self._prefix)
        try:
            with errors_as_retryable():
                session.open()
            yield session
        finally:
            session.close()


class KafkaEventSession:
    def __init__(self, admin: KafkaAdmin, prefix: str) -> None:
        self._prefix = prefix
        self._commits, self._lifecycle = f"{prefix}.commits", f"{prefix}.lifecycle"
        self._consumer = make_consumer(admin.cluster, f"{prefix}.announcements")
        self._producer = make_transactional(
            admin.cluster,
            f"{prefix}/token_tracker/events/{secrets.token_hex(8)}",
            timeout_s=TRANSACTION_TIMEOUT_S,
            **{"message.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000)},
        )
        self._read: dict[tuple[str, int], int] = {}
        self._shares = 0

    def open(self) -> None:
        self._producer.claim(TIMEOUT_S)
        topics = [self._commits, self._lifecycle]
        subscribe(self._consumer, topics, on_assign=self._on_assign, on_revoke=self._on_revoke)

    def close(self) -> None:
        with errors_as_retryable():
            self._consumer.close()
        del self._producer

    def receive(self) -> list[ReceivedMessage]:
        """Return the next messages. They are polled one by one: after a rebalance, messages read
        before it no longer count, and the new owner of the partition reads them again."""
        received: list[ReceivedMessage] = []
        while len(received) < BATCH_MAX:
            shares = self._shares
            with errors_as_retryable():
                message = self._consumer.poll(0 if received else POLL_S)
            if shares != self._shares:
                received.clear()
            if message is None:
                break
            if (found := self._decode(message)) is not None:
                received.append(found)
        return received

    def send(self, announced: Sequence[Announced]) -> None:
        messages = [
            Outgoing(
                topic=f"{self._prefix}.status",
                key=key,
                value=codec.encode(event),
                headers=HEADERS,
            )
            for key, event in announced
        ]
        offsets = [TopicPartition(topic, p, at) for (topic, p), at in self._read.items()]
        with errors_as_retryable():
            member = self._consumer.consumer_group_metadata()
        self._producer.begin()
        self._producer.enqueue(messages)
        self._producer.add_offsets(offsets, member, TIMEOUT_S)
        self._producer.commit(TIMEOUT_S)

    def _decode(self, message: Message) -> ReceivedMessage | None:
        error, topic = message.error(), message.topic() or ""
        if error is not None:
            raise Retryable(f"topic {topic}: {explain(error)}")
        partition, offset = position_of(message)
        self._read[topic, partition] = offset + 1
        value = message.value() or b""
        try:
            found: Fact | LifecycleEvent
            if topic == self._commits:
                found = codec.decode(Fact, value)
            else:
                found = codec.decode(LifecycleEvent, value)
        except InvalidMessage as invalid:
            count_skipped(topic)
            logger.error("message skipped", extra={"topic": topic, "reason": str(invalid)})
            return None
        return ReceivedMessage(offset, found)

    def _on_assign(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        """Start a new group at the end of its topics, and commit that. Nobody sent events of
        earlier messages, and now they would look new."""
        committed = consumer.committed(assigned, timeout=TIMEOUT_S)
        fresh = [at for at in committed if at.offset < 0]
        for at in fresh:
            _, at.offset = consumer.get_watermark_offsets(
                TopicPartition(at.topic, at.partition), timeout=TIMEOUT_S
            )
        if fresh:
            consumer.commit(offsets=fresh, asynchronous=False)
        self._reset()
        consumer.assign(committed)

    def _on_revoke(self, consumer: Consumer, revoked: list[TopicPartition]) -> None:
        self._reset()
        consumer.unassign()

    def _reset(self) -> None:
        self._shares += 1
        self._read.clear()


@contextmanager
def errors_as_retryable() -> Iterator[None]:
    """Raise errors of the consumer as Retryable."""
    try:
        yield
    except KafkaException as error:
        raise Retryable(explain(error.args[0])) from error
