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
                )
                for sink in stage.sinks
            ),
        )
        for stage in manifest.stages_in_order()
    )


def refuse_incompatible(before: PipelineRecord, after: tuple[StageDefinition, ...]) -> None:
    """A checkpoint belongs to its topics: a stage that goes on must read what it read before."""
    inputs_before = {s.name: {(i.topic, i.topic_id) for i in s.inputs} for s in before.stages}
    for stage in after:
        inputs = {(i.topic, i.topic_id) for i in stage.inputs}
        if inputs_before.get(stage.name, inputs) != inputs:
            was, now = _named(inputs_before[stage.name]), _named(inputs)
            message = f"plan_incompatible: stage {stage.name} read {was}, now it would read {now}"
            hint = "give the stage another name, or delete the pipeline and apply it anew"
            raise UserError(
                [Problem(message=message, path=f"stages.{stage.name}.inputs", hint=hint)]
            )


def _named(topics: set[tuple[str, str]]) -> str:
    """With ids, because a topic that was created anew has its old name."""
    return ", ".join(f"{topic} ({topic_id})" for topic, topic_id in sorted(topics))
