"""One transactional producer for each partition of a topic, which only one process has at a time.

A process that starts with a transactional id fences the one before, with all that it still had
queued. So `claim` is called once, before anything is read that is acted on, and never to continue
after a fault. By then the partition may belong to another process, which it would fence. See ADR
30.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message

from waybill_shared.contract.dead_letters import Headers
from waybill_shared.contract.errors import ContractError, Problem, Retryable, UserError
from waybill_shared.kafka.clients import claim_transactions, make_producer, position_of
from waybill_shared.kafka.cluster import Kafka, cluster_of
from waybill_shared.kafka.errors import FENCED, GRANT_HINT, explain
from waybill_shared.process.failpoints import reach

logger = logging.getLogger(__name__)

# So long readers wait for a process that was killed in between, if no other takes over; and so long
# Kafka may be away before one that was writing has to start again.
TRANSACTION_TIMEOUT_S: Final = 30.0
STEP_TIMEOUT_S: Final = 10.0  # for each of: to ask, to begin, to write, to commit
T = TypeVar("T")


class PartitionLost(ContractError):
    """Error: another process owns the partition now, so nothing that is written here counts any
    more.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    topic: str
    key: str
    value: bytes
    headers: Headers = ()


class PartitionProducer:
    def __init__(self, kafka: Kafka, transactional_id: str) -> None:
        self._kafka = kafka
        self._id = transactional_id
        self._unsettled: Literal["commit", "abort"] | None = None
        self._producer = make_producer(
            kafka,
            **{
                "transactional.id": transactional_id,
                "transaction.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
                "message.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
            },
        )

    def claim(self) -> None:
        """Shut out who had this id, and end what it left open. Raises Retryable."""
        self._guard(lambda: claim_transactions(self._producer, STEP_TIMEOUT_S))

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        """Write all messages in one transaction, and return their offsets.

        After Retryable the result is not known: send the same again, before anything else. Raises
        PartitionLost.
        """
        self.settle()
        point = f"{messages[0].topic}.{self._id.rpartition('/')[2]}"
        reach(f"{point}.before_begin")
        self._guard(self._producer.begin_transaction)
        self._unsettled = "abort"
        offsets = self._guard(lambda: self._produce(messages))
        reach(f"{point}.before_commit")
        self._unsettled = "commit"
        self.settle()
        return offsets

    def settle(self) -> None:
        """End the open transaction, which may be that of an earlier call: then it is known."""
        if self._unsettled == "commit":
            self._guard(lambda: self._producer.commit_transaction(STEP_TIMEOUT_S))
        elif self._unsettled == "abort":
            self._guard(lambda: self._producer.abort_transaction(STEP_TIMEOUT_S))
        self._unsettled = None

    def _produce(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        offsets: list[int] = [-1] * len(messages)
        failures: list[KafkaError] = []

        def report(index: int) -> Callable[[KafkaError | None, Message], None]:
            def on_delivery(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    failures.append(error)
                else:
                    offsets[index] = position_of(message)[1]

            return on_delivery

        for index, each in enumerate(messages):
            self._producer.produce(
                each.topic,
                key=each.key,
                value=each.value,
                headers=list(each.headers),
                on_delivery=report(index),
            )
        left = self._producer.flush(STEP_TIMEOUT_S)
        if failures:
            raise KafkaException(failures[0])
        if left or min(offsets, default=0) < 0:
            raise Retryable(f"{messages[0].topic}: {left or 'some'} messages not acknowledged")
        return tuple(offsets)

    def _guard(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except SystemError as error:
            # The client raises that it was shut out while it hands over what became of messages.
            if not isinstance(error.__cause__, KafkaException):
                raise
            raise PartitionLost(f"{self._id}: {error.__cause__.args[0].str()}") from error
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if cause.code() in FENCED or cause.fatal():
                raise PartitionLost(f"{self._id}: {cause.str()}") from error
            if cause.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                raise UserError([self._lacks()]) from error
            if cause.txn_requires_abort():
                self._unsettled = "abort"
            raise Retryable(f"{self._id}: {explain(cause)}") from error

    def _lacks(self) -> Problem:
        user = cluster_of(self._kafka).user
        message = f"{user} lacks Write on transactional-id {self._id} in Kafka"
        return Problem(message=message, hint=GRANT_HINT)
