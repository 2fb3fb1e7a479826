"""Plans a pipeline: its definition from manifest and topics, and what may change in a running one.

Never does I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from shared.errors import UserError
from shared.events import (
    InputDefinition,
    PartitionOffset,
    PipelineRecord,
    Problem,
    SinkDefinition,
    StageDefinition,
)
from shared.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """A topic that the pipeline needs, and where its readers begin if they are new."""

    topic: str
    partitions: int
    starting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """A topic as it is, with the offsets at which a new reader begins."""

    topic_id: str
    starts: Mapping[int, int]


def topics_of(manifest: Manifest) -> tuple[TopicPlan, ...]:
    """The topics of all inputs and Kafka sinks; the manifest's checks have refused shared ones."""
    inputs = (
        TopicPlan(topic=i.kafka.topic, partitions=i.kafka.partitions, starting=i.starting_offsets)
        for i in manifest.inputs
    )
    sinks = (
        TopicPlan(topic=k.kafka.topic, partitions=k.kafka.partitions, starting="earliest")
        for stage in manifest.stages
        for k in stage.sinks
        if k.kafka is not None
    )
    return (*inputs, *sinks)


def define(
    manifest: Manifest, topics: Mapping[str, TopicState], before: PipelineRecord | None
) -> tuple[StageDefinition, ...]:
    """The stages with topic ids and bases. A stage that exists keeps the bases it began with."""
    known = {
        (stage.name, i.name, i.topic_id): i.bases
        for stage in (before.stages if before is not None else ())
        for i in stage.inputs
    }
    topic_of = {i.name: i.kafka.topic for i in manifest.inputs}
    topic_of |= {k.name: k.kafka.topic for s in manifest.stages for k in s.sinks if k.kafka}
    read = {topic_of[name] for stage in manifest.stages for name in stage.inputs}
    since = {
        (stage.name, sink.name, sink.target): sink.since
        for stage in (before.stages if before is not None else ())
        for sink in stage.sinks
    }
    generation = before.generation + 1 if before is not None else 1

    def input_definition(stage: str, name: str) -> InputDefinition:
        topic = topic_of[name]
        state = topics[topic]
        fresh = tuple(
            PartitionOffset(topic_id=state.topic_id, partition=partition, offset=offset)
            for partition, offset in sorted(state.starts.items())
        )
        bases = known.get((stage, name, state.topic_id), fresh)
        root = manifest.input(name) is not None
        return InputDefinition(
            name=name, topic=topic, topic_id=state.topic_id, root=root, bases=bases
        )

    return tuple(
        StageDefinition(
            name=stage.name,
            inputs=tuple(input_definition(stage.name, name) for name in stage.inputs),
            sinks=tuple(
                SinkDefinition(
                    name=sink.name,
                    kind=sink.kind,
                    target=sink.target,
                    topic_id=topics[sink.kafka.topic].topic_id if sink.kafka else None,
                    terminal=sink.kafka is None or sink.kafka.topic not in read,
                    since=since.get((stage.name, sink.name, sink.target), generation),
                )
                for sink in stage.sinks
            ),
        )
        for stage in manifest.stages_in_order()
    )


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
            raise _incompatible(stage.name, changed, "inputs")
        targets = {sink.name: _target(sink) for sink in old.sinks}
        for sink in stage.sinks:
            if sink.name not in targets:
                raise _incompatible(stage.name, f"would get a new sink {sink.name}", "sinks")
            if targets[sink.name] != _target(sink):
                was, now = {targets[sink.name]}, {_target(sink)}
                changed = f"wrote {_named(was)}, now it would write {_named(now)}"
                raise _incompatible(stage.name, changed, "sinks")


def _incompatible(stage: str, changed: str, path: str) -> UserError:
    hint = "a stage under a new name begins anew: it writes again what its inputs still hold"
    message = f"plan_incompatible: stage {stage} {changed}"
    return UserError([Problem(message=message, path=f"stages.{stage}.{path}", hint=hint)])


def _topics(stage: StageDefinition) -> set[tuple[str, str]]:
    return {(source.topic, source.topic_id) for source in stage.inputs}


def _target(sink: SinkDefinition) -> tuple[str, str]:
    return (sink.target, sink.topic_id or "")


def _named(places: set[tuple[str, str]]) -> str:
    """With topic ids, because a topic that was created anew has its old name."""
    return ", ".join(f"{name} ({place})" if place else name for name, place in sorted(places))
