"""What a change takes away from a pipeline. Never does I/O, never reads the clock."""

from dataclasses import replace

from shared.events import PipelineRecord


def going(before: PipelineRecord, after: PipelineRecord) -> PipelineRecord | None:
    """`before` with only those sinks that `after` has no more; None if every one stays.

    A sink that came back under its name is another one: `since` tells it.
    """
    kept = {(stage.name, k.name, k.since) for stage in after.stages for k in stage.sinks}
    stages = tuple(
        replace(stage, sinks=sinks)
        for stage in before.stages
        if (sinks := tuple(k for k in stage.sinks if (stage.name, k.name, k.since) not in kept))
    )
    return replace(before, stages=stages) if stages else None
