"""Clocks that show another time than the true one, and tables that have become older.

The store is the disk of this machine: its time is the true one.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from waybill_shared.process.clock import SystemClock

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS


@dataclass
class Hand:
    """The clock of a host, which is ahead of the true time, or behind."""

    ahead_ms: int = 0

    def now_ms(self) -> int:
        return SystemClock().now_ms() + self.ahead_ms

    def monotonic_ms(self) -> int:
        return self.now_ms()


@contextmanager
def writer_with_clock(ahead_ms: int) -> Iterator[None]:
    """Give what PyIceberg writes in here the time of such a clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: Hand(ahead_ms).now_ms() / 1_000)
        yield


def files(folder: Path) -> set[Path]:
    return {path for path in (folder / "warehouse").rglob("*") if path.is_file()}


def age(folder: Path, by_ms: int) -> None:
    """Let all that is in the store be older."""
    for path in files(folder):
        at = path.stat().st_mtime - by_ms / 1_000
        os.utime(path, (at, at))
