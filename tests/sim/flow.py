"""Which record went where: the batches that sinks took, and the rows that these became.

Behind a hop a record shares the fate of its neighbours: those of its batch, and of the batches
that were told with it, as nobody knows which of their rows are its own.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby

from sim.contents import Contents, fence_key
from sim.effects import as_written, transform
from sim.log import Cluster, Place, Row
from sim.sinks import Batch
from waybill_shared.contract.events import (
    Commit,
    Fact,
    InputDefinition,
    PipelineRecord,
    SinkDefinition,
    StageDefinition,
)
from waybill_shared.contract.former_names import first_name
from waybill_shared.contract.slots import key_of_commit, stage_key
from waybill_shared.contract.vectors import Vector, topics_deleted_in

Taken = dict[str, list[tuple[int, Batch]]]
"""By the key of its fence, what each sink took, and the number of that move."""


@dataclass(frozen=True, slots=True)
class Move:
    """What a sink took from one time that it was told to the next one: a batch, mostly."""

    read: frozenset[Place]
    rows: frozenset[Row]


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
        mine = [record for record in records if record.pipeline_uid == uid]
        self._sinks = {
            fence_key(uid, stage, sink): (stage, sink)
            for record in mine
            for stage in record.stages
            for sink in stage.sinks
        }
        """Of all definitions, each as it was last."""
        self._writers = {way: writer for record in mine for way, writer in _writers(record)}
        told = _told(uid, facts)
        self._moves = {
            key: [*_moves(taken.get(key, ()), told[key], sink)]
            for key, (_, sink) in self._sinks.items()
        }
        self._places: dict[str, dict[Row, Place]] = {}
        self._left: dict[str, set[Row]] = {}
        self._passed: dict[str, Vector] = {}

    def arrived(self, place: Place, key: str) -> bool:
        """Whether all that a record of a root, and whoever shares its fate, became is there now.

        What became nothing may be gone or not: nobody can tell.
        """
        due = self._due(place, key)
        if not due:
            return False
        stage, sink = self._sinks[key]
        rows = [frozenset(self._become(at, stage, sink)) for at in due]
        read = {at for move in self._moves[key] for at in move.read}
        left = self._rows_left(key)
        return due <= read and all(became and became <= left for became in rows)

    def passed(self, place: Place, key: str) -> bool:
        """Whether the sink is past all that came to it before the record, and with it."""
        due = self._due(place, key, earlier=True)
        return due is not None and all(self._past(key, at) for at in due)

    def _due(self, place: Place, key: str, *, earlier: bool = False) -> set[Place] | None:
        """What of the sink's inputs holds the record and its neighbours; None: some never came, or
        nobody knows. `earlier`: and all that was taken before them."""
        found: set[Place] = set()
        stage, _ = self._sinks[key]
        for source in stage.inputs:
            if source.root:
                found |= {place} if place.topic_id in _ids(source) else set()
                continue
            come = self._written(self._writers[stage_key(stage), source.topic], place, earlier)
            if come is None:
                return None
            found |= come
        return found

    def _written(self, writer: str, place: Place, earlier: bool) -> set[Place] | None:
        """Where what the record and its neighbours became stands in the topic that others read."""
        due = self._due(place, writer, earlier=earlier)
        if due is None:
            return None
        moves = self._moves[writer]
        mine = [number for number, move in enumerate(moves) if not due.isdisjoint(move.read)]
        taken = {at for number in mine for at in moves[number].read}
        if not due <= taken:
            return None
        if earlier:
            mine = [*range(max(mine, default=-1) + 1)]
        places = self._places_of(writer)
        return {places[row] for number in mine for row in moves[number].rows if row in places}

    def _become(self, at: Place, stage: StageDefinition, sink: SinkDefinition) -> Iterable[Row]:
        entry = self._cluster.incarnations[at.topic_id].partitions[at.partition].entries[at.offset]
        assert entry.row is not None
        return as_written(transform(self._uid, first_name(stage), entry.row), sink)

    def _rows_left(self, key: str) -> Set[Row]:
        if key not in self._left:
            self._left[key] = self._contents.left(self._uid, *self._sinks[key])
        return self._left[key]

    def _past(self, key: str, at: Place) -> bool:
        if key not in self._passed:
            fence = self._contents.fence(key)
            self._passed[key] = {} if fence is None else {**fence.frontier, **fence.replayed}
        passed = self._passed[key]
        return at.topic_id in topics_deleted_in(passed) or passed.get(at[:2], 0) > at.offset

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


def _writers(record: PipelineRecord) -> Iterator[tuple[tuple[str, str], str]]:
    """By stage and topic that it reads, the sink that fills it: the same as long as the stage goes
    on. Who writes there before or after brings it nothing."""
    fills = {
        sink.target: fence_key(record.pipeline_uid, stage, sink)
        for stage in record.stages
        for sink in stage.sinks
        if sink.topic_id is not None
    }
    for stage in record.stages:
        for source in stage.inputs:
            if not source.root:
                yield (stage_key(stage), source.topic), fills[source.topic]


def _ids(source: InputDefinition) -> tuple[str, ...]:
    return (source.topic_id, *source.retired)


def _moves(
    taken: Iterable[tuple[int, Batch]], told: Set[int], sink: SinkDefinition
) -> Iterator[Move]:
    ends = sorted(told)
    for _, together in groupby(taken, lambda move: bisect_left(ends, move[0])):
        batches = [batch for _, batch in together]
        yield Move(
            read=frozenset(at for batch in batches for at in batch.read),
            rows=frozenset(row for batch in batches for row in as_written(batch.rows, sink)),
        )


def _told(uid: str, facts: Iterable[Fact]) -> dict[str, set[int]]:
    """By sink, the moves of its fence that were told before any later one was."""
    told: dict[str, set[int]] = defaultdict(set)
    last: dict[str, int] = {}
    for fact in facts:
        if fact.pipeline_uid == uid and isinstance(fact.body, Commit):
            commit = fact.body
            key = f"{uid}/{key_of_commit(commit)}"
            if commit.batch.sequence > last.get(key, -1):
                last[key] = commit.batch.sequence
                told[key].add(commit.batch.sequence)
    return told
