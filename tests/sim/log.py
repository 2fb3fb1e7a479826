"""Kafka as the simulation knows it: topics with ids, partitions with transactions and retention.

Offsets are taken by records, by aborted records and by transaction markers alike. A reader of
committed records comes as far as the first open transaction, a writer sees the real end.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Row(NamedTuple):
    """A record by the number it was born with, and the stages that it has been through."""

    number: int
    path: tuple[str, ...] = ()


class Place(NamedTuple):
    topic_id: str
    partition: int
    offset: int


class OutOfRange(Exception):
    """Offsets that the partition does not hold (any more)."""


@dataclass(slots=True)
class Entry:
    """`row` None is a transaction marker. `decided` None means the transaction is open."""

    row: Row | None
    decided: bool | None = True


@dataclass(slots=True)
class Partition:
    entries: list[Entry] = field(default_factory=list)
    start: int = 0

    def end(self) -> int:
        return len(self.entries)

    def stable_end(self) -> int:
        undecided = (o for o, entry in enumerate(self.entries) if entry.decided is None)
        return next(undecided, len(self.entries))

    def append(self, row: Row | None, *, decided: bool | None = True) -> int:
        self.entries.append(Entry(row, decided))
        return len(self.entries) - 1

    def read(self, start: int, end: int) -> Iterator[tuple[int, Row]]:
        """The committed records of [start, end)."""
        if start < self.start or end > self.stable_end():
            raise OutOfRange(f"[{start}, {end}) of [{self.start}, {self.stable_end()})")
        for offset in range(start, end):
            entry = self.entries[offset]
            if entry.row is not None and entry.decided:
                yield offset, entry.row


@dataclass(slots=True)
class Topic:
    name: str
    topic_id: str
    partitions: list[Partition]

    def rows(self) -> Iterator[tuple[Place, Row]]:
        """All that a reader of committed records can see now."""
        for number, partition in enumerate(self.partitions):
            for offset, row in partition.read(partition.start, partition.stable_end()):
                yield Place(self.topic_id, number, offset), row

    def rows_ever(self) -> Iterator[tuple[Place, Row]]:
        """All that readers of committed records could ever see, also what retention removed."""
        for number, partition in enumerate(self.partitions):
            for offset, entry in enumerate(partition.entries[: partition.stable_end()]):
                if entry.row is not None and entry.decided:
                    yield Place(self.topic_id, number, offset), entry.row


class Transaction:
    """Its records are undecided until the markers are written, in each partition it touched."""

    def __init__(self) -> None:
        self._entries: list[tuple[Partition, Entry]] = []
        self._outcome: bool | None = None

    def append(self, partition: Partition, row: Row) -> int:
        offset = partition.append(row, decided=None)
        self._entries.append((partition, partition.entries[offset]))
        return offset

    def decide(self, *, committed: bool) -> None:
        """The coordinator has the outcome; readers only learn of it by the markers."""
        self._outcome = committed

    def write_markers(self) -> None:
        assert self._outcome is not None
        touched: list[Partition] = []
        for partition, entry in self._entries:
            entry.decided = self._outcome
            if not any(partition is known for known in touched):
                touched.append(partition)
        for partition in touched:
            partition.append(None)
        self._entries.clear()


class Cluster:
    """Topics by their present name, and every incarnation that ever was."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.incarnations: dict[str, Topic] = {}
        self.unmarked: list[Transaction] = []
        """Decided transactions whose markers are still on their way."""

    def row_at(self, place: Place) -> Row:
        """Of a record that was read there, also if its topic is gone since."""
        row = (
            self.incarnations[place.topic_id].partitions[place.partition].entries[place.offset].row
        )
        assert row is not None, f"no record at {place}"
        return row

    def has_row(self, place: Place) -> bool:
        """Whether a committed record was ever there, and not a marker, or nothing yet."""
        partition = self.incarnations[place.topic_id].partitions[place.partition]
        if place.offset >= partition.stable_end():
            return False
        entry = partition.entries[place.offset]
        return entry.row is not None and entry.decided is True

    def create(self, name: str, topic_id: str, partitions: int) -> Topic:
        topic = Topic(name, topic_id, [Partition() for _ in range(partitions)])
        self.topics[name] = topic
        self.incarnations[topic_id] = topic
        return topic

    def delete(self, name: str) -> None:
        self.topics.pop(name, None)

    def identify(self, name: str) -> str | None:
        topic = self.topics.get(name)
        return topic.topic_id if topic is not None else None

    def finish(self, transaction: Transaction, *, committed: bool, promptly: bool) -> None:
        transaction.decide(committed=committed)
        self.unmarked.append(transaction)
        if promptly:
            self.write_markers()

    def write_markers(self) -> None:
        for transaction in self.unmarked:
            transaction.write_markers()
        self.unmarked.clear()
