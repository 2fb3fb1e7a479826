"""Reads files from start to end, wherever they are. Fulfils `Fetcher`.

A broken connection is opened again at the same offset, as long as the file is the same.
"""

import ssl
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Final
from urllib.parse import urlsplit

from waybill_ingress.adapters.files.folder import FolderFile
from waybill_ingress.adapters.files.objects import object_place
from waybill_ingress.adapters.files.opened import FilePlace, Opened, Passing
from waybill_ingress.adapters.files.patience import FetchPatience
from waybill_ingress.adapters.files.web import Web, WebFile
from waybill_ingress.app.connector_ports import FetchFailed, FileChanged
from waybill_ingress.core.connectors.limits import FetchLimits
from waybill_shared.connections import read_connections
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.connectors import FileConnector
from waybill_shared.object_stores import S3Connection

READ_BYTES: Final = 65_536
TRIES_MAX: Final = 5  # without a new byte
FIRST_PAUSE_S: Final = 0.5
FILE_HINT: Final = "set it for ingress, to a folder with the file in it: docs/connectors.md"


class FileFetcher:
    """Opens files. `connections`: the file that says how object stores are reached."""

    def __init__(self, limits: FetchLimits, connections: Path | None) -> None:
        self._limits = limits
        self._connections = connections
        self._web = Web(allowed=limits.allowed, tls=ssl.create_default_context())

    def fetch(self, connector: FileConnector, stop: Event) -> "FileReading":
        return FileReading(lambda patience: self._place(connector, patience), self._limits, stop)

    def fault(self, connector: FileConnector) -> Problem | None:
        if connector.connection is not None:
            return self._fault_of_store(connector.connection)
        if urlsplit(connector.url).scheme != "file":
            return None
        fault = FolderFile(connector.url, self._limits.files).fault()
        return Problem(message=fault, path="url", hint=FILE_HINT) if fault else None

    def _fault_of_store(self, connection: str) -> Problem | None:
        try:
            read_connections(self._connections).find(connection, S3Connection)
        except UserError as error:
            return replace(error.problems[0], path="connection")
        return None

    def _place(self, connector: FileConnector, patience: FetchPatience) -> FilePlace:
        url = connector.url
        if connector.connection is not None:
            known = read_connections(self._connections)
            return object_place(url, connector.connection, known, patience)
        if urlsplit(url).scheme == "file":
            return FolderFile(url, self._limits.files)
        return WebFile(url, self._web, patience)


class FileReading:
    """One reading of a file. Its calls block."""

    def __init__(
        self, place: Callable[[FetchPatience], FilePlace], limits: FetchLimits, stop: Event
    ) -> None:
        self._bytes_max = limits.bytes_max
        self.bytes_read = 0
        self._patience = FetchPatience(stop, limits.time_s, lambda: self.bytes_read)
        try:
            self._place = place(self._patience)
            self._first: Opened | None = self._open(0)
        except BaseException:
            self._patience.end()
            raise
        self.size, self.version = self._first.size, self._first.version
        self.encoding = self._first.encoding

    def pieces(self) -> Iterator[bytes]:
        tries, opened = 0, self._first
        self._first = None
        while True:
            before = self.bytes_read
            try:
                opened = opened or self._again()
                with closing(opened):
                    yield from self._rest(opened)
                return
            except Passing:
                tries = 1 if self.bytes_read > before else tries + 1
                opened = None
                if tries == TRIES_MAX:
                    raise
                self._patience.pause(FIRST_PAUSE_S * 2.0**tries)

    def close(self) -> None:
        self._patience.end()
        if self._first is not None:
            self._first.close()

    def _open(self, at: int) -> Opened:
        with self._patience.count_wait():
            return self._place.open(at)

    def _again(self) -> Opened:
        if self.bytes_read and self.version is None:
            reason = f"the connection broke at byte {self.bytes_read}"
            raise FileChanged(f"{reason}, and its server does not say whether a file has changed")
        opened = self._open(self.bytes_read)
        if self.bytes_read and (opened.version, opened.encoding) != (self.version, self.encoding):
            opened.close()
            raise FileChanged("the file is another one than a moment ago")
        return opened

    def _rest(self, opened: Opened) -> Iterator[bytes]:
        left = self.bytes_read - opened.at  # bytes that were read before and are sent again
        self.size = opened.size if self.size is None else self.size
        while piece := self._read(opened):
            fresh, left = piece[left:], max(0, left - len(piece))
            if fresh:
                self.bytes_read += len(fresh)
                if self.bytes_read > self._bytes_max:
                    raise FetchFailed(f"the file is larger than {self._bytes_max} bytes")
                yield fresh
        if self.size is not None and self.bytes_read < self.size:
            raise Passing(f"the connection ended at byte {self.bytes_read} of {self.size}")

    def _read(self, opened: Opened) -> bytes:
        self._patience.check()
        try:
            with self._patience.count_wait():
                piece = opened.read(READ_BYTES)
        except Passing:
            self._patience.check()  # it may have been ended, which breaks the connection too
            raise
        if not piece:
            self._patience.check()
        return piece
