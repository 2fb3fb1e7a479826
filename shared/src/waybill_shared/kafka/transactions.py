"""Transactions of one producer, and what each end of one means.

This is the only module that reads what the client raises about a transaction. A transaction ends in
one of four ways:

1. It is committed: no error is raised, and all that was written in it counts.
2. `NothingCounts`: it is not committed, and never will be. Abort it, and try again.
3. `Fenced`: another producer has started with the same id. This one writes nothing any more. If
   it was committing, only reading shows whether that counts.
4. `EndUnknown`: the commit was sent and not answered. Commit again, or read, to know it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from waybill_shared.contract.dead_letters import Headers
from waybill_shared.contract.errors import Problem, Retryable
from waybill_shared.kafka.clients import claim_transactions, make_producer, position_of
from waybill_shared.kafka.cluster import Kafka, cluster_of
from waybill_shared.kafka.errors import FENCED, GRANT_HINT, explain

BY_KEY: Final = -1  # Kafka's own number for a partition that the partitioner chooses
Position = tuple[int, int]
"""A partition and an offset."""
Delivered = Callable[[KafkaError | None, Message], None]


class TransactionFailed(Retryable):
    """Error: a transaction did not end with a known commit. `cause` is Kafka's error, if it has
    one; `topic` is that of a record which Kafka refused.
    """

    def __init__(
        self, text: str, cause: KafkaError | None = None, topic: str | None = None
    ) -> None:
        super().__init__(text)
        self.cause = cause
        self.topic = topic


class NothingCounts(TransactionFailed):
    """Error: nothing that was written in the transaction counts."""

    @property
    def must_abort(self) -> bool:
        """True if the producer starts no other transaction before this one is aborted."""
        return self.cause is not None and self.cause.txn_requires_abort()


class IdRefused(NothingCounts):
    """Error: the user of this process may not use the transactional id. `problem` says so."""

    def __init__(self, text: str, cause: KafkaError, problem: Problem) -> None:
        super().__init__(text, cause)
        self.problem = problem


class Fenced(TransactionFailed):
    """Error: another producer has the transactional id, or the client gave up this one for good."""


class EndUnknown(TransactionFailed):
    """Error: it is not known whether the transaction is committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    topic: str
    key: str | bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int = BY_KEY


@dataclass(frozen=True, slots=True)
class TransactionalProducer:
    """A client with a transactional id, and its transactions one after the other."""

    client: Producer
    id: str
    user: str

    def claim(self, timeout_s: float) -> None:
        """Fence the producer that had this id, and end what it left open."""
        with self.errors():
            claim_transactions(self.client, timeout_s)

    def begin(self) -> None:
        with self.errors():
            self.client.begin_transaction()

    def write(self, messages: Sequence[Outgoing], timeout_s: float) -> list[Position]:
        """Write messages into the open transaction. Return where each is, when Kafka has
        acknowledged all of them.
        """
        positions: dict[int, Position] = {}
        failures: list[tuple[str, KafkaError]] = []

        def report(index: int) -> Delivered:
            def on_delivery(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    failures.append((messages[index].topic, error))
                elif position_of(message)[1] >= 0:
                    positions[index] = position_of(message)

            return on_delivery

        with self.errors():
            for index, each in enumerate(messages):
                self._produce(each, report(index))
            self.client.flush(timeout_s)
        if failures:
            topic, error = failures[0]
            raise self._end(error, topic=topic)
        if len(positions) < len(messages):
            acknowledged = f"Kafka acknowledged {len(positions)} of {len(messages)} messages"
            raise NothingCounts(f"{acknowledged} within {timeout_s:g} s", topic=messages[0].topic)
        return [positions[index] for index in range(len(messages))]

    def enqueue(self, messages: Sequence[Outgoing]) -> None:
        """Put messages into the client's queue. `commit` waits until Kafka has them, and fails if
        one was refused.
        """
        with self.errors():
            for each in messages:
                self._produce(each)

    def _produce(self, message: Outgoing, on_delivery: Delivered | None = None) -> None:
        self.client.produce(
            message.topic,
            partition=message.partition,
            key=message.key,
            value=message.value,
            headers=list(message.headers),
            on_delivery=on_delivery,
        )

    def add_offsets(
        self, offsets: Sequence[TopicPartition], member: object, timeout_s: float
    ) -> None:
        """Make positions of a consumer group a part of the open transaction."""
        with self.errors():
            self.client.send_offsets_to_transaction(list(offsets), member, timeout_s)

    def commit(self, timeout_s: float) -> None:
        with self.errors(committing=True):
            self.client.commit_transaction(timeout_s)

    def abort(self, timeout_s: float) -> None:
        with self.errors():
            self.client.abort_transaction(timeout_s)

    @contextmanager
    def errors(self, *, committing: bool = False) -> Iterator[None]:
        """Raise an error of the client as the end of the transaction that it means."""
        try:
            yield
        except BufferError as error:
            raise NothingCounts(f"the queue of the producer is full: {error}") from error
        except SystemError as error:
            # The client raises this where it reports a failed delivery, and may hide the reason.
            if isinstance(error.__cause__, KafkaException):
                raise self._end(error.__cause__.args[0], committing=committing) from error
            kind = EndUnknown if committing else NothingCounts
            raise kind(f"the client of Kafka failed: {error}") from error
        except KafkaException as error:
            raise self._end(error.args[0], committing=committing) from error

    def _end(
        self, cause: KafkaError, *, committing: bool = False, topic: str | None = None
    ) -> TransactionFailed:
        text = explain(cause)
        if cause.code() in FENCED or cause.fatal():
            return Fenced(text, cause, topic)
        if cause.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            message = f"{self.user} lacks Write on transactional-id {self.id} in Kafka"
            return IdRefused(text, cause, Problem(message=message, hint=GRANT_HINT))
        if committing and not cause.txn_requires_abort():
            return EndUnknown(text, cause, topic)
        return NothingCounts(text, cause, topic)


def make_transactional(
    kafka: Kafka, transactional_id: str, *, timeout_s: float, **options: object
) -> TransactionalProducer:
    """Return a producer. `timeout_s`: for how long Kafka keeps a transaction open that nobody ends;
    readers wait for so long."""
    fixed = transactional_options(transactional_id, timeout_s)
    client = make_producer(kafka, **{**options, **fixed})
    return TransactionalProducer(client, transactional_id, cluster_of(kafka).user)


def transactional_options(transactional_id: str, timeout_s: float) -> dict[str, object]:
    return {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": int(timeout_s * 1000),
    }
