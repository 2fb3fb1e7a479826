"""What the tracker needs of the world. `adapters` fulfil these; tests bring fakes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from waybill_shared.contract.events import Snapshot
from waybill_shared.contract.slots import DeadEntry, Entry, Slot

Ends = Mapping[str, Mapping[int, int]]
"""By topic id and partition, of the topics that exist and answer."""
OffsetsByName = Mapping[tuple[str, int], int]
"""By topic and partition."""


class WriteResult(StrEnum):
    WRITTEN = "written"
    NEWER = "newer"  # another tracker has come further: leave it
    LOST = "lost"  # missing, or of another server or topic: rebuild it from what is said by now
    STALE = "stale"  # a slot, but not the one that this tracker wrote last: rebuild


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotWrite:
    """`slot` None only confirms the one with this `mark`; `rebuilt` may replace a missing one.

    `position` counts in the commits topic of that id: a slot of another one is as good as missing.
    `writer` is the tracker: a missing slot is replaced by the one that was the last to find it
    missing, and only while the server has not lost that, too. `dead` comes to what is there; or in
    its place, if it is written `anew`, as it always is where the slot is `rebuilt`.
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
    dead_anew: bool = False


class Store(Protocol):
    def write(self, writes: Sequence[SlotWrite]) -> list[WriteResult]:
        """Each write alone is atomic. Idempotent. Raises Retryable, and some may be done then."""


class Journal(Protocol):
    @property
    def topic_id(self) -> str:
        """Of the commits topic, in which positions count. Raises Retryable."""

    def end(self, partition: int) -> int:
        """Below this stands every commit that anybody could have read till now; and a reader comes
        there. Raises Retryable, also when the topic is not the one of `topic_id` any more."""

    def save(self, snapshots: Iterable[Snapshot], positions: dict[int, int]) -> None:
        """Store the snapshots, and the positions from which a restart reads. A chunk without text
        is no more. Raises Retryable."""


class Topics(Protocol):
    def ends(self, names: Iterable[str]) -> Ends:
        """As they are now. Raises Retryable."""


class Groups(Protocol):
    """Consumer groups that have offsets and no members. One that fails stops no other."""

    def write(self, groups: Mapping[str, OffsetsByName]) -> Mapping[str, str]:
        """What went wrong, by group; all others stand as they are given here."""

    def delete(self, groups: Iterable[str]) -> Mapping[str, str]:
        """What went wrong, by group; one that does not exist is deleted."""
