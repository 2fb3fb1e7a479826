"""What follows from the definition of a stage: its inputs, the sinks that were added later, its
rewinds, the dead letters that a person asks for, and the folder of its checkpoint.
"""

import hashlib
from collections.abc import Iterable

from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.manifest.model import Stage
from waybill_shared.contract.rewinds import StageRewind
from waybill_shared.contract.slots import stage_key
from waybill_spark.tracking.fencing import LaterSink, StageInput
from waybill_spark.tracking.rewinding import Replacing, Rewind


def stage_inputs(definition: StageDefinition) -> tuple[StageInput, ...]:
    return tuple(
        StageInput(
            name=i.name,
            topic=i.topic,
            topic_id=i.topic_id,
            bases={partition: base for (_, partition), base in i.bases.items()},
            retired=i.retired,
        )
        for i in definition.inputs
    )


def later_sinks(definition: StageDefinition) -> dict[str, LaterSink]:
    return {
        sink.name: LaterSink(since=sink.since, bases=sink.bases)
        for sink in definition.sinks
        if sink.bases
    }


def replacing_of(stage: Stage) -> dict[str, Replacing]:
    """Return how sinks replace rows, those that do. Where a sink writes a topic, whatever reads it
    may replace rows by their keys.
    """
    return {
        each.name: Replacing.BY_BATCH if each.settings.replaces else Replacing.BY_KEY
        for each in stage.sinks
        if each.settings.replaces or each.settings.merge_keys or each.settings.feeds
    }


def rewinds_of(stage: StageDefinition, rewinds: Iterable[StageRewind]) -> tuple[Rewind, ...]:
    """Return the rewinds of this life of the stage, the oldest first."""
    own = (each for each in rewinds if (each.stage, each.since) == (stage.name, stage.since))
    return tuple(
        Rewind(number=each.number, starts=each.starts, forward=each.forward)
        for each in sorted(own, key=lambda each: each.number)
    )


def requests_of(
    stage: StageDefinition, asked: Iterable[DeadLetterRequest], replays: str | None = None
) -> tuple[DeadLetterRequest, ...]:
    """Return the records among these that the stage reads, unless another one is meant. `replays`:
    the name of a topic that it reads, too.
    """
    read = {source.topic_id for source in stage.inputs}
    mine = (each for each in asked if each.topic_id in read or each.topic == replays)
    return tuple(each for each in mine if each.stage in (None, stage.name))


def checkpoint_path(stage: StageDefinition, inputs: tuple[StageInput, ...]) -> str:
    """Return the folder of a stage's checkpoint, below that of its pipeline.

    Spark stores only names and offsets, so topics with other ids, or another stage of that name,
    must have another folder.
    """
    ids = ",".join(sorted(source.topic_id for source in inputs))
    return f"{stage_key(stage)}/{hashlib.sha256(ids.encode()).hexdigest()[:12]}"
