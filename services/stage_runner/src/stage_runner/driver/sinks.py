"""Builds the sinks of a stage from its manifest and definition."""

from collections.abc import Iterator, Mapping
from typing import assert_never

import pyarrow as pa

from shared.events import StageDefinition
from shared.kafka_admin import KafkaAdmin
from shared.manifest import Sink as SinkManifest
from shared.manifest import Stage
from stage_runner.adapters.lakehouse import open_catalog
from stage_runner.adapters.sinks.iceberg import IcebergSink
from stage_runner.adapters.sinks.kafka import KafkaSink, KafkaSinkTarget
from stage_runner.driver_protocol import DriverSpec
from waybill.spark.sinks import Sink


def open_sinks(
    spec: DriverSpec,
    admin: KafkaAdmin,
    stage: Stage,
    definition: StageDefinition,
    schemas: Mapping[str, pa.Schema],
) -> tuple[Sink, ...]:
    """By sink name, `schemas` says what is written; a sink without one can only be read."""
    return tuple(_sinks(spec, admin, stage, definition, schemas))


def _sinks(
    spec: DriverSpec,
    admin: KafkaAdmin,
    stage: Stage,
    definition: StageDefinition,
    schemas: Mapping[str, pa.Schema],
) -> Iterator[Sink]:
    topic_ids = {sink.name: sink.topic_id for sink in definition.sinks}
    for sink in stage.sinks:
        # One fence per (pipeline uid, stage, sink), whatever the lineage of the checkpoint.
        fence_key = f"{spec.tenant}/{spec.pipeline_uid}/{stage.name}/{sink.name}"
        match sink.kind:
            case "kafka":
                target = _target(spec, admin, sink, topic_ids[sink.name])
                yield KafkaSink(sink.name, target, fence_key=fence_key, admin=admin)
            case "iceberg":
                assert sink.iceberg is not None
                yield IcebergSink(
                    sink.name,
                    open_catalog(spec.lakehouse_folder),
                    sink.iceberg.table,
                    schema=schemas.get(sink.name),
                    fence_key=fence_key,
                )
            case _:
                assert_never(sink.kind)


def _target(
    spec: DriverSpec, admin: KafkaAdmin, sink: SinkManifest, topic_id: str | None
) -> KafkaSinkTarget:
    assert sink.kafka is not None and topic_id is not None
    return KafkaSinkTarget(
        kafka=admin.cluster,
        topic_prefix=spec.topic_prefix,
        topic=sink.kafka.topic,
        topic_id=topic_id,
    )
