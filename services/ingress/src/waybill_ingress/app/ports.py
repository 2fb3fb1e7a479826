"""What the use cases need of the world. `adapters` fulfil these; tests bring fakes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from waybill_ingress.core.rows import Record, Rejection
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.events import PipelineRecord, Reply
from waybill_shared.contract.operations import OperationId
from waybill_shared.contract.pipelines import Life
from waybill_shared.contract.tokens import Part, Token
from waybill_shared.kafka.admin import TopicIdentity


class Directory(Protocol):
    """The pipelines that are known here."""

    def by_name(self, tenant: str, name: str) -> PipelineRecord | None: ...

    def living(self, tenant: str) -> list[PipelineRecord]: ...

    def lives(self) -> list[PipelineRecord]:
        """Return all pipelines of all tenants, deleted ones too."""
        ...

    def by_uid(self, uid: str) -> PipelineRecord | None: ...

    def life_for(self, tenant: str, name: str) -> Life: ...


class News(Protocol):
    """How far the directory has come."""

    def begun(self) -> bool:
        """Whether it holds all that was told before this process began."""
        ...

    async def catch_up(self) -> bool:
        """Wait until it holds all that was told before this call; False: that takes too long."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """(partition, offset) of what Kafka acknowledged, in no order, and what it did not.

    `refused` is what it would not take a second time either.
    """

    delivered: Sequence[tuple[int, int]]
    failed: Sequence[Rejection]
    refused: Sequence[Rejection] = ()


class Body(Protocol):
    """Of a request, received to its end."""

    @property
    def small(self) -> bool:
        """Read in a moment."""
        ...

    def pieces(self) -> Iterator[bytes]: ...


class Spool(Protocol):
    """Holds the records of one request."""

    count: int

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    def add(self, record: Record) -> None: ...

    def pieces(self) -> Iterator[list[Record]]:
        """All of them, in their order."""
        ...


class Log(Protocol):
    async def append(self, topic: str, records: Sequence[Record]) -> Appended:
        """Write the records, each acknowledged by all replicas or named as failed."""
        ...


class Topics(Protocol):
    """Each call raises Retryable when Kafka does not answer in time."""

    def last_seen(self, topic: str) -> TopicIdentity | None:
        """What the newest description said; None if there was none."""
        ...

    async def describe(self, topic: str) -> TopicIdentity | None:
        """What Kafka says to a question put after this call; None if there is no such topic."""
        ...

    async def cluster_id(self) -> str:
        """Of the Kafka that all these topics are in."""
        ...

    async def starts(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """The first offset that each partition still holds, asked after this call."""
        ...

    async def ends(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """One past the last record of each partition, asked after this call."""
        ...


class Samples(Protocol):
    async def newest(self, topic: str, partitions: Iterable[int]) -> Sequence[bytes | None]:
        """Values of the newest committed records, a hundred at most, oldest first in a partition.

        It takes some seconds at most; Retryable when Kafka does not answer in time.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    token: str
    issued_at: int


class Mint(Protocol):
    """The clock and the dice of this process."""

    def seal(
        self, parts: Sequence[Part], *, tenant: str, identity_assumed: bool = False
    ) -> Sealed: ...

    def now_ms(self) -> int: ...

    def nonce(self) -> str:
        """32 hexadecimal digits that were never given before."""
        ...


class Answers(Protocol):
    """What became of commands, as far as it is known here."""

    async def within(self, caller: Caller, operation: OperationId, wait_s: float) -> Reply | None:
        """The answer as soon as it is there; None: not in time, or this process lags behind."""
        ...


class Vault(Protocol):
    """Opens tokens, and seals what they hold together."""

    def open(self, text: str, *, tenant: str) -> Token:
        """That token of the tenant; TokenRefused or TokenExpired when it is none that counts."""
        ...

    def seal_merged(
        self, parts: Sequence[Part], *, tenant: str, oldest_at: int, identity_assumed: bool
    ) -> Sealed: ...

    def draw_secret(self) -> bytes:
        """For a webhook."""
        ...

    def seal_secret(self, secret: bytes, *, watch: str) -> str: ...
