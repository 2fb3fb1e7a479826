"""Spark as a stage meets it: a query that plans batches, writes them down, and runs them.

It knows topics by name and offsets by number, as Spark does: a topic that was created anew and has
grown is read on from the old number, in silence. The plan of batch N is written to `offsets/N`
before the batch runs and `commits/N` after it; a plan without its commit is run again, unchanged.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

from sim.files import MemoryPath
from sim.log import Cluster, OutOfRange, Partition, Place, Row, Topic
from waybill_shared.contract.events import Range
from waybill_spark.tracking.checkpoint import LOG_VERSION

EARLIEST = -2
LIMIT_MAX = 6

Offsets = dict[str, dict[int, int]]


class QueryFailed(Exception):
    """Spark ends the query by itself."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The records of some ranges; read when they are asked for, not when planned."""

    cluster: Cluster
    ranges: tuple[tuple[str, int, int, int], ...]

    def rows(self) -> list[tuple[Place, Row]]:
        found: list[tuple[Place, Row]] = []
        for name, number, start, end in self.ranges:
            topic = _topic(self.cluster, name)
            try:
                run = [*topic.partitions[number].read(start, end)]
            except (OutOfRange, IndexError) as error:
                raise QueryFailed(f"some data of {name}[{number}] may be lost: {error}") from error
            found += [(Place(topic.topic_id, number, offset), row) for offset, row in run]
        return found


def static_frame(cluster: Cluster, ranges: Iterable[Range]) -> Frame:
    return Frame(cluster, tuple((r.topic, r.partition, r.start, r.end) for r in ranges))


class Query:
    """One streaming query in one driver: what it has in memory, and its folder."""

    def __init__(
        self,
        cluster: Cluster,
        folder: MemoryPath,
        topics: Iterable[str],
        dice: Random,
        *,
        ends: bool,
    ) -> None:
        self._cluster = cluster
        self._folder = folder
        self._topics = sorted(topics)
        self._dice = dice
        self._ends_by_itself = ends
        self._available: Offsets | None = None
        """Where its topics ended when it began, if it ends there; None before."""
        self._batch = 0
        self._planned = False
        self._before: Offsets = {}
        self._ends: Offsets = {}

    def start(self, starts: Mapping[tuple[str, int], int], ids: Mapping[str, str]) -> None:
        """`starts` counts only where the folder holds no beginning yet."""
        if not (self._folder / "metadata").exists():
            lineage = f"{self._dice.getrandbits(64):016x}"
            (self._folder / "metadata").write_text(json.dumps({"id": lineage}))
        beginning = self._folder / "sources" / "0" / "0"
        if not beginning.exists():
            beginning.write_text(f"{LOG_VERSION}\n{json.dumps(self._beginning(starts, ids))}")
        self._load()
        if self._ends_by_itself:
            self._available = {name: _stable_ends(self._cluster, name) for name in self._topics}

    def has_ended(self) -> bool:
        """Whether it has read all that was available. An unfinished batch comes first."""
        if self._available is None or self._planned:
            return False
        return all(
            self._before.get(name, {}).get(number, 0) >= end
            for name, ends in self._available.items()
            for number, end in ends.items()
        )

    def next_batch(self) -> tuple[int, Frame] | None:
        """The batch to run now, written down; None when there is nothing new."""
        if not self._planned:
            ends = self._latest()
            if ends == self._before or not ends:
                return None
            self._write("offsets", f"{LOG_VERSION}\n{{}}\n{json.dumps(ends)}")
            self._ends, self._planned = ends, True
        return self._batch, Frame(self._cluster, self._ranges())

    def commit(self) -> None:
        self._write("commits", f"{LOG_VERSION}\n{{}}")
        self._before = self._ends
        self._batch += 1
        self._planned = False

    def _load(self) -> None:
        planned, committed = self._newest("offsets"), self._newest("commits")
        if planned is None:
            self._before = self._read("sources/0/0")
            return
        self._ends = self._read(f"offsets/{planned}")
        self._before = self._read(f"offsets/{planned - 1}" if planned else "sources/0/0")
        self._batch, self._planned = planned, True
        if committed == planned:
            self._before = self._ends
            self._batch, self._planned = planned + 1, False

    def _beginning(self, starts: Mapping[tuple[str, int], int], ids: Mapping[str, str]) -> Offsets:
        offsets: Offsets = {}
        for name in self._topics:
            for number, partition in enumerate(_topic(self._cluster, name).partitions):
                wanted = starts.get((ids[name], number), EARLIEST)
                start = partition.start if wanted == EARLIEST else wanted
                offsets.setdefault(name, {})[number] = start
        return offsets

    def _latest(self) -> Offsets:
        """Each partition's stable end, or somewhat less: batches are limited."""
        limit = self._dice.choice((1, 2, LIMIT_MAX, LIMIT_MAX))
        latest: Offsets = {}
        for name in self._topics:
            partitions = _topic(self._cluster, name).partitions
            before = self._before.get(name, {})
            if len(before) > len(partitions):
                raise QueryFailed(f"partitions of {name} may have been deleted")
            for number, partition in enumerate(partitions):
                if number not in before and partition.start:
                    raise QueryFailed(f"{name}[{number}] begins at {partition.start}, not at 0")
                at = before.get(number, 0)
                end = self._end(name, number, partition)
                latest.setdefault(name, {})[number] = min(end, at + limit)
        return latest

    def _end(self, name: str, number: int, partition: Partition) -> int:
        if self._available is None:
            return partition.stable_end()
        return self._available[name].get(number, self._before.get(name, {}).get(number, 0))

    def _ranges(self) -> tuple[tuple[str, int, int, int], ...]:
        ranges = []
        for name, ends in self._ends.items():
            for number, end in ends.items():
                start = self._before.get(name, {}).get(number, 0)
                if end < start:
                    raise QueryFailed(f"the end of {name}[{number}] went from {start} to {end}")
                ranges.append((name, number, start, end))
        return tuple(ranges)

    def _write(self, log: str, text: str) -> None:
        path = self._folder / log / str(self._batch)
        if path.exists():
            raise QueryFailed(f"{path}: another query writes this checkpoint")
        path.write_text(text)

    def _newest(self, log: str) -> int | None:
        return max(map(int, self._folder.names(log)), default=None)

    def _read(self, name: str) -> Offsets:
        path = self._folder / name
        try:
            found = json.loads(path.read_text().splitlines()[-1])
        except (OSError, ValueError, IndexError) as error:
            raise QueryFailed(f"incomplete log file {path}") from error
        return {topic: {int(p): end for p, end in ends.items()} for topic, ends in found.items()}


def _stable_ends(cluster: Cluster, name: str) -> dict[int, int]:
    return {n: each.stable_end() for n, each in enumerate(_topic(cluster, name).partitions)}


def _topic(cluster: Cluster, name: str) -> Topic:
    topic = cluster.topics.get(name)
    if topic is None:
        raise QueryFailed(f"topic {name} does not exist")
    return topic
