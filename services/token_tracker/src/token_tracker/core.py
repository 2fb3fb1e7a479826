"""Decides what a fact changes in a pipeline's slot. Never does I/O, never reads the clock.

Applying is a join: facts in any order, repeated or split, give one state. Both sides of a hop are
cumulative, so a fact that was lost on the way is covered by any later one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from shared.events import (
    Commit,
    Definition,
    Fact,
    LifecycleEvent,
    StageDefinition,
    from_vector,
    to_vector,
)
from shared.slots import Hop, Progress, SinkState, Slot, sink_key
from shared.vectors import TopicPartition, Vector, covers, join, meet

HOPS_MAX: Final = 512  # per Kafka sink; dropping one only makes tokens wait for a later one


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    slot: Slot
    progress: tuple[Progress, ...]


def apply_fact(slot: Slot, fact: Fact) -> Applied:
    match fact.body:
        case Definition():
            return _apply_definition(slot, fact.generation, fact.body)
        case Commit():
            return _advance(_apply_commit(slot, fact.body))


def apply_lifecycle(slot: Slot, event: LifecycleEvent) -> Slot:
    """The newest transition wins; a heartbeat only says that the runner lives."""
    heard = max(slot.heard_at, event.at)
    known = slot.lifecycle
    if event.kind != "transition" or (known is not None and known.at > event.at):
        if known is None and event.kind == "heartbeat":
            return replace(slot, heard_at=heard, lifecycle=event)
        return replace(slot, heard_at=heard)
    return replace(slot, heard_at=heard, lifecycle=event)


def _apply_definition(slot: Slot, generation: int, definition: Definition) -> Applied:
    newer = generation > slot.generation or (
        generation == slot.generation
        and (slot.definition is None or definition.deleted >= slot.definition.deleted)
    )
    if not newer:
        return Applied(slot=slot, progress=())
    return _advance(replace(slot, generation=generation, definition=definition))


def _apply_commit(slot: Slot, commit: Commit) -> Slot:
    sinks = dict(slot.sinks)
    for result in commit.sinks:
        if result.outcome != "committed":
            continue
        key = sink_key(commit.stage, result.name)
        state = sinks.get(key, SinkState())
        hop = Hop(
            inputs=commit.frontier,
            outputs=from_vector(
                {(o.topic_id, o.partition): o.end for o in commit.outputs if o.sink == result.name}
            ),
        )
        advanced = replace(
            state,
            frontier=from_vector(join(to_vector(state.frontier), to_vector(commit.frontier))),
            hops=_with_hop(state.hops, hop),
        )
        if commit.sequence > state.sequence:
            advanced = replace(
                advanced,
                sequence=commit.sequence,
                batch_id=commit.batch_id,
                committed_at=commit.committed_at,
                batch_rows=result.batch_rows,
                version=result.version,
            )
        sinks[key] = advanced
    return replace(slot, sinks=sinks)


def _with_hop(hops: tuple[Hop, ...], hop: Hop) -> tuple[Hop, ...]:
    """In the order of their inputs, which is one order because every batch follows a fence.

    The same inputs with other outputs: a batch reported twice; the smaller outputs are enough.
    """
    inputs, outputs = to_vector(hop.inputs), to_vector(hop.outputs)
    kept: list[Hop] = []
    placed = False
    for known in hops:
        if known.inputs == hop.inputs:
            least = meet(to_vector(known.outputs), outputs)
            kept.append(replace(known, outputs=from_vector(least)))
            placed = True
        elif not placed and covers(to_vector(known.inputs), inputs):
            kept += [hop, known]
            placed = True
        else:
            kept.append(known)
    if not placed:
        kept.append(hop)
    return tuple(kept if len(kept) <= HOPS_MAX else kept[:1] + kept[2::2] + _last(kept))


def _last(hops: list[Hop]) -> list[Hop]:
    """The newest hop survives thinning, which keeps every second one."""
    return [] if len(hops) % 2 else [hops[-1]]


def _advance(slot: Slot) -> Applied:
    """Move `reached` of every sink as far as its frontier allows, and drop hops that all passed."""
    if slot.definition is None:
        return Applied(slot=slot, progress=())
    graph = _Graph(slot)
    sinks = dict(slot.sinks)
    progress: list[Progress] = []
    for stage in slot.definition.stages:
        for sink in stage.sinks:
            key = sink_key(stage.name, sink.name)
            state = sinks.get(key, SinkState())
            reached = from_vector(join(to_vector(state.reached), graph.reached(stage, key)))
            if reached == state.reached:
                continue
            sinks[key] = replace(state, reached=reached)
            if state.sequence < 0:
                continue  # only where the sink begins; no batch has brought it there
            progress.append(
                Progress(
                    stage=stage.name,
                    sink=sink.name,
                    before=state.reached,
                    reached=reached,
                    batch_id=state.batch_id,
                    sequence=state.sequence,
                    committed_at=state.committed_at,
                    batch_rows=state.batch_rows,
                    version=state.version,
                )
            )
    for key, state in sinks.items():
        # Of a sink that no stage reads, the last hop is enough: a reader that is new begins there.
        passed = graph.passed.get(key, max(len(state.hops) - 1, 0))
        sinks[key] = replace(state, hops=state.hops[passed:])
    return Applied(slot=replace(slot, sinks=sinks), progress=tuple(progress))


class _Graph:
    """Translates how far a sink has come in its stage's inputs back to root inputs."""

    def __init__(self, slot: Slot) -> None:
        assert slot.definition is not None
        self._sinks = slot.sinks
        self._writers: dict[str, list[tuple[StageDefinition, str]]] = {}
        for stage in slot.definition.stages:
            for sink in stage.sinks:
                if sink.topic_id is not None:
                    writer = (stage, sink_key(stage.name, sink.name))
                    self._writers.setdefault(sink.topic_id, []).append(writer)
        self.passed: dict[str, int] = {}
        """By Kafka sink: how many hops every reader is past, without the last of them."""

    def reached(self, stage: StageDefinition, key: str) -> dict[TopicPartition, int]:
        state = self._sinks.get(key, SinkState())
        return self._to_roots(stage, join(_bases(stage), to_vector(state.frontier)))

    def _to_roots(self, stage: StageDefinition, at: Vector) -> dict[TopicPartition, int]:
        """Paths that lead to the same root topic combine by their minimum."""
        paths: list[dict[TopicPartition, int]] = []
        for source in stage.inputs:
            here = {place: end for place, end in at.items() if place[0] == source.topic_id}
            if source.root or source.topic_id not in self._writers:
                paths.append(here)
                continue
            for writer, key in self._writers[source.topic_id]:
                paths.append(self._to_roots(writer, self._through(writer, key, here)))
        return _combine(paths)

    def _through(self, writer: StageDefinition, key: str, covered: Vector) -> Vector:
        """What the writer had taken when everything it had written was below `covered`."""
        hops = self._sinks.get(key, SinkState()).hops
        passed = 0
        while passed < len(hops) and covers(covered, to_vector(hops[passed].outputs)):
            passed += 1
        floor = max(passed - 1, 0)
        self.passed[key] = min(self.passed.get(key, floor), floor) if hops else 0
        if not hops:
            self.passed.pop(key)
        before = to_vector(hops[passed - 1].inputs) if passed else {}
        return join(_bases(writer), before)


def _bases(stage: StageDefinition) -> dict[TopicPartition, int]:
    return {
        (base.topic_id, base.partition): base.offset
        for source in stage.inputs
        for base in source.bases
    }


def _combine(paths: list[dict[TopicPartition, int]]) -> dict[TopicPartition, int]:
    combined: dict[TopicPartition, int] = {}
    topics = {topic_id for path in paths for topic_id, _ in path}
    for topic_id in topics:
        of_topic: list[Mapping[TopicPartition, int]] = [
            {place: end for place, end in path.items() if place[0] == topic_id}
            for path in paths
            if any(place[0] == topic_id for place in path)
        ]
        least: Mapping[TopicPartition, int] = of_topic[0]
        for other in of_topic[1:]:
            least = meet(least, other)
        combined |= least
    return combined
