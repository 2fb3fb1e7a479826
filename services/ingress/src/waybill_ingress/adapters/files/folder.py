"""Reads a file of this machine, below the one folder that may be read."""

import os
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from waybill_ingress.adapters.files.opened import Opened, Passing, encoding_of
from waybill_ingress.app.connector_ports import FetchFailed


class FolderFile:
    """A file in a folder. `root`: None if no folder may be read."""

    def __init__(self, url: str, root: Path | None) -> None:
        self._url = url
        self._root = root

    def fault(self) -> str:
        """Return why it can never be read here; empty if it can be, once it exists."""
        if self._root is None:
            return "no file is read here: WAYBILL_CONNECTORS_FILES names no folder"
        if not self._path.is_relative_to(os.path.realpath(self._root)):
            return "it is not in the folder that WAYBILL_CONNECTORS_FILES names"
        return ""

    @property
    def _path(self) -> Path:
        return Path(os.path.realpath(unquote(urlsplit(self._url).path)))

    def open(self, at: int) -> Opened:
        if fault := self.fault():
            raise FetchFailed(fault)
        path = self._path
        try:
            if not path.is_file():
                raise FetchFailed("there is no such file")
            file: IO[bytes] = path.open("rb")
            known = os.fstat(file.fileno())
            file.seek(at)
        except OSError as error:
            raise FetchFailed(error.strerror or str(error)) from error

        def read(most: int) -> bytes:
            try:
                return file.read(most)
            except OSError as error:
                raise Passing(error.strerror or str(error)) from error

        return Opened(
            read=read,
            close=file.close,
            at=at,
            size=known.st_size,
            version=f"{known.st_ino}-{known.st_mtime_ns}-{known.st_size}",
            encoding=encoding_of(self._url, None),
        )
