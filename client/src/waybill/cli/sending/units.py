"""Cuts records into requests of a bounded size. Never reads a record's meaning, never sends."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

RECORDS_MAX = 10_000  # what Waybill accepts in one request that has a key
BYTES_MAX = 10_000_000


Unit = tuple[bytes, int, int]
"""A part that cannot be cut further, its number of records, and where it is.

It is a record, a block of records, or a line that is no record. Where it is: the number of its line
or, if a format has no lines, of its first record, from 1. It is a plain tuple, because there may be
millions.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """A source as it is read; `head` belongs in front of each part, such as a header of CSV."""

    each: Iterator[Unit]
    head: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """The records of one request."""

    head: bytes
    units: tuple[Unit, ...]

    @cached_property
    def content(self) -> bytes:
        return self.head + b"".join(content for content, _, _ in self.units)

    @cached_property
    def places(self) -> list[int]:
        """The number of the line, or of the record, of each record."""
        return [at + more for _, records, at in self.units for more in range(records)]

    @property
    def begins_at(self) -> int:
        """The number of its first line, or record."""
        return self.units[0][2]

    @property
    def ends_at(self) -> int:
        """The number of its last record, or of its line."""
        return next(at + records - 1 for _, records, at in reversed(self.units) if records)


@dataclass(slots=True, kw_only=True)
class RequestLimits:
    """The limits of one request. Waybill may accept less: its refusal says so."""

    records: int = RECORDS_MAX
    bytes: int = BYTES_MAX

    def lower(self, refused: Piece, members: Mapping[str, object]) -> None:
        """Lower the limits after a refusal.

        What Waybill makes of a record may be larger than what was sent of it.
        """
        records, size = members.get("records_max"), members.get("bytes_max")
        if isinstance(size, int):
            self.bytes = min(size, len(refused.content) // 2)
        else:
            half = len(refused.places) // 2
            self.records = min(records, half) if isinstance(records, int) and records else half


def cut(units: Iterable[Unit], head: bytes, limits: RequestLimits) -> Iterator[Piece]:
    """Yield one piece after the other; a unit beyond the limits goes alone.

    The limits may be lowered between two pieces. Units without a record are no piece.
    """
    filled: list[Unit] = []
    records, size = 0, len(head)
    for unit in units:
        content, more, _ = unit
        full = records + more > limits.records or size + len(content) > limits.bytes
        if records and full:
            yield Piece(head=head, units=tuple(filled))
            filled, records, size = [], 0, len(head)
        filled.append(unit)
        records += more
        size += len(content)
    if records:
        yield Piece(head=head, units=tuple(filled))
