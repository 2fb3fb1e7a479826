"""Checks that a disk has room, before Kafka finds out: a broker that cannot write just ends."""

from pathlib import Path

from waybill_local.errors import StackError
from waybill_local.folders import free_bytes

STATE_BYTES_MIN = 500_000_000  # a segment of each internal topic, archives, a first table
JARS_BYTES = 300_000_000  # jars, for a moment twice, and the archive of Spark's classes
ARCHIVE_BYTES = 200_000_000  # of Spark's classes
FULL_BYTES = 50_000_000  # below this, lack of room is the likely cause of any failure


def require(folder: Path, bytes_min: int, what: str) -> None:
    """Raise StackError unless the disk of `folder` has `bytes_min` free for `what`."""
    if lacking := lack(folder, bytes_min):
        raise StackError(
            f"the disk of {folder} is too full for {what}",
            why=lacking,
            fix="make room, or work in a folder on another disk",
        )


def lack(folder: Path, bytes_min: int) -> str:
    """Return how much room the disk of `folder` lacks for `bytes_min`: nothing if it has it."""
    free = free_bytes(folder)
    return f"{_mb(free)} are free, {_mb(bytes_min)} are needed" if free < bytes_min else ""


def fix_of(folder: Path, fix: str) -> str:
    """Return what to do about a process that writes to `folder` and has ended.

    That is `fix`, but if the disk is full it is to make room.
    """
    free = free_bytes(folder)
    if free >= FULL_BYTES:
        return fix
    return f"the disk of {folder} is full ({_mb(free)} free): make room, then `waybill up`"


def _mb(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"
