"""Translates the frontier of a sink, in the inputs of its stage, back to root inputs.

A hop of a writer counts when the reader covers its outputs. If several paths lead to the same root,
their minimum counts. `waybill.replays` is a root of every stage, and of each another one: a letter
enters at one of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from itertools import chain
from typing import Final

from waybill_shared.contract.events import Definition, InputDefinition, StageDefinition
from waybill_shared.contract.replays import entrance
from waybill_shared.contract.slots import Hop, SinkState, Slot, stage_key
from waybill_shared.contract.topology import StageSink, Topology
from waybill_shared.contract.vectors import (
    Span,
    TopicPartition,
    Vector,
    covers,
    join,
    meet,
    nearer,
    topics_deleted_in,
)

SHAPES_MAX: Final = 4_096  # definitions with a cached shape; each is a few kB


@dataclass(frozen=True, slots=True)
class _Path:
    """The position of a sink in the root topics `ids`, along one path or several combined ones."""

    ids: frozenset[str]
    reached: Mapping[TopicPartition, int]


class _Shape:
    """The part that is the same for every slot with this definition; made once for many commits."""

    def __init__(self, definition: Definition) -> None:
        self._topology = Topology(definition.stages)
        self._writers: dict[tuple[str, tuple[str, ...]], list[StageSink]] = {}
        self.sinks = self._topology.sinks
        self.inner = frozenset(
            topic_id
            for stage in definition.stages
            for source in stage.inputs
            for writer in self.writers_of(source)
            for topic_id in source.ids | writer.unread(source)
        )
        self.bases = {stage.name: stage.bases for stage in definition.stages}
        self.roots = {
            stage.name: frozenset().union(*(source.ids for source in stage.inputs))
            for stage in definition.stages
            if not any(self.writers_of(source) for source in stage.inputs)
        }
        """The ids of root topics, by stage that reads only roots."""
        self.readers_first = tuple(reversed(self._writers_first(definition.stages)))

    def _writers_first(self, stages: tuple[StageDefinition, ...]) -> list[StageDefinition]:
        placed: dict[str, StageDefinition] = {}

        def place(stage: StageDefinition) -> None:
            if stage.name not in placed:
                for source in stage.inputs:
                    for writer in self.writers_of(source):
                        place(writer.stage)
                placed[stage.name] = stage

        for stage in stages:
            place(stage)
        return [*placed.values()]

    def writers_of(self, source: InputDefinition) -> list[StageSink]:
        if source.root:
            return []
        known = (source.topic_id, source.retired)
        if known not in self._writers:
            self._writers[known] = self._topology.writers(source)
        return self._writers[known]


_shape_of = lru_cache(maxsize=SHAPES_MAX)(_Shape)


class Graph:
    """A slot with the paths of its records from root inputs to sinks."""

    def __init__(self, definition: Definition, slot: Slot) -> None:
        self._slot = slot
        self._shape = _shape_of(definition)
        self.sinks = self._shape.sinks
        self.inner = self._shape.inner
        """Ids of the topics between the stages."""
        self.readers_first = self._shape.readers_first
        """All stages; each follows those that read what it writes."""
        self.passed: dict[str, int] = {}
        """By Kafka sink: how many hops every reader is past, without the last of them."""

    def state(self, key: str) -> SinkState:
        return self._slot.sinks.get(key, SinkState())

    def hops(self, key: str) -> tuple[Hop, ...]:
        return self.state(key).hops

    def writers(self, source: InputDefinition) -> list[StageSink]:
        """Return the sinks of this pipeline that write to an input; none for a root."""
        return self._shape.writers_of(source)

    def bases(self, stage: StageDefinition) -> Vector:
        """Return where the stage started, in retired topics too."""
        former, bases = self._slot.former.get(stage_key(stage)), self._shape.bases[stage.name]
        return {**former, **bases} if former else bases

    def position(self, sink: StageSink) -> Vector:
        """Return the position of a sink in the inputs of its stage and in replays: its frontier, or
        where the stage started."""
        state = self.state(sink.key)
        read = join(self.bases(sink.stage), state.frontier)
        return _with_letters(read, state.replayed, sink.stage)

    def root_position(self, sink: StageSink) -> Vector:
        """Return the position of a sink in root inputs. If its stage reads only roots, this is the
        frontier itself; else the frontier is translated along the hops."""
        name = sink.stage.name
        roots = self._shape.roots.get(name)
        if roots is not None and stage_key(sink.stage) not in self._slot.former:
            state = self.state(sink.key)
            read = join(state.frontier, self._shape.bases[name])
            if roots.issuperset([topic_id for topic_id, _ in read]):
                return _with_letters(read, state.replayed, sink.stage)
        return self._to_roots(sink.stage, self.position(sink)).reached

    def through(self, writer: StageSink, source: InputDefinition, covered: Vector) -> Vector:
        """Return the input positions of the writer when all that it had written for `source` was
        below `covered`. Also note in `passed` how many of its hops that is."""
        hops, deleted = self.hops(writer.key), topics_deleted_in(covered) | writer.unread(source)
        passed = 0
        while passed < len(hops) and covers(covered, hops[passed].outputs, deleted):
            passed += 1
        if hops:
            floor = max(passed - 1, 0)
            self.passed[writer.key] = min(self.passed.get(writer.key, floor), floor)
        if not passed:
            return self.bases(writer.stage)
        before = hops[passed - 1]
        read = join(self.bases(writer.stage), before.inputs)
        return _with_letters(read, before.replayed, writer.stage)

    def places(self, topic_id: str) -> Iterator[TopicPartition]:
        """Yield the partitions of a topic that anything in the slot names, some more than once."""
        states = self._slot.sinks.values()
        named = chain(
            *((*state.frontier, *state.reached) for state in states),
            *(state.hops[-1].outputs for state in states if state.hops),
            *(self.bases(sink.stage) for sink in self.sinks),
        )
        return (place for place in named if place[0] == topic_id)

    @cached_property
    def replays(self) -> frozenset[str]:
        """The ids of `waybill.replays`, as far as any sink has read it."""
        states = self._slot.sinks.values()
        return frozenset(topic_id for state in states for topic_id, _ in state.replayed)

    def _entries(self, stage: StageDefinition, ways: list[Vector]) -> list[_Path]:
        """Return how far these ways to a stage are in the replays that enter there."""
        ids = frozenset(entrance(topic_id, stage_key(stage)) for topic_id in self.replays)
        return [
            _Path(ids, {place: end for place, end in at.items() if place[0] in ids}) for at in ways
        ]

    def _to_roots(self, stage: StageDefinition, at: Vector) -> _Path:
        """Walk from a stage back to its roots. Each stage is visited once, however many paths lead
        to it: the least of their positions counts for all."""
        ways: dict[str, list[Vector]] = {stage.name: [at]}
        paths: list[_Path] = []
        for each in self.readers_first:
            paths += self._entries(each, ways.get(each.name, [])) if self.replays else []
            for source in each.inputs if each.name in ways else ():
                here, writers = [within(at, source) for at in ways[each.name]], self.writers(source)
                if not writers:
                    paths += [_Path(source.ids, reached) for reached in here]
                for writer in writers:
                    read = self.through(writer, source, reduce(nearer, here))
                    ways.setdefault(writer.stage.name, []).append(read)
        return _combine(paths)


def entrances_of(replayed: Vector, stage: StageDefinition) -> Vector:
    """Return positions in `waybill.replays` as those in an input of this stage."""
    key = stage_key(stage)
    return {(entrance(topic_id, key), number): end for (topic_id, number), end in replayed.items()}


def _with_letters(read: Vector, replayed: Vector, stage: StageDefinition) -> Vector:
    return {**read, **entrances_of(replayed, stage)} if replayed else read


def at_entrance(span: Span, stage: StageDefinition) -> Span:
    """Return a span of `waybill.replays` as one of an input of this stage."""
    return replace(span, topic_id=entrance(span.topic_id, stage_key(stage)))


def within(at: Vector, source: InputDefinition) -> dict[TopicPartition, int]:
    """Return the part of `at` that is about one input."""
    ids = source.ids
    return {place: end for place, end in at.items() if place[0] in ids}


def _combine(paths: list[_Path]) -> _Path:
    """Return the minimum of all paths to each topic. A path that leads to a topic and has not
    started there limits all others."""
    ids: frozenset[str] = frozenset().union(*(path.ids for path in paths))
    combined: dict[TopicPartition, int] = {}
    for topic_id in ids:
        mine = [path.reached for path in paths if topic_id in path.ids]
        least: Vector = {place: end for place, end in mine[0].items() if place[0] == topic_id}
        for other in mine[1:]:
            least = meet(least, other)
        combined |= least
    return _Path(ids, combined)
