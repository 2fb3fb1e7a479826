"""What fetching files needs of the world."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from threading import Event
from typing import Protocol

from waybill_ingress.core.connectors.rows import DeadRow
from waybill_ingress.core.rows import Record
from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.errors import ContractError, Retryable
from waybill_shared.contract.events import PipelineRecord, Problem
from waybill_shared.contract.manifest.connectors import FileConnector


class FetchFailed(ContractError):
    """Why a file could not be read."""


class ShutOut(Retryable):
    """Another one has the turn: nothing may be told in this one."""


class FileChanged(FetchFailed):
    """It has another content than what was read of it, so it is read from its beginning."""


class FileDownload(Protocol):
    """A file that is being read. `taken` bytes of `size` were; it may be packed."""

    taken: int
    size: int | None
    version: str | None
    encoding: str

    def pieces(self) -> Iterator[bytes]:
        """Blocks. Raises FetchFailed."""
        ...

    def close(self) -> None: ...


class Fetcher(Protocol):
    def fetch(self, connector: FileConnector, stop: Event) -> FileDownload:
        """Blocks until it has begun. Raises FetchFailed, and UserError for a connection."""
        ...

    def fault(self, connector: FileConnector) -> Problem | None:
        """Why it can never be fetched, as far as is known without asking its server; its `path`
        is the key of the connector that is to be changed."""
        ...


class ConnectorTurn(Protocol):
    """Of whoever may write for a connector now. Each call raises Retryable, also when another one
    has begun meanwhile."""

    async def told(self) -> ConnectorProgress | None:
        """The newest that was told of it."""
        ...

    async def send(
        self, topic: str, records: Sequence[Record], dead_topic: str, dead: Sequence[DeadRow]
    ) -> Sequence[tuple[int, int]]:
        """Begin, and write these: partition and offset of each record."""
        ...

    async def conclude(self, progress: ConnectorProgress) -> None:
        """Make it count. After Retryable nobody knows whether it does."""
        ...


class ConnectorLog(Protocol):
    def turn(
        self, record: PipelineRecord, begun: ConnectorProgress
    ) -> AbstractAsyncContextManager[ConnectorTurn]:
        """Shut out who has one of that connector, with all that it has not concluded."""
        ...


class Shares(Protocol):
    def has(self, key: str) -> bool:
        """Whether this process is to fetch for the pipeline of that key."""
        ...
