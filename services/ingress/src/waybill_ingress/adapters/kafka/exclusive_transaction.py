"""Exclusive transactions: what is written counts with a message that reports it, or not at all.

One owner at a time may write for a pipeline (replays) or for a connector (files). It works in this
order.

1. Claim (`claim`): a producer starts with the transactional id of that pipeline or connector. Kafka
fences the producer that had the id before, and aborts what it left open.

2. Read (`read`): the log topic is read to its end. It has all messages that ever counted under this
key. Nobody else can add one any more, so they are the complete state.

3. Send (`send`): a transaction starts, and records are written in it. Their positions are returned
when Kafka has acknowledged all. A second call first aborts what was not concluded.

4. Conclude (`conclude`): one message that reports the records is written to the log, and all of it
is committed. If the end of the commit is not known, it raises Retryable. The next owner reads from
the log what became of it.

5. Close (`close`): what is open is aborted.

Steps 3 and 4 may be repeated. If another owner has started meanwhile, they raise ShutOut.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from confluent_kafka import KafkaError

from waybill_ingress.app.connector_ports import OwnedByAnother
from waybill_shared.contract import codec
from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.errors import InvalidMessage, Refusal, Retryable
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.replays import ReplayMessage
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_shared.kafka.clients import read_to_end
from waybill_shared.kafka.errors import explain
from waybill_shared.kafka.partitioner import partition_of
from waybill_shared.kafka.transactions import (
    EndUnknown,
    Fenced,
    Outgoing,
    Position,
    TransactionFailed,
    make_transactional,
)
from waybill_shared.process.failpoints import reach

logger = logging.getLogger(__name__)

# For so long readers of the input wait for an ingress that was killed in between.
TRANSACTION_TIMEOUT_S: Final = 10.0
CLAIM_TIMEOUT_S: Final = 10.0
WRITE_TIMEOUT_S: Final = 4.0  # twice, and there is time left to commit
COMMIT_TIMEOUT_S: Final = 10.0
RECORD_BYTES_MAX: Final = 100_000_000  # here; the broker decides what a topic accepts
NEVER_ACCEPTED: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD})
T = TypeVar("T")
M = TypeVar("M", ReplayMessage, ConnectorProgress)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPurpose(Generic[M]):
    """The purpose of a transaction. `key`: of its messages of `kind` in `topic`. `place`: the name
    of its failpoints. `fenced`, `unsure`: texts for a fenced owner, and for an unknown end."""

    id: str
    topic: str
    key: str
    kind: type[M]
    place: str
    fenced: str
    unsure: str
    strict: bool = False
    """True if a message that cannot be read raises Retryable; else it is skipped."""


@asynccontextmanager
async def exclusive_transaction(
    admin: KafkaAdmin, what: TransactionPurpose[M]
) -> AsyncIterator["ExclusiveTransaction[M]"]:
    transaction = ExclusiveTransaction(admin, what)
    try:
        await asyncio.to_thread(transaction.claim)
        yield transaction
    finally:
        await asyncio.to_thread(transaction.close)


class ExclusiveTransaction(Generic[M]):
    """The owner's transactions. Calls come from several threads, one after the other."""

    def __init__(self, admin: KafkaAdmin, what: TransactionPurpose[M]) -> None:
        self._admin = admin
        self._what: TransactionPurpose[M] = what
        self.topic_id = ""
        """The id of the log when it was claimed."""
        self._partition = 0
        self._open = False
        self._one_at_a_time = threading.Lock()
        self._producer = make_transactional(
            admin.cluster,
            what.id,
            timeout_s=TRANSACTION_TIMEOUT_S,
            **{"message.max.bytes": RECORD_BYTES_MAX},
        )

    def claim(self) -> None:
        self._guard(lambda: self._producer.claim(CLAIM_TIMEOUT_S))
        identity = self._identify()
        self._partition = partition_of(self._what.key, len(identity.partitions))
        self.topic_id = identity.topic_id

    def check_topic(self) -> None:
        """Raise Retryable if the log was created again since it was claimed."""
        if self._identify().topic_id != self.topic_id:
            raise Retryable(f"topic {self._what.topic} was created again meanwhile")

    def message(self, content: M) -> Outgoing:
        """Return a message for the log, as `conclude` writes one."""
        return Outgoing(
            topic=self._what.topic,
            partition=self._partition,
            key=self._what.key.encode(),
            value=codec.encode(content),
        )

    async def read(self) -> Sequence[M]:
        return await asyncio.to_thread(self._read)

    async def send(self, records: Sequence[Outgoing]) -> Sequence[Position]:
        """Start a transaction and write these. Return partition and offset of each."""
        return await asyncio.to_thread(self._guard, lambda: self._send(records))

    async def conclude(self, report: M) -> None:
        await asyncio.to_thread(self._guard, lambda: self._conclude(report))

    def close(self) -> None:
        """Abort what is open; Kafka does it if it is not possible here."""
        if self._open:
            with suppress(Retryable):
                self._guard(lambda: self._producer.abort(COMMIT_TIMEOUT_S))
        del self._producer  # which ends in this thread

    def _read(self) -> list[M]:
        found: list[M] = []
        cluster = self._admin.cluster
        for message in read_to_end(cluster, self._what.topic, [self._partition]):
            value = message.value()
            if message.key() == self._what.key.encode() and value is not None:
                try:
                    found.append(codec.decode(self._what.kind, value))
                except InvalidMessage as error:
                    if self._what.strict:
                        raise Retryable(f"a message of {self._what.topic}: {error}") from error
                    logger.error("message skipped", extra={"reason": str(error)})
        return found

    def _identify(self) -> TopicIdentity:
        topic = self._what.topic
        identity = self._admin.identify([topic]).get(topic)
        if identity is None:
            raise Retryable(f"topic {topic} does not exist; create it with the admin step")
        return identity

    def _send(self, records: Sequence[Outgoing]) -> list[Position]:
        if self._open:  # what was sent before was not concluded
            self._producer.abort(COMMIT_TIMEOUT_S)
        self._producer.begin()
        self._open = True
        return self._write(records)

    def _conclude(self, report: M) -> None:
        self._write([self.message(report)])
        reach(f"{self._what.place}.before_commit")
        try:
            self._producer.commit(COMMIT_TIMEOUT_S)
        except (EndUnknown, Fenced) as error:
            self._open = False
            raise Retryable(f"{self._what.unsure} ({error})") from error
        self._open = False
        reach(f"{self._what.place}.after_commit")

    def _write(self, messages: Sequence[Outgoing]) -> list[Position]:
        try:
            return self._producer.write(messages, WRITE_TIMEOUT_S)
        except TransactionFailed as error:
            if error.cause is None or error.cause.code() not in NEVER_ACCEPTED:
                raise
            hint = f"see max.message.bytes and cleanup.policy of {error.topic}; nothing was sent"
            detail = f"kafka does not take a record for {error.topic}: {explain(error.cause)}"
            raise Refusal(Slug.RECORDS_REFUSED_BY_KAFKA, detail, hint=hint) from error

    def _guard(self, action: Callable[[], T]) -> T:
        with self._one_at_a_time:
            try:
                return action()
            except Fenced as error:
                self._open = False
                raise OwnedByAnother(f"{self._what.fenced}, or did so: try again") from error
            except TransactionFailed as error:
                raise Retryable(f"kafka: {error}") from error
