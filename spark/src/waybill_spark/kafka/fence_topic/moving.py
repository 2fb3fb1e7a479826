"""Moves one fence, in a transaction together with the records that belong to the move.

Claiming is `init_transactions`, which fences a paused driver of the same stage and sink.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from confluent_kafka import Producer

from waybill_shared.contract import codec
from waybill_shared.contract.errors import Retryable, UserError
from waybill_shared.contract.events import Fence
from waybill_shared.kafka.transactions import (
    Fenced,
    TransactionalProducer,
    TransactionFailed,
    make_transactional,
)
from waybill_shared.process.failpoints import reach
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.tracking.sink import RowsRefused, SinkSuperseded
from waybill_spark.tracking.stopping import StageStopped

TIMEOUT_S: Final = 60.0
RECORD_BYTES_MAX: Final = 100_000_000  # the limit here; that of a topic is the broker's
T = TypeVar("T")


class FenceTransactions:
    """Moves the fence of `what`, which is stored under `key`.

    A transaction that a driver left open delays readers for up to `timeout_s`. `compression` is for
    all records that are sent.
    """

    def __init__(
        self,
        what: str,
        key: str,
        fences: Fences,
        *,
        timeout_s: float = TIMEOUT_S,
        compression: str = "none",
    ) -> None:
        self._what = what
        self._key = key
        self._id = f"{fences.prefix}/{key}"
        self._timeout_s = timeout_s
        self._compression = compression
        self._fences = fences
        self._fences.expect(self._key)
        self._producer: TransactionalProducer | None = None
        self._after_refusal = False

    def claim(self) -> None:
        self._producer = make_transactional(
            self._fences.admin.cluster,
            self._id,
            timeout_s=self._timeout_s,
            **{"message.max.bytes": RECORD_BYTES_MAX, "compression.type": self._compression},
        )
        self._after_refusal = False
        self._guard(lambda producer: producer.claim(TIMEOUT_S))

    def last(self) -> Fence | None:
        value = self._fences.newest(self._key)
        return None if value is None else codec.decode(Fence, value)

    def move(self, produce: Callable[[Producer], Fence]) -> Fence:
        """Move the fence. `produce` sends what goes with it, and returns the new fence; it may be
        called twice.
        """
        return self._guard(lambda producer: self._move(producer, produce))

    def undone(self, produce: Callable[[Producer], object]) -> None:
        """Run a transaction as `move` does, and abort it."""
        self._guard(lambda producer: self._try(producer, produce))

    def close(self) -> None:
        self._producer = None

    def _move(self, producer: TransactionalProducer, produce: Callable[[Producer], Fence]) -> Fence:
        producer.begin()
        try:
            with producer.errors():
                fence = produce(producer.client)
                fence_message = codec.encode(fence)
                producer.client.produce(self._fences.topic, key=self._key, value=fence_message)
            reach(f"{fence.pipeline_uid}.{fence.sink}.before_commit")
        except (Retryable, StageStopped, UserError):
            producer.abort(TIMEOUT_S)  # which raises Fenced if the client had hidden that
            raise
        producer.commit(TIMEOUT_S)
        return fence

    def _try(self, producer: TransactionalProducer, produce: Callable[[Producer], object]) -> None:
        producer.begin()
        try:
            with producer.errors():
                produce(producer.client)
        finally:
            producer.abort(TIMEOUT_S)

    def _guard(self, action: Callable[[TransactionalProducer], T]) -> T:
        """Run `action`. Raise SinkSuperseded if a newer driver has claimed the fence, and Retryable
        for other faults. After an error with an unknown effect the producer is dropped: the
        stage ends, and the next `claim` finds out by reading the fence.
        """
        assert self._producer is not None, "claim comes first"
        try:
            return self._run(action, self._producer)
        except Fenced as error:
            self._producer = None
            raise SinkSuperseded(f"{self._what}: {error}") from error
        except TransactionFailed as error:
            self._producer = None
            raise Retryable(f"{self._what}: {error}") from error

    def _run(
        self, action: Callable[[TransactionalProducer], T], producer: TransactionalProducer
    ) -> T:
        """Run `action` again if the transaction before it ended because a record was too large.

        That leaves a gap in what librdkafka counts for its partition. Only the end of the next
        transaction removes it (librdkafka 2.16).
        """
        again, self._after_refusal = self._after_refusal, False
        try:
            return action(producer)
        except RowsRefused:
            self._after_refusal = True
            raise
        except Retryable:
            if not again:
                raise
        return self._run(action, producer)
