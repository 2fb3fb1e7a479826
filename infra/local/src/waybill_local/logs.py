"""The logs of a stack's services and of its pipelines' drivers: found, and read as they grow.

Needs no running stack: what the last one wrote is still there.
"""

import json
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import BinaryIO

from waybill_local.folders import find_state_folder

POLL_S = 0.2


def find_logs(folder: Path) -> Mapping[str, Path]:
    """By the name of the service or pipeline; a service wins over a pipeline of its name."""
    home = find_state_folder(folder)
    if home is None:
        return {}
    services = {path.stem: path for path in sorted((home / "logs").glob("*.log"))}
    return {**_drivers(home / "stage_runner"), **services}


def read(path: Path) -> Iterator[str]:
    """Its lines until now; none of a log that is not there."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        yield from map(_text, file)


def follow(
    logs: Mapping[str, Path], *, pause: Callable[[float], object] = time.sleep
) -> Generator[tuple[str, str], None, None]:
    """Name and line of all that is written from now on, for ever."""
    with ExitStack() as stack:
        watched = {
            name: stack.enter_context(closing(_Growing(path))) for name, path in logs.items()
        }
        while True:
            for name, growing in watched.items():
                for line in growing.lines():
                    yield name, line
            pause(POLL_S)


class _Growing:
    """A log from its present end on; a start of its service puts a new file in its place."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._open(at_end=True)

    def lines(self) -> Iterator[str]:
        yield from self._rest()
        if self._replaced():
            yield from self._rest()  # written between the look above and the replacement
            self._open(at_end=False)
            yield from self._rest()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _open(self, *, at_end: bool) -> None:
        self.close()
        self._file = self._path.open("rb") if self._path.exists() else None
        if self._file is not None and at_end:
            self._file.seek(0, 2)

    def _replaced(self) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        return self._file is None or not os.path.samestat(there, os.fstat(self._file.fileno()))

    def _rest(self) -> Iterator[str]:
        while self._file is not None and (line := self._file.readline()):
            if not line.endswith(b"\n"):
                self._file.seek(-len(line), 1)  # the rest of it is still being written
                return
            yield _text(line)


def _drivers(folder: Path) -> Mapping[str, Path]:
    """A pipeline that was deleted and made anew has several folders: the newest one counts."""
    found: dict[str, Path] = {}
    for spec in sorted(folder.glob("*/spec.json"), key=lambda path: path.stat().st_mtime):
        try:
            found[str(json.loads(spec.read_text(encoding="utf-8"))["pipeline"])] = spec
        except (ValueError, KeyError, TypeError):
            continue  # it is being written
    return {name: spec.with_name("driver.log") for name, spec in found.items()}


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r\n")
