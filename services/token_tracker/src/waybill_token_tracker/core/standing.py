"""Decides how far each stage has come in the topics that it reads, as people outside count it.

Never better than it is: a sink that has not reported stands where its stage began.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from waybill_shared.contract.events import (
    Definition,
    SinkDefinition,
    StageDefinition,
    to_vector,
)
from waybill_shared.contract.slots import SinkState, Slot, sink_key
from waybill_shared.contract.vectors import ENDLESS, Vector, join


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkStanding:
    """Below `position` this sink holds everything, or it was set aside."""

    name: str
    position: Vector
    state: SinkState


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One stage of a living pipeline. `topics` are those that it reads: id by name."""

    pipeline: str
    stage: str
    topics: Mapping[str, str]
    sinks: tuple[SinkStanding, ...]

    def offset(self, topic_id: str, partition: int) -> int | None:
        """Where the slowest sink is; None where nothing will come any more."""
        lowest = min(_offset(sink.position, topic_id, partition) for sink in self.sinks)
        return None if lowest == ENDLESS else lowest


def standings(slots: Iterable[Slot]) -> list[Standing]:
    return [
        Standing(
            pipeline=definition.name,
            stage=stage.name,
            topics={source.topic: source.topic_id for source in stage.inputs},
            sinks=tuple(_standing(slot, stage, sink) for sink in stage.sinks),
        )
        for slot in slots
        for definition in [slot.definition]
        if definition is not None and not definition.deleted
        for stage in definition.stages
    ]


def departed(slots: Iterable[Slot]) -> set[tuple[str, str]]:
    """Pipeline and stage of those that were deleted; one of that name may live again."""
    return {
        (definition.name, stage.name)
        for slot in slots
        for definition in [slot.definition]
        if definition is not None
        for stage in _former_stages(slot, definition)
    }


def behind(position: Vector, topic_id: str, ends: Mapping[int, int]) -> int:
    """Offsets of a topic that are still to come here, transaction markers among them."""
    return sum(max(0, end - _offset(position, topic_id, at)) for at, end in ends.items())


def _former_stages(slot: Slot, definition: Definition) -> list[StageDefinition]:
    removed = [stage for removal in slot.removals for stage in removal.stages]
    return [*removed, *definition.stages] if definition.deleted else removed


def _standing(slot: Slot, stage: StageDefinition, sink: SinkDefinition) -> SinkStanding:
    state = slot.sinks.get(sink_key(stage.name, sink.name, sink.since), SinkState())
    begun = join(
        to_vector(at for source in stage.inputs for at in source.bases), to_vector(sink.bases)
    )
    position = join(begun, to_vector(state.frontier))
    return SinkStanding(name=sink.name, position=position, state=state)


def _offset(position: Vector, topic_id: str, partition: int) -> int:
    """A partition that was added later is read from its beginning."""
    return position.get((topic_id, partition), 0)
