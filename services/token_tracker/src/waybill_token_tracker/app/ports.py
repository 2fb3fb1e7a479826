"""The ports of the tracker. `adapters` implement them; tests bring fakes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from waybill_shared.contract.events import Snapshot
from waybill_shared.contract.slots import DeadEntry, Entry, Slot

Ends = Mapping[str, Mapping[int, int]]
"""The end offsets by topic id and partition, of the topics that exist and answer."""
OffsetsByName = Mapping[tuple[str, int], int]
"""Offsets by topic name and partition."""


class WriteResult(StrEnum):
    WRITTEN = "written"
    NEWER = "newer"  # another tracker is further: leave it
    LOST = "lost"  # missing, or of another server or topic: rebuild it from the facts so far
    STALE = "stale"  # a slot, but not the one that this tracker wrote last: rebuild


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotWrite:
    """One write of a slot. If `slot` is None, it only confirms the one with this `mark`. If
    `rebuilt`, it may replace a missing one.

    `position` is an offset of the commits topic with that id: a slot of another topic counts as
    missing. `writer` is the tracker. A missing slot is replaced only by the tracker that was the
    last to find it missing, and only while the server has not lost that, too. `dead` is added to
    the dead entries that are stored. If `replaces_dead`, or if the slot is `rebuilt`, it replaces
    them.
    """

    tenant: str
    pipeline_uid: str
    topic_id: str
    partition: int
    position: int
    at: int
    slot: Slot | None
    writer: str
    mark: str = ""
    history: tuple[Entry, ...] = ()
    rebuilt: bool = False
    dead: tuple[DeadEntry, ...] = ()
    replaces_dead: bool = False


class Store(Protocol):
    def write(self, writes: Sequence[SlotWrite]) -> list[WriteResult]:
        """Write each slot atomically, but not all together. May be repeated. Raises Retryable; then
        some may be done."""


class Journal(Protocol):
    @property
    def topic_id(self) -> str:
        """The id of the commits topic that positions belong to. Raises Retryable."""

    def end(self, partition: int) -> int:
        """Return the offset below which every commit is that could be read until now. A reader does
        reach it. Raises Retryable, also when the topic no longer has the id `topic_id`."""

    def save(self, snapshots: Iterable[Snapshot], positions: dict[int, int]) -> None:
        """Store the snapshots, and the positions from which a restart reads. A chunk without text
        is deleted. Raises Retryable."""


class Topics(Protocol):
    def ends(self, names: Iterable[str]) -> Ends:
        """Return the ends as they are now. Raises Retryable."""


class Groups(Protocol):
    """Consumer groups that have offsets and no members. One that fails does not stop the others."""

    def write(self, groups: Mapping[str, OffsetsByName]) -> Mapping[str, str]:
        """Write the offsets. Return the error by group; all other groups have the given offsets
        then."""

    def delete(self, groups: Iterable[str]) -> Mapping[str, str]:
        """Delete the groups. Return the error by group; one that does not exist counts as
        deleted."""
