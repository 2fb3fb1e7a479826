"""Answers which stages and sinks of a pipeline read and write which topics. Pure.

A topic has one id, and earlier ones if it was created again. A stage reads what a sink writes if an
input of the stage, which is no root, has an id in common with the topic of that sink.

Whoever needs more than the present definition asks for it first: `with_removed` adds what the
pipeline had before, `at` leaves out what tokens of a generation do not know.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from waybill_shared.contract.events import InputDefinition, SinkDefinition, StageDefinition
from waybill_shared.contract.former_names import is_meant
from waybill_shared.contract.slots import Removal, key_of, stage_key


@dataclass(frozen=True, slots=True)
class StageSink:
    """One sink of one stage; `key` is its key in the slot."""

    stage: StageDefinition
    key: str
    sink: SinkDefinition

    def unread(self, source: InputDefinition) -> frozenset[str]:
        """Return the ids of the sink's topic that were deleted before `source` was first read."""
        return frozenset(self.sink.retired) - source.ids


class Topology:
    """Stages of a pipeline, each with its inputs and sinks. Answers are computed when needed."""

    def __init__(self, stages: Iterable[StageDefinition]) -> None:
        self.stages = tuple(stages)

    def with_removed(self, removals: Iterable[Removal]) -> "Topology":
        """Return the topology with what these removals took out of the pipeline."""
        newest_first = reversed([*removals])
        return Topology((*self.stages, *stages_of(newest_first)))

    def at(self, generation: int) -> "Topology":
        """Return the sinks that tokens of that generation know, with their stages."""
        if all(each.sink.since <= generation for each in self.sinks):
            return self
        return Topology(
            replace(stage, sinks=sinks)
            for stage in self.stages
            if (sinks := tuple(sink for sink in stage.sinks if sink.since <= generation))
        )

    @cached_property
    def sinks(self) -> tuple[StageSink, ...]:
        return tuple(
            StageSink(stage, key_of(stage, sink), sink)
            for stage in self.stages
            for sink in stage.sinks
        )

    @cached_property
    def by_key(self) -> dict[str, StageSink]:
        """The sinks by their keys. The newest definition that has a sink counts."""
        return {each.key: each for each in reversed(self.sinks)}

    @cached_property
    def by_stage(self) -> dict[str, StageDefinition]:
        """The stages by their keys. The newest definition that has a stage counts."""
        return {stage_key(stage): stage for stage in reversed(self.stages)}

    @cached_property
    def _inner(self) -> tuple[tuple[frozenset[str], StageSink], ...]:
        """The sinks that write to topics, each with the ids of its topic."""
        return tuple((each.sink.ids, each) for each in self.sinks if each.sink.topic_id is not None)

    def writers(self, source: InputDefinition) -> list[StageSink]:
        """Return the sinks that write to an input; none for a root."""
        return [] if source.root else self.into(source.ids)

    def into(self, ids: Set[str]) -> list[StageSink]:
        """Return the sinks that write, or wrote, to one of these topics."""
        return [each for mine, each in self._inner if not mine.isdisjoint(ids)]

    def readers(self, sink: SinkDefinition) -> list[StageDefinition]:
        """Return the stages that read what the sink writes."""
        ids = sink.ids
        return [
            stage
            for stage in self.stages
            if any(not i.root and not ids.isdisjoint(i.ids) for i in stage.inputs)
        ]

    def fed_by(self, stages: Iterable[StageDefinition]) -> list[StageDefinition]:
        """Return the stages that read what these write, directly or through others."""
        return _all_of([each for stage in stages for each in self._after(stage)], self._after)

    def leads_on(self, sink: SinkDefinition, generation: int) -> bool:
        """Return True if what the sink writes is read on the way to a sink for which tokens of that
        generation wait."""
        passed = _all_of(self.readers(sink), self._after)
        return any(each.awaited_since <= generation for stage in passed for each in stage.sinks)

    def roots(self, topic_id: str) -> Iterator[tuple[StageDefinition, InputDefinition]]:
        """Yield the inputs that are this root topic, each with its stage."""
        for stage in self.stages:
            for source in stage.inputs:
                if source.root and topic_id in source.ids:
                    yield stage, source

    def root_ids(self) -> frozenset[str]:
        """Return the ids of all root topics, those that they had before too."""
        inputs = (source for stage in self.stages for source in stage.inputs)
        return frozenset(topic_id for source in inputs if source.root for topic_id in source.ids)

    def descendants(self, topic_id: str) -> frozenset[str]:
        """Return the keys of the stages that the records of a root topic pass, on any path."""
        passed = _all_of([stage for stage, _ in self.roots(topic_id)], self._after)
        return frozenset(map(stage_key, passed))

    def beyond(self, keys: Container[str]) -> list[StageSink]:
        """Return these sinks, and all sinks of stages that get what they write, on any path."""
        mine = [each for each in self.sinks if each.key in keys]
        after = _all_of([s for each in mine for s in self.readers(each.sink)], self._after)
        passed = {id(stage) for stage in after}
        return [each for each in self.sinks if each.key in keys or id(each.stage) in passed]

    def awaited_after(self, keys: Container[str], generation: int) -> list[StageSink]:
        """Return those of `beyond` for which tokens of that generation may wait."""
        return [
            each
            for each in self.beyond(keys)
            if max(each.sink.since, each.sink.awaited_since) <= generation
        ]

    def _after(self, stage: StageDefinition) -> Iterable[StageDefinition]:
        return chain.from_iterable(map(self.readers, stage.sinks))

    def awaited(
        self, topic_id: str, generation: int, names: Container[str] = ()
    ) -> Iterator[StageSink]:
        """Yield the sinks on a path from the topic for which tokens of that generation may wait.
        `names`, maybe former ones, select some; without names, all are meant.
        """
        passed = self.descendants(topic_id)
        for each in self.sinks:
            waits = max(each.sink.since, each.sink.awaited_since) <= generation
            if (
                waits
                and stage_key(each.stage) in passed
                and (not names or is_meant(each.sink, names))
            ):
                yield each

    def towards(self, keys: Container[str]) -> list[StageDefinition]:
        """Return the stages on a path to one of these sinks."""

        def before(stage: StageDefinition) -> Iterable[StageDefinition]:
            return (each.stage for source in stage.inputs for each in self.writers(source))

        return _all_of([each.stage for each in self.sinks if each.key in keys], before)


def names_by_key(stages: Iterable[StageDefinition]) -> dict[str, str]:
    """Return the names of stages and sinks by their keys, of those that had another one."""
    topology = Topology(stages)
    of_stages = {stage_key(stage): stage.name for stage in topology.stages if stage.was}
    of_sinks = {each.key: each.sink.name for each in topology.sinks if each.sink.was}
    return of_stages | of_sinks


def inputs_by_id(stage: StageDefinition) -> dict[str, InputDefinition]:
    """Return the inputs of a stage by the ids of their topics, the earlier ones too."""
    return {topic_id: source for source in stage.inputs for topic_id in source.ids}


def sinks_in(stages: Iterable[StageDefinition]) -> list[SinkDefinition]:
    return [sink for stage in stages for sink in stage.sinks]


def removals_since(removals: Iterable[Removal], generation: int) -> list[Removal]:
    """Return the removals after that generation. What was removed earlier never concerned a token
    of that generation.
    """
    return [removal for removal in removals if removal.generation > generation]


def stages_of(removals: Iterable[Removal]) -> list[StageDefinition]:
    """Return the stages of these removals, with those of their sinks that were removed."""
    return [stage for removal in removals for stage in removal.stages]


def _all_of(
    stages: list[StageDefinition], step: Callable[[StageDefinition], Iterable[StageDefinition]]
) -> list[StageDefinition]:
    """Return these stages and all that steps from them lead to. A stage may be there twice: with
    the sinks that it has, and with those that it had.
    """
    found: dict[int, StageDefinition] = {}
    while stages:
        found |= {id(stage): stage for stage in stages}
        stages = [each for stage in stages for each in step(stage) if id(each) not in found]
    return [*found.values()]
