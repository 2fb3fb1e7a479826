"""Plans a pipeline: makes its definition from the manifest and the state of its topics.

Never does I/O.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from waybill_shared.contract.beginnings import read_time
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import (
    NEVER,
    InputDefinition,
    PipelineRecord,
    SinkDefinition,
    StageDefinition,
)
from waybill_shared.contract.former_names import Named, names_after
from waybill_shared.contract.manifest.model import Manifest, Sink, Stage
from waybill_shared.contract.moments import format_moment
from waybill_shared.contract.vectors import Vector
from waybill_stage_runner.core.pipelines.renaming import Continued, find_continued

NOT_CREATED: Final = "not created yet"  # in place of an id; a reader of a refusal sees it


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """A topic that the pipeline needs, and where new readers of it start: if `starting` is not
    `latest`, at its first record, or later where it names a time (`start_at`).

    `dead_letters` is the topic for records of this one that a stage cannot process. The driver
    creates it.
    """

    topic: str
    partitions: int
    starting: str
    written: bool = False
    dead_letters: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """A topic as it is now: the offsets where a new reader starts, and its ends."""

    topic_id: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]


def begin_times(manifest: Manifest, now: int) -> dict[str, int]:
    """Return the time at which new readers of each topic start, where the manifest names one."""
    times = {i.kafka.topic: read_time(i.starting_offsets).since(now) for i in manifest.inputs}
    return {topic: at for topic, at in times.items() if at is not None}


def future_begins(manifest: Manifest, now: int) -> Iterator[Problem]:
    """Yield each time that has not come yet: nobody knows its offsets."""
    times = begin_times(manifest, now)
    for number, source in enumerate(manifest.inputs):
        at = times.get(source.kafka.topic, now)
        if at > now:
            message = f"{format_moment(at)} is in the future"
            hint = f"now it is {format_moment(now)}; latest begins with what comes from now on"
            path = f"inputs.{number}.startingOffsets"
            yield Problem(message=message, path=path, hint=hint)


def start_at(state: TopicState, found: Mapping[int, int]) -> TopicState:
    """Return the topic with the offsets where readers start at a time: `found` are the first
    records that are not older. Partitions without one start at their end.
    """
    starts = {p: max(start, found.get(p, state.ends[p])) for p, start in state.starts.items()}
    return replace(state, starts=starts)


def topics_of(manifest: Manifest, start_from: str | None = None) -> tuple[TopicPlan, ...]:
    """Return the topics of all inputs and sinks. The checks of the manifest have refused shared
    ones.

    `start_from` overrides where the manifest starts to read inputs. What a stage writes is read
    from its start.
    """
    by_name = manifest.topics()
    read = {by_name[name] for stage in manifest.stages for name in stage.inputs}

    def dead_letters(topic: str) -> str | None:
        return manifest.dead_letter_topic(topic) if topic in read else None

    inputs = (
        TopicPlan(
            topic=i.kafka.topic,
            partitions=i.kafka.partitions,
            starting=start_from or i.starting_offsets,
            dead_letters=dead_letters(i.kafka.topic),
        )
        for i in manifest.inputs
    )
    sinks = (
        TopicPlan(
            topic=written.topic,
            partitions=written.partitions,
            starting="earliest",
            written=True,
            dead_letters=dead_letters(written.topic),
        )
        for stage in manifest.stages
        for sink in stage.sinks
        if (written := sink.settings.feeds) is not None
    )
    return (*inputs, *sinks)


def as_planned(plans: Iterable[TopicPlan], ids: Mapping[str, str]) -> dict[str, TopicState]:
    """Return the topic states that a refusal depends on. `ids` are those of the topics that
    exist.
    """
    return {
        plan.topic: TopicState(topic_id=ids.get(plan.topic, NOT_CREATED), starts={}, ends={})
        for plan in plans
    }


def define(
    manifest: Manifest, topics: Mapping[str, TopicState], before: PipelineRecord | None
) -> tuple[StageDefinition, ...]:
    """Return the stages with topic ids and bases. A stage that exists keeps its first bases.

    A topic that was created again is read from a new start. The stage keeps the ids that it had
    before, in `retired`.
    """
    earlier = find_continued(manifest, before)
    return _Definitions(manifest, topics, before, earlier).stages()


def define_as_new(
    manifest: Manifest, topics: Mapping[str, TopicState]
) -> tuple[StageDefinition, ...]:
    """Return the stages as those of a new pipeline, whatever the manifest says of former names."""
    return _Definitions(manifest, topics, None, Continued(stages={}, sinks={})).stages()


class _Definitions:
    """The parts that definitions of stages are made of."""

    def __init__(
        self,
        manifest: Manifest,
        topics: Mapping[str, TopicState],
        before: PipelineRecord | None,
        earlier: Continued,
    ) -> None:
        self._manifest = manifest
        self._topics = topics
        self._generation = before.generation + 1 if before is not None else 1
        self._earlier = earlier
        self._topic_of = manifest.topics()

    def stages(self) -> tuple[StageDefinition, ...]:
        earlier, generation = self._earlier.stages, self._generation
        stages = tuple(
            StageDefinition(
                name=stage.name,
                since=earlier[stage.name].since if stage.name in earlier else generation,
                inputs=tuple(self._input(stage, name) for name in stage.inputs),
                sinks=tuple(self._sink(stage, sink) for sink in stage.sinks),
                was=_names_before(earlier.get(stage.name), stage.name),
            )
            for stage in self._manifest.stages_in_order()
        )
        known = {(name, i.topic): i for name, stage in earlier.items() for i in stage.inputs}
        return _with_whole(stages, known, self._topics, generation)

    def _input(self, stage: Stage, name: str) -> InputDefinition:
        topic = self._topic_of[name]
        state, earlier = self._topics[topic], self._earlier.stages.get(stage.name)
        inputs = earlier.inputs if earlier is not None else ()
        bases, retired = _begin(next((i for i in inputs if i.topic == topic), None), state)
        return InputDefinition(
            name=name,
            topic=topic,
            topic_id=state.topic_id,
            root=self._manifest.input(name) is not None,
            bases=bases,
            retired=retired,
        )

    def _sink(self, stage: Stage, sink: Sink) -> SinkDefinition:
        earlier = self._earlier.sinks.get(sink.name)
        new = self._new_sink(stage, sink, joins=stage.name in self._earlier.stages)
        new = replace(new, was=_names_before(earlier, sink.name))
        same = earlier is not None and (earlier.kind, earlier.target) == (new.kind, new.target)
        kept = _continue_sink(earlier, new) if same and earlier is not None else new
        read = {self._topic_of[name] for each in self._manifest.stages for name in each.inputs}
        terminal = self._topic_of.get(sink.name) not in read and kept.awaited_since != NEVER
        return replace(kept, terminal=terminal)

    def _new_sink(self, stage: Stage, sink: Sink, *, joins: bool) -> SinkDefinition:
        """Return the definition of a new sink. `joins`: its stage has sinks already."""
        topic, settings = self._topic_of.get(sink.name), sink.settings
        awaited = self._generation if len(stage.sinks) == 1 else NEVER
        inputs = [self._topics[self._topic_of[name]] for name in stage.inputs]
        return SinkDefinition(
            name=sink.name,
            kind=sink.kind,
            target=settings.target,
            topic_id=None if topic is None else self._topics[topic].topic_id,
            terminal=False,
            since=self._generation,
            bases=_ends(inputs) if joins else {},
            awaited_since=0 if settings.awaited else awaited,
            guarantee=settings.promised,
        )


def _names_before(earlier: Named | None, name: str) -> tuple[str, ...]:
    return () if earlier is None else names_after(earlier, name)


def _with_whole(
    stages: tuple[StageDefinition, ...],
    known: Mapping[tuple[str, str], InputDefinition],
    topics: Mapping[str, TopicState],
    generation: int,
) -> tuple[StageDefinition, ...]:
    """Set `whole` of each root input: from these offsets on, every sink takes part.

    Normally these are the bases of the stage. If this change adds a sink to a stage that exists, or
    one that reads what other stages write, they are the ends of the topic now.
    """
    adds_sink = any(
        sink.since == generation and (sink.bases or not all(i.root for i in stage.inputs))
        for stage in stages
        for sink in stage.sinks
        if generation > 1
    )

    def whole(stage: str, source: InputDefinition) -> Vector:
        before = known.get((stage, source.topic))
        if not source.root:
            return {}
        if adds_sink:
            return _ends([topics[source.topic]])
        same = before is not None and before.topic_id == source.topic_id
        return before.whole if before is not None and same else source.bases

    return tuple(
        replace(s, inputs=tuple(replace(i, whole=whole(s.name, i)) for i in s.inputs))
        for s in stages
    )


def _continue_sink(before: SinkDefinition, now: SinkDefinition) -> SinkDefinition:
    """Return the definition of a sink that existed before, maybe with another topic of that name.

    If tokens once waited for the sink, later tokens wait for it too.
    """
    retired = () if before.topic_id in (None, now.topic_id) else (before.topic_id,)
    return replace(
        now,
        since=before.since,
        bases=before.bases,
        retired=(*before.retired, *retired),
        moved=now.since if retired else before.moved,
        awaited_since=min(before.awaited_since, now.awaited_since),
    )


def _ends(topics: Iterable[TopicState]) -> Vector:
    """Return the ends of `topics` when a sink was added. What is written later must be in
    the sink.
    """
    return {
        (topic.topic_id, partition): offset
        for topic in topics
        for partition, offset in topic.ends.items()
    }


def _begin(before: InputDefinition | None, now: TopicState) -> tuple[Vector, tuple[str, ...]]:
    """Return the offsets where the stage starts in a topic, and the earlier ids of that topic."""
    if before is not None and before.topic_id == now.topic_id:
        return before.bases, before.retired
    bases = {(now.topic_id, partition): offset for partition, offset in now.starts.items()}
    return bases, (*before.retired, before.topic_id) if before is not None else ()
