"""Dead letters that go to their topics again, in Kafka's transactions. Fulfils `ReplayLog`.

Who begins with a transactional id shuts out who had it, and Kafka ends what that left open. So a
turn that has begun finds in the log all that ever counted, and nothing is added to it by another.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from confluent_kafka import KafkaError, KafkaException, Message

from waybill_ingress.core.letters import Resent
from waybill_shared.contract import codec
from waybill_shared.contract.dead_letters import Headers
from waybill_shared.contract.errors import InvalidMessage, Refusal, Retryable
from waybill_shared.contract.events import pipeline_key
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.replays import Replay
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import (
    claim_transactions,
    make_producer,
    position_of,
    read_to_end,
)
from waybill_shared.kafka.errors import FENCED, explain
from waybill_shared.kafka.partitioner import partition_of
from waybill_shared.process.failpoints import reach

logger = logging.getLogger(__name__)

# So long those who read the input wait for an ingress that was killed in between.
TRANSACTION_TIMEOUT_S: Final = 10.0
CLAIM_TIMEOUT_S: Final = 10.0
WRITE_TIMEOUT_S: Final = 4.0  # twice, and there is time left to conclude
COMMIT_TIMEOUT_S: Final = 10.0
RECORD_BYTES_MAX: Final = 100_000_000  # here; what a topic takes, its broker says
AT_ONCE: Final = 2  # turns of this process: each has threads that wait for Kafka
NEVER_TAKEN: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD})
SHUT_OUT: Final = "another request replays dead letters of this pipeline at this moment"
UNSURE: Final = (
    "it is not known whether they were sent: ask for the same again, without `again`, to be told"
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outgoing:
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class KafkaReplays:
    def __init__(self, kafka: KafkaAdmin, prefix: str) -> None:
        self._admin = kafka
        self._prefix = prefix
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, tenant: str, pipeline_uid: str) -> AsyncIterator["KafkaTurn"]:
        """In this process nobody is shut out: one waits for the other."""
        key = pipeline_key(tenant, pipeline_uid)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock, self._turns:
            turn = KafkaTurn(self._admin, self._prefix, key)
            try:
                await asyncio.to_thread(turn.claim)
                yield turn
            finally:
                await asyncio.to_thread(turn.close)


class KafkaTurn:
    """Its calls come from several threads, one after the other."""

    def __init__(self, admin: KafkaAdmin, prefix: str, key: str) -> None:
        self._admin = admin
        self._topic = f"{prefix}.replays"
        self._key = key
        self._partition = 0
        self._open = False
        self._one_at_a_time = threading.Lock()
        options = {
            "transactional.id": f"{prefix}/ingress/replay/{key}",
            "transaction.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
            "message.max.bytes": RECORD_BYTES_MAX,
        }
        self._producer = make_producer(admin.cluster, **options)

    def claim(self) -> None:
        self._guard(lambda: claim_transactions(self._producer, CLAIM_TIMEOUT_S))
        identity = self._admin.identify([self._topic]).get(self._topic)
        if identity is None:
            raise Retryable(f"topic {self._topic} does not exist; create it with the admin step")
        self._partition = partition_of(self._key, len(identity.partitions))

    async def told(self) -> Sequence[Replay]:
        return await asyncio.to_thread(self._read)

    async def send(self, records: Sequence[Resent]) -> Sequence[tuple[int, int]]:
        return await asyncio.to_thread(self._guard, lambda: self._send(records))

    async def conclude(self, answer: Replay) -> None:
        await asyncio.to_thread(self._guard, lambda: self._conclude(answer))

    def close(self) -> None:
        """What is open is ended by Kafka, if it cannot be ended here."""
        if self._open:
            with suppress(Retryable):
                self._guard(lambda: self._producer.abort_transaction(COMMIT_TIMEOUT_S))
        del self._producer  # which ends in this thread

    def _read(self) -> list[Replay]:
        found: list[Replay] = []
        cluster = self._admin.cluster
        for message in read_to_end(cluster, self._topic, [self._partition]):
            value = message.value()
            if message.key() == self._key.encode() and value is not None:
                try:
                    found.append(codec.decode(Replay, value))
                except InvalidMessage as error:
                    logger.error("replay skipped", extra={"reason": str(error)})
        return found

    def _send(self, records: Sequence[Resent]) -> list[tuple[int, int]]:
        self._producer.begin_transaction()
        self._open = True
        return self._write(
            [
                _Outgoing(
                    topic=each.topic,
                    partition=each.partition,
                    key=each.key,
                    value=each.value,
                    headers=each.headers,
                )
                for each in records
            ]
        )

    def _conclude(self, answer: Replay) -> None:
        key, value = self._key.encode(), codec.encode(answer)
        told = _Outgoing(topic=self._topic, partition=self._partition, key=key, value=value)
        self._write([told])
        reach(f"{answer.pipeline_uid}.replay.before_commit")
        try:
            self._producer.commit_transaction(COMMIT_TIMEOUT_S)
        except KafkaException as error:
            cause = error.args[0]
            if cause.txn_requires_abort():
                raise
            self._open = False
            raise Retryable(f"{UNSURE} ({explain(cause)})") from error
        self._open = False
        reach(f"{answer.pipeline_uid}.replay.after_commit")

    def _write(self, messages: Sequence[_Outgoing]) -> list[tuple[int, int]]:
        places: dict[int, tuple[int, int]] = {}
        failed: list[tuple[str, KafkaError]] = []

        def note(index: int) -> Callable[[KafkaError | None, Message], None]:
            def on_delivery(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    failed.append((messages[index].topic, error))
                elif position_of(message)[1] >= 0:
                    places[index] = position_of(message)

            return on_delivery

        for index, each in enumerate(messages):
            self._producer.produce(
                each.topic,
                partition=each.partition,
                key=each.key,
                value=each.value,
                headers=list(each.headers),
                on_delivery=note(index),
            )
        self._producer.flush(WRITE_TIMEOUT_S)
        if failed:
            raise _meaning(*failed[0])
        if len(places) < len(messages):
            raise Retryable(f"kafka acknowledged {len(places)} of {len(messages)} in time")
        return [places[index] for index in range(len(messages))]

    def _guard(self, action: Callable[[], T]) -> T:
        with self._one_at_a_time:
            try:
                return action()
            except SystemError as error:
                # The client raises that it was shut out while it hands over delivery reports.
                if not isinstance(error.__cause__, KafkaException):
                    raise
                raise self._fault(error.__cause__.args[0]) from error
            except KafkaException as error:
                raise self._fault(error.args[0]) from error

    def _fault(self, cause: KafkaError) -> Retryable:
        if cause.code() in FENCED or cause.fatal():
            self._open = False
            return Retryable(f"{SHUT_OUT}, or did so: try again")
        return Retryable(f"replay: {explain(cause)}")


def _meaning(topic: str, error: KafkaError) -> Exception:
    if error.code() in NEVER_TAKEN:
        hint = f"see max.message.bytes and cleanup.policy of {topic}; nothing was sent"
        detail = f"kafka does not take a record for {topic} again: {explain(error)}"
        return Refusal(Slug.RECORDS_REFUSED_BY_KAFKA, detail, hint=hint)
    return KafkaException(error)
