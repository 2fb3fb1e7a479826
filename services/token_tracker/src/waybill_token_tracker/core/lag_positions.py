"""Decides how far each stage is in the topics that it reads, as lag is measured outside of
Waybill."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from waybill_shared.contract.events import SinkDefinition, StageDefinition
from waybill_shared.contract.former_names import names_of
from waybill_shared.contract.sink_positions import offset_in, position_of, state_of
from waybill_shared.contract.slots import SinkState, Slot
from waybill_shared.contract.topology import stages_of
from waybill_shared.contract.vectors import ENDLESS, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkLag:
    """The position of one sink. Below it the sink has every record, or the record was set aside."""

    name: str
    position: Vector
    state: SinkState


@dataclass(frozen=True, slots=True, kw_only=True)
class LagPosition:
    """The position of one stage of a pipeline that exists. `topics` are those that it reads: id by
    name."""

    pipeline: str
    stage: str
    topics: Mapping[str, str]
    sinks: tuple[SinkLag, ...]

    def offset(self, topic_id: str, partition: int) -> int | None:
        """Return the offset of the slowest sink; None if no record can follow any more."""
        lowest = min(offset_in(sink.position, (topic_id, partition)) for sink in self.sinks)
        return None if lowest == ENDLESS else lowest


def positions(slots: Iterable[Slot]) -> list[LagPosition]:
    """Return the position of each stage of each pipeline that is not deleted."""
    return [
        LagPosition(
            pipeline=definition.name,
            stage=stage.name,
            topics={source.topic: source.topic_id for source in stage.inputs},
            sinks=tuple(_sink_lag(slot, stage, sink) for sink in stage.sinks),
        )
        for slot in slots
        for definition in [slot.definition]
        if definition is not None and not definition.deleted
        for stage in definition.stages
    ]


def deleted_stages(slots: Iterable[Slot]) -> set[tuple[str, str]]:
    """Return pipeline and stage of those that were deleted, and former names of others, of the
    pipeline or of its stages. One with the same name may exist again."""
    known = (slot for slot in slots if slot.definition is not None)
    return {each for slot in known for each in _former_names(slot)}


def count_unread(position: Vector, topic_id: str, ends: Mapping[int, int]) -> int:
    """Return how many offsets of a topic are still to be read, transaction markers included."""
    return sum(max(0, end - offset_in(position, (topic_id, at))) for at, end in ends.items())


def _former_names(slot: Slot) -> Iterator[tuple[str, str]]:
    """Yield pipeline and stage, by each name that either had, if it has no such stage now."""
    definition = slot.definition
    assert definition is not None
    present = () if definition.deleted else tuple(stage.name for stage in definition.stages)
    for stage in (*stages_of(slot.removals), *definition.stages):
        for pipeline, name in product(names_of(definition), names_of(stage)):
            if pipeline != definition.name or name not in present:
                yield pipeline, name


def _sink_lag(slot: Slot, stage: StageDefinition, sink: SinkDefinition) -> SinkLag:
    position, state = position_of(slot, stage, sink), state_of(slot, stage, sink)
    return SinkLag(name=sink.name, position=position, state=state)
