"""A record that a stage cannot process, and positions that a reading leaves out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from waybill_shared.contract.dead_letters import Headers
from waybill_shared.contract.errors import ContractError

Place = tuple[str, int, int]
"""Topic, partition and offset at which a reading finds a record."""
Without = Mapping[tuple[str, int], frozenset[int]]
"""Offsets that are left out, by topic name and partition."""
NOTHING: Final[Without] = {}

MESSAGE_CHARACTERS_MAX: Final = 300  # of what is said of one record


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedAt:
    """The message that asks for a replay of a record, by the name and id of its topic. `source_id`:
    the id of the topic in which the record died.
    """

    topic: str
    topic_id: str
    partition: int
    offset: int
    source_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRecord:
    """A record as it is in its topic; or as it was there, if a replay reads it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    replayed: ReplayedAt | None = None
    timestamp: int | None = None
    """Milliseconds; of a record that is replayed, those of its letter. Else only Spark knows it."""

    @property
    def place(self) -> Place:
        at = self.replayed or self
        return (at.topic, at.partition, at.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRecord:
    """The position of a record that gave no row and must become a dead letter; `verdict` is of its
    input.
    """

    topic: str
    partition: int
    offset: int
    verdict: int

    @property
    def place(self) -> Place:
        return (self.topic, self.partition, self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadCause:
    """Why a record is dead. `sink`: its key in the slot, if only that one lacks it; `error`: the
    class of what was raised."""

    reason: str  # a DeadReason
    message: str
    rule: str | None = None
    sink: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterRecord:
    record: RawRecord
    cause: DeadCause


class QueryFailed(ContractError):
    """The queries of a stage end with an error at a value: of which record, it does not say."""

    def __init__(self, message: str, error: str) -> None:
        super().__init__(message)
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingRecord:
    """A record that ends the queries alone. `left`: how many were not tried yet at that time."""

    place: Place
    why: QueryFailed
    left: int


def merge_positions(one: Without, other: Without) -> Without:
    """Return the positions that are in either."""
    nothing: frozenset[int] = frozenset()
    return {
        place: one.get(place, nothing) | other.get(place, nothing)
        for place in one.keys() | other.keys()
    }


def positions_of(records: Iterable[RawRecord | RejectedRecord]) -> Without:
    found: dict[tuple[str, int], set[int]] = {}
    for topic, partition, offset in (record.place for record in records):
        found.setdefault((topic, partition), set()).add(offset)
    return {place: frozenset(offsets) for place, offsets in found.items()}
