"""What fetching files needs from outside."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from threading import Event
from typing import Protocol

from waybill_ingress.core.connectors.rows import DeadRow
from waybill_ingress.core.rows import Record
from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.errors import ContractError, Problem, Retryable
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.manifest.connectors import FileConnector


class FetchFailed(ContractError):
    """The reason why a file could not be read."""


class OwnedByAnother(Retryable):
    """Another process may write for this connector now: nothing more can be written here."""


class FileChanged(FetchFailed):
    """The file's content differs from what was read of it, so it is read again from its start."""


class FileDownload(Protocol):
    """A file that is being read, packed or not: `bytes_read` bytes of `size` so far."""

    bytes_read: int
    size: int | None
    version: str | None
    encoding: str

    def pieces(self) -> Iterator[bytes]:
        """Return the pieces of the file. Blocks. Raises FetchFailed."""

    def close(self) -> None: ...


class Fetcher(Protocol):
    def fetch(self, connector: FileConnector, stop: Event) -> FileDownload:
        """Open the file. Blocks until it is open. Raises FetchFailed, and UserError for a
        connection.
        """

    def fault(self, connector: FileConnector) -> Problem | None:
        """Return why the file can never be fetched, as far as is known without asking its server.

        Its `path` is the key of the connector that must be changed.
        """


class ConnectorTransaction(Protocol):
    """The exclusive right to write for a connector.

    Each call raises Retryable, also if another process has got the right meanwhile.
    """

    async def read(self) -> ConnectorProgress | None:
        """Return the newest progress that was written for the connector."""

    async def send(
        self, topic: str, records: Sequence[Record], dead_topic: str, dead: Sequence[DeadRow]
    ) -> Sequence[tuple[int, int]]:
        """Start a transaction and write these. Return partition and offset of each record."""

    async def conclude(self, progress: ConnectorProgress) -> None:
        """Commit with this progress. After Retryable nobody knows whether it is committed."""


class ConnectorLog(Protocol):
    def transaction(
        self, record: PipelineRecord, initial: ConnectorProgress
    ) -> AbstractAsyncContextManager[ConnectorTransaction]:
        """Get the exclusive right for that connector. The earlier owner is fenced, and what it has
        not committed is aborted.
        """


class Shares(Protocol):
    def has(self, key: str) -> bool:
        """Return True if this process is to fetch for the pipeline of that key."""
