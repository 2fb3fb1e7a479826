"""One transactional producer for each partition of a topic, which only one process has at a time.

A process that starts with a transactional id fences the one before, with all that it still had
queued. So `claim` is called once, before anything is read that is acted on, and never to continue
after a fault. By then the partition may belong to another process, which it would fence. See ADR
30.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeVar

from waybill_shared.contract.errors import ContractError, Retryable, UserError
from waybill_shared.kafka import transactions
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.process.failpoints import reach

# So long readers wait for a process that was killed in between, if no other takes over; and so long
# Kafka may be away before one that was writing has to start again.
TRANSACTION_TIMEOUT_S: Final = 30.0
STEP_TIMEOUT_S: Final = 10.0  # for each of: to ask, to begin, to write, to commit
T = TypeVar("T")


class PartitionLost(ContractError):
    """Error: another process owns the partition now, so nothing that is written here counts any
    more.
    """


class PartitionProducer:
    def __init__(self, kafka: Kafka, transactional_id: str) -> None:
        self._id = transactional_id
        self._open: Literal["commit", "abort"] | None = None
        self._transactions = transactions.make_transactional(
            kafka,
            transactional_id,
            timeout_s=TRANSACTION_TIMEOUT_S,
            **{"message.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000)},
        )

    def claim(self) -> None:
        """Fence the process that had this id, and end what it left open. Raises Retryable."""
        self._guard(lambda: self._transactions.claim(STEP_TIMEOUT_S))

    def send(self, messages: Sequence[transactions.Outgoing]) -> tuple[int, ...]:
        """Write all messages in one transaction, and return their offsets.

        After Retryable the result is not known: send the same again, before anything else. Raises
        PartitionLost.
        """
        self.finish()
        point = f"{messages[0].topic}.{self._id.rpartition('/')[2]}"
        reach(f"{point}.before_begin")
        self._guard(self._transactions.begin)
        self._open = "abort"
        positions = self._guard(lambda: self._transactions.write(messages, STEP_TIMEOUT_S))
        reach(f"{point}.before_commit")
        self._open = "commit"
        self.finish()
        return tuple(offset for _, offset in positions)

    def finish(self) -> None:
        """End the open transaction, which may be that of an earlier call: then it is known."""
        if self._open == "commit":
            self._guard(lambda: self._transactions.commit(STEP_TIMEOUT_S))
        elif self._open == "abort":
            self._guard(lambda: self._transactions.abort(STEP_TIMEOUT_S))
        self._open = None

    def _guard(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except transactions.Fenced as error:
            raise PartitionLost(f"{self._id}: {error}") from error
        except transactions.IdRefused as error:
            raise UserError([error.problem]) from error
        except transactions.TransactionFailed as error:
            if isinstance(error, transactions.NothingCounts) and error.must_abort:
                self._open = "abort"
            raise Retryable(f"{self._id}: {error}") from error
