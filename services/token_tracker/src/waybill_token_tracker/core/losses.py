"""Decides which offsets of root inputs never reach a sink, from what stages have set aside.

1. A stage sets a span aside if it will never process it. The commit reports it, in the inputs of
   that stage.
2. After each fact `core.facts` calls `settle` with the slot before the fact and the graph after it.
3. Spans that were written between stages before the reader was added are set aside, too.
4. `_spread` translates spans of inner topics back. The hops that wrote there are found, and their
   inputs are set aside. This is repeated for each earlier stage.
5. What is set aside in root topics is lost for the sink. So is all that is lost for a sink that
   writes one of its inputs.
6. What a sink has reached stays reached: only offsets beyond that can become lost.

The unit is the hop. So a record may be called lost because of its neighbours in a batch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property, reduce
from typing import Final

from waybill_shared.contract.events import MARKER, InputDefinition, StageDefinition
from waybill_shared.contract.slots import Hop, Losses, SinkState, Slot
from waybill_shared.contract.topology import StageSink
from waybill_shared.contract.vectors import (
    ENDLESS,
    Span,
    TopicPartition,
    Vector,
    between,
    beyond,
    covers,
    ends,
    join,
    merge_spans,
    nearer,
    overlap,
    topics_deleted_in,
    without,
)
from waybill_shared.contract.words import LossReason
from waybill_token_tracker.core.graph import Graph, at_entrance, entrances_of, within

UNSAID: Final = LossReason.TOPIC_RECREATED  # for a deleted topic if no reason was reported

_Way = tuple[StageDefinition, Vector]
"""A stage as it was defined before the fact, and how far a sink was past its inputs then."""


def unite(losses: Losses, more: Mapping[str, Iterable[Span]]) -> Losses:
    """Return the losses of both, merged by reason."""
    if not more:
        return losses
    reasons = sorted({*losses, *(reason for reason, spans in more.items() if spans)})
    return {
        reason: merge_spans((*losses.get(reason, ()), *more.get(reason, ()))) for reason in reasons
    }


def settle(before: Slot, graph: Graph) -> dict[str, SinkState]:
    """Return the sinks of `graph` with their losses. `before` is the slot without the last fact."""
    settling = _Settling(before, graph)
    return {sink.key: settling.state_of(sink) for sink in graph.sinks}


class _Settling:
    """The work of one `settle`. Each sink is computed once, after the sinks that write its
    inputs."""

    def __init__(self, before: Slot, graph: Graph) -> None:
        self._before = before
        self._graph = graph
        self._settled: dict[str, SinkState] = {}

    @cached_property
    def _old(self) -> Graph | None:
        definition = self._before.definition
        return None if definition is None else Graph(definition, self._before)

    def state_of(self, sink: StageSink) -> SinkState:
        """Return the sink with what its own stage has lost, and what was lost before it."""
        if sink.key not in self._settled:
            self._settled[sink.key] = self._settle(sink)
        return self._settled[sink.key]

    def _settle(self, sink: StageSink) -> SinkState:
        state = self._graph.state(sink.key)
        set_aside = unite(state.set_aside, self._late(sink))
        if set_aside:
            set_aside = self._spread(sink, set_aside)
        found = [self._of_roots(sink.stage, set_aside)]
        for source in sink.stage.inputs:
            found += [_on_the_way(self.state_of(w).lost) for w in self._graph.writers(source)]
        if not any(found):
            return state
        reached = self._before.sinks.get(sink.key, SinkState()).reached
        lost = state.lost
        for losses in found:
            lost = _with_new(lost, losses, reached)
        if set_aside == state.set_aside and lost == state.lost:
            return state
        return replace(state, set_aside=set_aside, lost=lost)

    def _of_roots(self, stage: StageDefinition, set_aside: Losses) -> Losses:
        inner, replays = self._graph.inner, self._graph.replays
        return {
            reason: tuple(
                at_entrance(span, stage) if span.topic_id in replays else span
                for span in spans
                if span.topic_id not in inner
            )
            for reason, spans in set_aside.items()
        }

    def _late(self, sink: StageSink) -> dict[str, list[Span]]:
        """Return what was written between the stages before this sink was added: it does not get
        that.

        For a root topic the bases say so. For an inner topic nothing else does.
        """
        spans: list[Span] = []
        for source in sink.stage.inputs:
            for writer in self._graph.writers(source):
                if writer.sink.since < sink.sink.since:
                    spans += between({}, source.bases)
                    spans += self._find_written_elsewhere(writer, source)
        return {LossReason.BEFORE_START: spans} if spans else {}

    def _find_written_elsewhere(self, writer: StageSink, source: InputDefinition) -> Iterable[Span]:
        """Yield the topics of the same name that were deleted before `source` was first read."""
        places = {p for hop in self._graph.hops(writer.key) for p in hop.outputs}
        for topic_id, partition in sorted(places):
            if topic_id in writer.unread(source):
                yield Span(topic_id=topic_id, partition=partition, start=0, end=ENDLESS)

    def _spread(self, sink: StageSink, set_aside: Losses) -> Losses:
        """Return what is set aside, translated from topic to topic along the hops that wrote there.

        The spans of each step are kept, because a hop of an earlier stage may arrive with a later
        fact.
        """
        way = self._way(sink)
        set_aside = self._close(sink, way, set_aside)
        ways: dict[str, list[_Way | None]] = {sink.stage.name: [way]}
        for stage in self._graph.readers_first:
            for source in stage.inputs if stage.name in ways else ():
                way = reduce(_nearer, ways[stage.name])
                for writer in self._graph.writers(source):
                    above = self._way_above(way, source, writer)
                    floor = above[1] if above is not None else {}
                    set_aside = unite(set_aside, self._find_read(writer, source, set_aside, floor))
                    ways.setdefault(writer.stage.name, []).append(above)
        return set_aside

    def _find_read(
        self, writer: StageSink, source: InputDefinition, set_aside: Losses, floor: Vector
    ) -> dict[str, list[Span]]:
        """Return what `writer` read, beyond `floor`, when it wrote what is set aside of
        `source`."""
        ids = source.ids | writer.unread(source)
        holes = {
            reason: mine
            for reason, spans in set_aside.items()
            if (mine := [span for span in spans if span.topic_id in ids])
        }
        read: dict[str, list[Span]] = {reason: [] for reason in holes}
        last = ends(span for spans in holes.values() for span in spans)
        start = join(self._graph.bases(writer.stage), floor)
        before = Hop(sequence=-1, inputs={}, outputs={})
        for hop in self._graph.hops(writer.key) if holes else ():
            if covers(before.outputs, last):
                break
            rows = rows_between(before, hop)
            for reason in (reason for reason, mine in holes.items() if overlap(mine, rows)):
                read[reason] += between(join(start, before.inputs), hop.inputs)
                ends_there = entrances_of(hop.replayed, writer.stage)
                known = join(entrances_of(before.replayed, writer.stage), _only(floor, ends_there))
                read[reason] += between(known, ends_there)
            before = hop
        return read

    def _close(self, sink: StageSink, way: _Way | None, set_aside: Losses) -> Losses:
        """Return what is set aside, with all the rest of deleted topics: their partitions that
        nobody named."""
        state = self._graph.state(sink.key)
        position = way[1] if way is not None else self._graph.position(sink)
        for topic_id in sorted(topics_deleted_in(state.frontier)):
            reasons = _endless(set_aside, topic_id)
            rest = between(position, dict.fromkeys(self._graph.places(topic_id), ENDLESS))
            reason = next(iter(reasons.values()), UNSAID)
            unsaid = [span for span in rest if span.key not in reasons]
            set_aside = unite(set_aside, {reason: unsaid})
        return set_aside

    def _way(self, sink: StageSink) -> _Way | None:
        """Return the position of the sink in its inputs before the fact; None if no definition had
        it."""
        for known in self._old.sinks if self._old is not None else ():
            if known.key == sink.key:
                assert self._old is not None
                return known.stage, self._old.position(known)
        return None

    def _way_above(
        self, way: _Way | None, source: InputDefinition, writer: StageSink
    ) -> _Way | None:
        """Return the position of `writer` in its own inputs before the fact, along the path through
        `source`."""
        if way is None or self._old is None:
            return None
        stage, position = way
        for known in stage.inputs:
            if known.ids & source.ids:
                for each in self._old.writers(known):
                    if each.key == writer.key:
                        return each.stage, self._old.through(each, known, within(position, known))
        return None


def _nearer(left: _Way | None, right: _Way | None) -> _Way | None:
    """Return the position of a stage on the path where it has read less."""
    return None if left is None or right is None else (left[0], nearer(left[1], right[1]))


def _only(vector: Vector, other: Vector) -> Vector:
    """Return the part of a vector that is about the partitions of the other one."""
    return {place: end for place, end in vector.items() if place in other}


def rows_between(before: Hop, hop: Hop) -> tuple[Span, ...]:
    """Return the spans where rows of `hop` may be that are not of `before`. Markers, and rows of
    other writers, are not among them.

    The first marker may be in none of the gaps: then a hop that was dropped between the two had it.
    """
    low = {place: end + MARKER for place, end in before.outputs.items()}
    return without(between(low, hop.outputs), hop.gaps)


def _endless(set_aside: Losses, topic_id: str) -> dict[TopicPartition, str]:
    """Return the reason by partition, where all the rest of a topic is set aside."""
    return {
        span.key: reason
        for reason, spans in set_aside.items()
        for span in spans
        if span.topic_id == topic_id and span.end == ENDLESS
    }


def _on_the_way(lost: Losses) -> Losses:
    """Return what never reached a writer, and so reaches none of its readers. What was lost with
    the topic of the sink did reach it: readers may have it."""
    went = LossReason.SINK_TOPIC_RECREATED
    return {reason: spans for reason, spans in lost.items() if reason != went}


def _with_new(lost: Losses, found: Losses, reached: Vector) -> Losses:
    """Return `lost` with the new losses. A span that never arrived keeps its first reason. What has
    been reached is not lost."""
    for reason, spans in found.items():
        known = [span for spans in _on_the_way(lost).values() for span in spans]
        lost = unite(lost, {reason: without(beyond(spans, reached), known)})
    return lost
