"""Which record went where: the batches that sinks took, and the rows that these became.

Behind a hop a record shares the fate of its neighbours, those of its batch. Of a batch that was not
told right behind the one before it nobody knows which rows are its own, so nothing is said of it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from shared.events import (
    Commit,
    Fact,
    InputDefinition,
    PipelineRecord,
    SinkDefinition,
    StageDefinition,
    to_vector,
)
from shared.slots import sink_key
from shared.vectors import Vector, gone_topics
from sim.contents import Contents, fence_key
from sim.effects import of_life, transform
from sim.log import Cluster, Place, Row
from sim.sinks import Batch

Taken = dict[str, list[tuple[int, Batch]]]
"""By the key of its fence, what each sink took, and the number of that move."""


@dataclass(frozen=True, slots=True)
class Move:
    """One batch in one sink. `told`: and so was the move before it, each in its turn."""

    read: frozenset[Place]
    rows: frozenset[Row]
    told: bool


class Flow:
    """What became of the records of one pipeline, when all is over."""

    def __init__(
        self,
        uid: str,
        records: Iterable[PipelineRecord],
        facts: Sequence[Fact],
        taken: Taken,
        cluster: Cluster,
        contents: Contents,
    ) -> None:
        self._uid = uid
        self._contents = contents
        self._cluster = cluster
        self._sinks = {
            fence_key(uid, stage, sink): (stage, sink)
            for record in records
            if record.pipeline_uid == uid
            for stage in record.stages
            for sink in stage.sinks
        }
        """Of all definitions, each as it was last."""
        told = _told(uid, facts)
        self._moves = {
            key: [*_moves(taken.get(key, ()), told[key], sink)]
            for key, (_, sink) in self._sinks.items()
        }
        self._places: dict[str, dict[Row, Place]] = {}
        self._left: dict[str, set[Row]] = {}
        self._passed: dict[str, Vector] = {}

    def arrived(self, place: Place, key: str, ways: Set[str] | None = None) -> bool:
        """Whether all that a record of a root, and whoever shares its fate, became is there now.

        What became nothing may be gone or not: nobody can tell. `ways`: the sinks that lead there,
        else all that ever did.
        """
        due = self._due(place, key, ways)
        if not due:
            return False
        stage, sink = self._sinks[key]
        rows = [frozenset(self._become(at, stage, sink)) for at in due]
        read = {at for move in self._moves[key] for at in move.read}
        left = self._rows_left(key)
        return due <= read and all(became and became <= left for became in rows)

    def passed(self, place: Place, key: str, ways: Set[str]) -> bool:
        """Whether the sink is past all that came to it before the record, and with it."""
        due = self._due(place, key, ways, earlier=True)
        return due is not None and all(self._past(key, at) for at in due)

    def _due(
        self, place: Place, key: str, ways: Set[str] | None, *, earlier: bool = False
    ) -> set[Place] | None:
        """What of the sink's inputs holds the record and its neighbours; None: some never came, or
        nobody knows. `earlier`: and all that was taken before them."""
        found: set[Place] = set()
        for source in self._sinks[key][0].inputs:
            if source.root:
                found |= {place} if place.topic_id in _ids(source) else set()
                continue
            writers = [w for w in self._writers(source) if ways is None or w in ways]
            come = [self._written(writer, place, ways, earlier) for writer in writers]
            known = [at for at in come if at is not None]
            if come and not known:
                return None
            found |= {at for each in known for at in each}
        return found

    def _written(
        self, writer: str, place: Place, ways: Set[str] | None, earlier: bool
    ) -> set[Place] | None:
        """Where what the record became stands in the topic of a sink that others read."""
        due = self._due(place, writer, ways, earlier=earlier)
        if due is None:
            return None
        moves = self._moves[writer]
        mine = [number for number, move in enumerate(moves) if not due.isdisjoint(move.read)]
        taken = {at for number in mine for at in moves[number].read}
        if not due <= taken or not all(moves[number].told for number in mine):
            return None
        if earlier:
            mine = [*range(max(mine, default=-1) + 1)]
        places = self._places_of(writer)
        return {places[row] for number in mine for row in moves[number].rows if row in places}

    def _writers(self, source: InputDefinition) -> Iterator[str]:
        for key, (_, sink) in self._sinks.items():
            if sink.topic_id is not None and sink.target == source.topic:
                yield key

    def _become(self, at: Place, stage: StageDefinition, sink: SinkDefinition) -> Iterable[Row]:
        entry = self._cluster.incarnations[at.topic_id].partitions[at.partition].entries[at.offset]
        assert entry.row is not None
        return _as_written(transform(self._uid, stage.name, entry.row), sink)

    def _rows_left(self, key: str) -> Set[Row]:
        if key not in self._left:
            self._left[key] = self._contents.left(self._uid, *self._sinks[key])
        return self._left[key]

    def _past(self, key: str, at: Place) -> bool:
        if key not in self._passed:
            fence = self._contents.fence(key)
            self._passed[key] = to_vector(fence.frontier) if fence is not None else {}
        passed = self._passed[key]
        return at.topic_id in gone_topics(passed) or passed.get(at[:2], 0) > at.offset

    def _places_of(self, key: str) -> Mapping[Row, Place]:
        """Where the rows of a Kafka sink stand, in each topic of that name that ever was."""
        if key not in self._places:
            target = self._sinks[key][1].target
            self._places[key] = {
                entry.row: Place(topic.topic_id, number, offset)
                for topic in self._cluster.incarnations.values()
                if topic.name == target
                for number, partition in enumerate(topic.partitions)
                for offset, entry in enumerate(partition.entries)
                if entry.row is not None and entry.decided
            }
        return self._places[key]


def _ids(source: InputDefinition) -> tuple[str, ...]:
    return (source.topic_id, *source.retired)


def _as_written(rows: Iterable[Row], sink: SinkDefinition) -> Iterable[Row]:
    return rows if sink.topic_id is None else [of_life(row, sink.since) for row in rows]


def _moves(
    taken: Iterable[tuple[int, Batch]], told: Set[int], sink: SinkDefinition
) -> Iterator[Move]:
    for number, batch in taken:
        yield Move(
            read=frozenset(batch.read),
            rows=frozenset(_as_written(batch.rows, sink)),
            told=number in told and (number == 0 or number - 1 in told),
        )


def _told(uid: str, facts: Iterable[Fact]) -> dict[str, set[int]]:
    """By sink, the moves of its fence that were told before any later one was."""
    told: dict[str, set[int]] = defaultdict(set)
    last: dict[str, int] = {}
    for fact in facts:
        if fact.pipeline_uid == uid and isinstance(fact.body, Commit):
            for result in fact.body.sinks:
                key = f"{uid}/{sink_key(fact.body.stage, result.name, result.since)}"
                if fact.body.sequence > last.get(key, -1):
                    last[key] = fact.body.sequence
                    told[key].add(fact.body.sequence)
    return told
