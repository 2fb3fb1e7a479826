"""Builds the sinks of a stage from its manifest and definition."""

from collections.abc import Mapping

import pyarrow as pa

from waybill_shared.contract.driver import RunSpec
from waybill_shared.contract.events import SinkDefinition, StageDefinition
from waybill_shared.contract.slots import key_of
from waybill_spark.driver.sql.planned import PlannedStage
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.sinks.contract import Opening, WantedSink
from waybill_spark.sinks.opening import loader_of
from waybill_spark.tracking.sink import Sink, SinkLife


def open_sinks(
    spec: RunSpec,
    fences: Fences,
    planned: PlannedStage,
    schemas: Mapping[str, pa.Schema],
) -> tuple[Sink, ...]:
    """Open the sinks. `schemas` has the rows to be written, by sink name; a sink without a schema
    can only be read.
    """
    return tuple(
        loader_of(defined.kind).open(
            Opening(
                life=_life(spec, fences, planned.definition, defined),
                wanted=WantedSink(
                    sink=planned.sink(defined.name),
                    pipeline_uid=spec.pipeline_uid,
                    places=spec.places,
                    about=planned.about,
                ),
                topic_id=defined.topic_id,
                schema=schemas.get(defined.name),
                fences=fences,
                topic_absent_s=spec.topic_absent_s,
            )
        )
        for defined in planned.definition.sinks
    )


def fence_key(spec: RunSpec, fences: Fences, name: str) -> str:
    """Return the key of a fence, whatever the lineage of the checkpoint is.

    It includes the environment, because two environments may share a table.
    """
    environment = f"{fences.admin.cluster_id()}/{spec.topic_prefix}"
    return f"{environment}/{spec.tenant}/{spec.pipeline_uid}/{name}"


def _life(spec: RunSpec, fences: Fences, stage: StageDefinition, sink: SinkDefinition) -> SinkLife:
    key = key_of(stage, sink)
    return SinkLife(
        name=sink.name,
        since=sink.since,
        fence_key=fence_key(spec, fences, key),
        moved=sink.moved,
        key=key if stage.was or sink.was else "",
    )
