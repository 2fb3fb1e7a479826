"""What the use cases need from outside. `adapters` fulfil these; tests bring fakes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from waybill_ingress.core.rows import Record, Rejection
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.events import PipelineRecord, Reply
from waybill_shared.contract.operations import OperationId
from waybill_shared.contract.pipelines import Life
from waybill_shared.contract.tokens import Part, Token
from waybill_shared.kafka.admin_answers import TopicIdentity


class Directory(Protocol):
    """The pipelines that are known here."""

    def by_name(self, tenant: str, name: str) -> PipelineRecord | None: ...

    def former_holder(self, tenant: str, name: str) -> PipelineRecord | None:
        """Return the pipeline that keeps this name and is called otherwise now."""

    def living(self, tenant: str) -> list[PipelineRecord]: ...

    def lives(self) -> list[PipelineRecord]:
        """Return all pipelines of all tenants, deleted ones too."""

    def by_uid(self, uid: str) -> PipelineRecord | None: ...

    def life_for(self, tenant: str, name: str) -> Life: ...


class News(Protocol):
    """How much the directory has read."""

    def has_caught_up(self) -> bool:
        """Return True if it has read all that was written before this process started."""

    async def catch_up(self) -> bool:
        """Wait until it has read all that was written before this call. Return False if that is too
        slow.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """(partition, offset) of each record that Kafka acknowledged, in no order, and the others.

    `refused` records would not be accepted a second time either.
    """

    delivered: Sequence[tuple[int, int]]
    failed: Sequence[Rejection]
    refused: Sequence[Rejection] = ()


class Body(Protocol):
    """The body of a request, received to its end."""

    @property
    def small(self) -> bool:
        """True if it is read in a moment."""

    def pieces(self) -> Iterator[bytes]: ...


class Spool(Protocol):
    """A store for the records of one request."""

    count: int

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def add(self, record: Record) -> None: ...

    def pieces(self) -> Iterator[list[Record]]:
        """Return all records, in their order."""


class Log(Protocol):
    async def append(self, topic: str, records: Sequence[Record]) -> Appended:
        """Write the records. Each is acknowledged by all replicas, or named as failed."""


class Topics(Protocol):
    """Questions about topics. Each call raises Retryable if Kafka does not answer in time."""

    def last_seen(self, topic: str) -> TopicIdentity | None:
        """Return the identity from the newest description; None if there was none."""

    async def describe(self, topic: str) -> TopicIdentity | None:
        """Ask Kafka after this call. Return None if there is no such topic."""

    async def cluster_id(self) -> str:
        """Return the id of the Kafka cluster with all these topics."""

    async def starts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Return the first offset that each partition still has, asked after this call."""

    async def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """Return one past the last record of each partition, asked after this call."""


class TopicGrowth(Protocol):
    async def add_partitions(self, topic: str, partitions: int) -> None:
        """Let the topic have so many partitions. Brokers may report it some time later.

        Raises UserError if Kafka will never do it, and Retryable.
        """


class Samples(Protocol):
    async def newest(self, topic: str, partitions: Iterable[int]) -> Sequence[bytes | None]:
        """Return the values of the newest committed records, a hundred at most.

        Values of a partition are oldest first. It needs some seconds at most. Raises Retryable if
        Kafka does not answer in time.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    token: str
    issued_at: int


class SealingClock(Protocol):
    """The clock, the keys and the random numbers of this process."""

    def seal(
        self,
        parts: Sequence[Part],
        *,
        tenant: str,
        identity_assumed: bool = False,
        oldest_at: int | None = None,
    ) -> Sealed:
        """Return a token for these parts. `oldest_at`: when the oldest of them was written, if that
        is not now.
        """

    def now_ms(self) -> int: ...

    def nonce(self) -> str:
        """Return 32 hexadecimal digits that were never returned before."""


class Answers(Protocol):
    """Replies to commands, as far as they are known here."""

    async def within(self, caller: Caller, operation: OperationId, wait_s: float) -> Reply | None:
        """Return the reply as soon as it is there. None: not in time, or this process lags."""


class Vault(Protocol):
    """Opens tokens, and seals the secrets of webhooks."""

    def open(self, text: str, *, tenant: str) -> Token:
        """Return the token of this tenant. Raises TokenRefused or TokenExpired."""

    def draw_secret(self) -> bytes:
        """Return a new secret for a webhook."""

    def seal_secret(self, secret: bytes, *, watch: str) -> str: ...
