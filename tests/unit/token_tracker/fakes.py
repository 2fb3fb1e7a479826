"""A store and a journal in memory, with the rules of the real ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Snapshot, snapshot_key
from waybill_shared.contract.slots import (
    HISTORY_LENGTH_MAX,
    DeadEntry,
    Entry,
    Progress,
    Slot,
    progress_from_json,
)
from waybill_token_tracker.app.ports import SlotWrite, WriteResult


def unpacked(entry: Entry) -> Progress:
    return progress_from_json(entry.progress)


@dataclass
class StoredSlot:
    slot: Slot
    position: int
    at: int
    topic_id: str = "commits"
    mark: str = ""
    server: str = "one"
    history: list[Progress] = field(default_factory=list)
    dead: list[DeadEntry] = field(default_factory=list)


@dataclass
class FakeStore:
    """`slots` by uid; forgetting them is what a flushed Redis looks like, another `server` what one
    looks like that was put in its place."""

    slots: dict[str, StoredSlot] = field(default_factory=dict)
    finders: dict[str, tuple[str, str]] = field(default_factory=dict)
    server: str = "one"
    away: bool = False

    def write(self, writes: Sequence[SlotWrite]) -> list[WriteResult]:
        if self.away:
            raise Retryable("redis is away")
        return [self._write(write) for write in writes]

    def forgot(self, partitions: Iterable[int]) -> bool:
        return False

    def _write(self, write: SlotWrite) -> WriteResult:
        uid, finder = write.pipeline_uid, (write.writer, self.server)
        held = self.slots.get(uid)
        if held is not None and (held.server, held.topic_id) != (self.server, write.topic_id):
            held = None
        if held is not None and held.position > write.position:
            return WriteResult.NEWER
        if held is None and not (write.rebuilt and self.finders.get(uid) == finder):
            self.finders[uid] = finder
            return WriteResult.LOST
        if write.slot is None:
            assert held is not None
            if held.mark != write.mark:
                return WriteResult.STALE
            held.position, held.at = write.position, write.at
            return WriteResult.WRITTEN
        self.finders.pop(uid, None)
        added = [unpacked(entry) for entry in write.history]
        before = [] if held is None or write.rebuilt else held.history
        history = [*(each for each in before if each not in added), *added]
        self.slots[uid] = StoredSlot(
            slot=write.slot,
            topic_id=write.topic_id,
            position=write.position,
            at=write.at,
            mark=write.mark,
            server=self.server,
            history=history[-HISTORY_LENGTH_MAX:],
            dead=_dead(held, write),
        )
        return WriteResult.WRITTEN


def _dead(held: StoredSlot | None, write: SlotWrite) -> list[DeadEntry]:
    """Each stands there once, as in a sorted set."""
    before = [] if held is None or write.replaces_dead else held.dead
    return list(dict.fromkeys((*before, *write.dead)))


@dataclass
class FakeJournal:
    """`now_id` is that of the topic which stands there now; `replaced`: the group knows another.
    `snapshots` are by uid, and chunks of dead letters behind it."""

    topic_id: str = "commits"
    now_id: str = "commits"
    ends: dict[int, int] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)
    saves: list[str] = field(default_factory=list)
    away: bool = False
    replaced: bool = False

    def end(self, partition: int) -> int:
        if self.away:
            raise Retryable("kafka is away")
        if self.now_id != self.topic_id:
            raise Retryable("it is another topic now")
        return self.ends.get(partition, 0)

    def save(self, snapshots: Iterable[Snapshot], positions: dict[int, int]) -> None:
        if self.away:
            raise Retryable("kafka is away")
        if self.replaced:
            raise Retryable("the group knows this process no more")
        for snapshot in snapshots:
            key = snapshot_key(snapshot).partition("/")[2]
            self.snapshots[key] = snapshot
            if not snapshot.slot:
                del self.snapshots[key]
            self.saves.append(f"{'snapshot' if snapshot.slot else 'no more'} {key}")
        self.positions |= positions
        self.saves.append("positions")
