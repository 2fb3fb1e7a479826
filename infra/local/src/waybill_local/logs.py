"""Finds the logs of a stack's services and of its pipelines' drivers, and reads them as they grow.

Needs no running stack: the logs of the last one are still there.
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
    """Return the logs by name of a service or pipeline. If both have one name: the service's."""
    home = find_state_folder(folder)
    if home is None:
        return {}
    services = {path.stem: path for path in sorted((home / "logs").glob("*.log"))}
    return {**_drivers(home / "stage_runner"), **services}


def read(path: Path) -> Iterator[str]:
    """Yield the lines of a log until now; none if there is no such file."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        yield from map(_text, file)


def follow(
    logs: Mapping[str, Path], *, pause: Callable[[float], object] = time.sleep
) -> Generator[tuple[str, str], None, None]:
    """Yield the name and the line of all that is written to `logs` from now on. It never ends."""
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
    """A log, read from its present end on. Each start of its service replaces the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._open(at_end=True)

    def lines(self) -> Iterator[str]:
        yield from self._rest()
        if self._is_replaced():
            yield from self._rest()  # written after the read above, before the file was replaced
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

    def _is_replaced(self) -> bool:
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
    """Return the logs of drivers by pipeline.

    A pipeline that was deleted and created again has several folders: the newest one counts.
    """
    found: dict[str, Path] = {}
    for spec in sorted(folder.glob("*/spec.json"), key=lambda path: path.stat().st_mtime):
        try:
            found[str(json.loads(spec.read_text(encoding="utf-8"))["pipeline"])] = spec
        except (ValueError, KeyError, TypeError):
            continue  # it is being written
    return {name: spec.with_name("driver.log") for name, spec in found.items()}


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r\n")
