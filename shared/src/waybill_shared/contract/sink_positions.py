"""Decides how far a sink is in the topics that its stage reads. Pure.

The position is never better than the truth: a sink that has not reported is where its stage
started.
"""

from waybill_shared.contract.events import SinkDefinition, StageDefinition
from waybill_shared.contract.slots import SinkState, Slot, key_of
from waybill_shared.contract.vectors import TopicPartition, Vector, behind, join


def state_of(slot: Slot, stage: StageDefinition, sink: SinkDefinition) -> SinkState:
    """Return what the slot has of the sink; an empty state before its first report."""
    return slot.sinks.get(key_of(stage, sink), SinkState())


def frontier_of(slot: Slot, stage: StageDefinition, sink: SinkDefinition) -> Vector:
    """Return the offsets below which the sink has every record, or the record was set aside."""
    begun = join(stage.bases, sink.bases)
    return join(begun, state_of(slot, stage, sink).frontier)


def position_of(slot: Slot, stage: StageDefinition, sink: SinkDefinition) -> Vector:
    """Return the offsets where the next batch of the sink begins. It is at the frontier, or before
    it where the stage was rewound."""
    frontier = frontier_of(slot, stage, sink)
    return {**frontier, **behind(state_of(slot, stage, sink).rewound, frontier)}


def offset_in(position: Vector, partition: TopicPartition) -> int:
    """Return the offset in one partition. A partition that was added later is read from its
    start."""
    return position.get(partition, 0)
