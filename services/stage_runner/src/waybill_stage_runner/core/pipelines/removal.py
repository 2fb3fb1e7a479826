"""Finds what a change removes from a pipeline. Never does I/O, never reads the clock."""

from dataclasses import replace

from waybill_shared.contract.events import PipelineRecord, SinkDefinition, StageDefinition
from waybill_shared.contract.slots import key_of, stage_key


def sinks_to_remove(before: PipelineRecord, after: PipelineRecord) -> PipelineRecord | None:
    """Return `before` with only the sinks that `after` does not have; None if all of them stay.

    A stage or sink that was added again under its old name is a new one: its `since` differs. One
    that has another name now stays.
    """
    kept = {_life(stage, sink) for stage in after.stages for sink in stage.sinks}
    stages = tuple(
        replace(stage, sinks=sinks)
        for stage in before.stages
        if (sinks := tuple(sink for sink in stage.sinks if _life(stage, sink) not in kept))
    )
    return replace(before, stages=stages) if stages else None


def _life(stage: StageDefinition, sink: SinkDefinition) -> tuple[str, str]:
    return stage_key(stage), key_of(stage, sink)
