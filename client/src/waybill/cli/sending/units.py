"""Cuts records into requests of a bounded size. Never reads a record's meaning, never sends."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

RECORDS_MAX = 10_000  # what Waybill takes in one request that has a key
BYTES_MAX = 10_000_000


class Unit(NamedTuple):
    """What cannot be cut further: a record, a block of them, or a line that is none.

    `at`: the number of its line or, where a format has no lines, of its first record, from 1.
    """

    content: bytes
    records: int
    at: int


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
        return self.head + b"".join(unit.content for unit in self.units)

    @cached_property
    def places(self) -> list[int]:
        """The number of the line, or of the record, of each record."""
        return [unit.at + more for unit in self.units for more in range(unit.records)]


@dataclass(slots=True, kw_only=True)
class Limits:
    """Of one request. Waybill may take less than is tried first, and says so when it refuses."""

    records: int = RECORDS_MAX
    bytes: int = BYTES_MAX

    def lower(self, refused: Piece, members: Mapping[str, object]) -> None:
        """Learn from a refusal; what a record becomes may be larger than what was sent of it."""
        records, size = members.get("records_max"), members.get("bytes_max")
        if isinstance(size, int):
            self.bytes = min(size, len(refused.content) // 2)
        else:
            half = len(refused.places) // 2
            self.records = min(records, half) if isinstance(records, int) and records else half


@dataclass(slots=True, kw_only=True)
class _Open:
    """The piece that is not full yet."""

    size: int
    units: list[Unit] = field(default_factory=list)
    records: int = 0

    def add(self, unit: Unit) -> None:
        self.units.append(unit)
        self.records += unit.records
        self.size += len(unit.content)


def cut(units: Iterable[Unit], head: bytes, limits: Limits) -> Iterator[Piece]:
    """Fill one piece after the other; a unit beyond the limits goes alone. The limits may be
    lowered while pieces are taken. What holds no record is no piece."""
    found = _Open(size=len(head))
    for unit in units:
        full = found.records + unit.records > limits.records
        if found.records and (full or found.size + len(unit.content) > limits.bytes):
            yield Piece(head=head, units=tuple(found.units))
            found = _Open(size=len(head))
        found.add(unit)
    if found.records:
        yield Piece(head=head, units=tuple(found.units))
