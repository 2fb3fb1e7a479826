"""Plans a pipeline: its definition from manifest and topics, and what may change in a running one.

Never does I/O.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from shared.errors import UserError
from shared.events import (
    InputDefinition,
    PartitionOffset,
    PipelineRecord,
    Problem,
    SinkDefinition,
    StageDefinition,
)
from shared.manifest import Manifest, Sink, Stage

NEW_NAME_HINT: Final = (
    "a stage under a new name begins anew: it writes again what its inputs still hold"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """A topic that the pipeline needs, and where its readers begin if they are new."""

    topic: str
    partitions: int
    starting: str
    written: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """A topic as it is, with the offsets at which a new reader begins, and its ends."""

    topic_id: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]


def topics_of(manifest: Manifest, start_from: str | None = None) -> tuple[TopicPlan, ...]:
    """The topics of all inputs and Kafka sinks; the manifest's checks have refused shared ones.

    `start_from` overrides what the manifest says of inputs. What a stage writes is read whole.
    """
    inputs = (
        TopicPlan(
            topic=i.kafka.topic,
            partitions=i.kafka.partitions,
            starting=start_from or i.starting_offsets,
        )
        for i in manifest.inputs
    )
    sinks = (
        TopicPlan(
            topic=k.kafka.topic,
            partitions=k.kafka.partitions,
            starting="earliest",
            written=True,
        )
        for stage in manifest.stages
        for k in stage.sinks
        if k.kafka is not None
    )
    return (*inputs, *sinks)


def define(
    manifest: Manifest, topics: Mapping[str, TopicState], before: PipelineRecord | None
) -> tuple[StageDefinition, ...]:
    """The stages with topic ids and bases. A stage that exists keeps the bases it began with.

    A topic that was created anew is begun anew; the stage remembers the ids that it had before.
    """
    known = {
        (stage.name, i.topic): i
        for stage in (before.stages if before is not None else ())
        for i in stage.inputs
    }
    topic_of = {i.name: i.kafka.topic for i in manifest.inputs}
    topic_of |= {k.name: k.kafka.topic for s in manifest.stages for k in s.sinks if k.kafka}
    read = {topic_of[name] for stage in manifest.stages for name in stage.inputs}
    begun = {stage.name: stage for stage in (before.stages if before is not None else ())}
    generation = before.generation + 1 if before is not None else 1

    def input_definition(stage: str, name: str) -> InputDefinition:
        topic = topic_of[name]
        state = topics[topic]
        bases, retired = _begun(known.get((stage, topic)), state)
        return InputDefinition(
            name=name,
            topic=topic,
            topic_id=state.topic_id,
            root=manifest.input(name) is not None,
            bases=bases,
            retired=retired,
        )

    def sink_definition(stage: Stage, sink: Sink) -> SinkDefinition:
        mine = begun[stage.name].sinks if stage.name in begun else ()
        same = [s for s in mine if (s.name, s.target) == (sink.name, sink.target)]
        ends = _ends([topics[topic_of[name]] for name in stage.inputs]) if mine else ()
        topic_id = topics[sink.kafka.topic].topic_id if sink.kafka else None
        return SinkDefinition(
            name=sink.name,
            kind=sink.kind,
            target=sink.target,
            topic_id=topic_id,
            terminal=sink.kafka is None or sink.kafka.topic not in read,
            since=same[0].since if same else generation,
            bases=same[0].bases if same else ends,
            retired=_retired(same[0], topic_id) if same else (),
            moved=_moved(same[0], topic_id, begun.values(), generation) if same else 0,
        )

    stages = tuple(
        StageDefinition(
            name=stage.name,
            since=begun[stage.name].since if stage.name in begun else generation,
            inputs=tuple(input_definition(stage.name, name) for name in stage.inputs),
            sinks=tuple(sink_definition(stage, sink) for sink in stage.sinks),
        )
        for stage in manifest.stages_in_order()
    )
    return _with_whole(stages, known, topics, generation)


def _with_whole(
    stages: tuple[StageDefinition, ...],
    known: Mapping[tuple[str, str], InputDefinition],
    topics: Mapping[str, TopicState],
    generation: int,
) -> tuple[StageDefinition, ...]:
    """Say of each root from where on every sink has part in it.

    Where a stage begins; once a sink came later, or behind others, what was written before it.
    """
    came_later = any(
        sink.since == generation and (sink.bases or not all(i.root for i in stage.inputs))
        for stage in stages
        for sink in stage.sinks
        if generation > 1
    )

    def whole(stage: str, source: InputDefinition) -> tuple[PartitionOffset, ...]:
        before = known.get((stage, source.topic))
        if not source.root:
            return ()
        if came_later:
            return _ends([topics[source.topic]])
        same = before is not None and before.topic_id == source.topic_id
        return before.whole if before is not None and same else source.bases

    return tuple(
        replace(s, inputs=tuple(replace(i, whole=whole(s.name, i)) for i in s.inputs))
        for s in stages
    )


def _retired(before: SinkDefinition, topic_id: str | None) -> tuple[str, ...]:
    was = before.topic_id
    return (*before.retired, was) if was is not None and was != topic_id else before.retired


def _moved(
    before: SinkDefinition, topic_id: str | None, stages: Iterable[StageDefinition], generation: int
) -> int:
    """With a topic that is created anew goes what nobody was told of.

    A stage that has read it since there was anything in it says itself what it has missed.
    """
    if topic_id == before.topic_id:
        return before.moved
    readers = [s for s in stages if any(i.topic_id == before.topic_id for i in s.inputs)]
    told = any(sink.since <= before.since for stage in readers for sink in stage.sinks)
    return before.moved if told else generation


def _ends(topics: Iterable[TopicState]) -> tuple[PartitionOffset, ...]:
    """All that was written when a sink came; what is written later must be in it."""
    return tuple(
        PartitionOffset(topic_id=topic.topic_id, partition=partition, offset=offset)
        for topic in topics
        for partition, offset in sorted(topic.ends.items())
    )


def _begun(
    before: InputDefinition | None, now: TopicState
) -> tuple[tuple[PartitionOffset, ...], tuple[str, ...]]:
    """Where the stage begins in a topic, and the ids that the topic had before."""
    if before is not None and before.topic_id == now.topic_id:
        return before.bases, before.retired
    bases = tuple(
        PartitionOffset(topic_id=now.topic_id, partition=partition, offset=offset)
        for partition, offset in sorted(now.starts.items())
    )
    return bases, (*before.retired, before.topic_id) if before is not None else ()


def refuse_recreated(before: PipelineRecord, ids: Mapping[str, str]) -> None:
    """`ids` are those of the topics that exist. Where to begin in a new one is a person's choice.

    A topic that no stage reads is only written: in it there is nothing to choose.
    """
    read = {i.topic: i.topic_id for stage in before.stages for i in stage.inputs}
    hint = f"choose where to begin: {_restart(before, 'earliest')}, or latest"
    problems = [
        Problem(message=f"topic_recreated: {_recreation(topic, was, ids.get(topic))}", hint=hint)
        for topic, was in sorted(read.items())
        if ids.get(topic) != was
    ]
    if problems:
        raise UserError(problems)


def _recreation(topic: str, was: str, now: str | None) -> str:
    found = "it is gone" if now is None else f"it has id {now}"
    return f"topic {topic} had id {was}, now {found}"


def _restart(record: PipelineRecord, start_from: str) -> str:
    return f"`waybill restart {record.name} --from {start_from}`"


def refuse_incompatible(before: PipelineRecord, after: tuple[StageDefinition, ...]) -> None:
    """A checkpoint belongs to its topics, a fence to its sink: what goes on stays what it was."""
    known = {stage.name: stage for stage in before.stages}
    for stage in after:
        old = known.get(stage.name)
        if old is None:
            continue
        was, now = _topics(old), _topics(stage)
        if was != now:
            changed = f"read {_named(was)}, now it would read {_named(now)}"
            raise _incompatible(stage.name, changed, "inputs", _hint(before, was, now))
        _refuse_turned_inputs(old, stage)
        _refuse_renamed_sinks(old, stage)
        _refuse_other_sinks(before, old, stage)


def _refuse_turned_inputs(old: StageDefinition, stage: StageDefinition) -> None:
    """How far a token's records have come is told in root inputs: those of a stage stay that."""
    roots = {source.topic_id for source in old.inputs if source.root}
    for source in stage.inputs:
        if source.root != (source.topic_id in roots):
            outside, inside = "an input of the pipeline", "what another stage writes"
            was, now = (inside, outside) if source.root else (outside, inside)
            changed = f"read {source.topic} as {was}, now it would read it as {now}"
            raise _incompatible(
                stage.name, changed, "inputs", f"give it a new name: {NEW_NAME_HINT}"
            )


def _refuse_renamed_sinks(old: StageDefinition, stage: StageDefinition) -> None:
    """Under a new name it would not know which batch the old one has written last."""
    kept = {sink.name for sink in stage.sinks}
    gone = {_target(sink): sink.name for sink in old.sinks if sink.name not in kept}
    for sink in stage.sinks:
        name = gone.get(_target(sink))
        if name is not None:
            changed = f"wrote {sink.target} as sink {name}, now as sink {sink.name}"
            hint = f"keep the name {name}"
            raise _incompatible(stage.name, changed, "sinks", hint)


def _refuse_other_sinks(
    before: PipelineRecord, old: StageDefinition, stage: StageDefinition
) -> None:
    """A sink may come beside those that tell where the stage stands; none may change its place."""
    targets = {sink.name: _target(sink) for sink in old.sinks}
    for sink in stage.sinks:
        if targets.get(sink.name, _target(sink)) != _target(sink):
            was, now = {targets[sink.name]}, {_target(sink)}
            changed = f"wrote {_named(was)}, now sink {sink.name} would write {_named(now)}"
            raise _incompatible(stage.name, changed, "sinks", _hint(before, was, now))
    if not targets.keys() & {sink.name for sink in stage.sinks}:
        hint = f"keep one of them beside the new ones for a while; {NEW_NAME_HINT}"
        raise _incompatible(stage.name, "would lose all of its sinks", "sinks", hint)


def _hint(before: PipelineRecord, was: set[tuple[str, str]], now: set[tuple[str, str]]) -> str:
    recreated = {name for name, _ in was} == {name for name, _ in now}
    if not recreated:
        return NEW_NAME_HINT
    goes_on = f"{_restart(before, 'earliest')} (or latest) goes on with it"
    return f"a topic was created anew under its old name: {goes_on}"


def _incompatible(stage: str, changed: str, path: str, hint: str) -> UserError:
    message = f"plan_incompatible: stage {stage} {changed}"
    return UserError([Problem(message=message, path=f"stages.{stage}.{path}", hint=hint)])


def _topics(stage: StageDefinition) -> set[tuple[str, str]]:
    return {(source.topic, source.topic_id) for source in stage.inputs}


def _target(sink: SinkDefinition) -> tuple[str, str]:
    return (sink.target, sink.topic_id or "")


def _named(places: set[tuple[str, str]]) -> str:
    """With topic ids, because a topic that was created anew has its old name."""
    return ", ".join(f"{name} ({place})" if place else name for name, place in sorted(places))
