"""Builds the sinks of a stage from its manifest and definition."""

from typing import assert_never

from shared.events import StageDefinition
from shared.kafka import KafkaAdmin
from shared.manifest import Sink as SinkManifest
from stage_runner.adapters.lakehouse import open_catalog
from stage_runner.adapters.sinks.iceberg import IcebergSink
from stage_runner.adapters.sinks.kafka import KafkaSink, KafkaSinkTarget
from stage_runner.driver.compile import CompiledStage
from stage_runner.driver_protocol import DriverSpec
from waybill.spark.sinks import Sink


def open_sinks(
    spec: DriverSpec, compiled: CompiledStage, definition: StageDefinition, admin: KafkaAdmin
) -> tuple[Sink, ...]:
    topic_ids = {sink.name: sink.topic_id for sink in definition.sinks}
    return tuple(
        _open_sink(spec, compiled, sink, topic_ids[sink.name], admin)
        for sink in compiled.stage.sinks
    )


def _open_sink(
    spec: DriverSpec,
    compiled: CompiledStage,
    sink: SinkManifest,
    topic_id: str | None,
    admin: KafkaAdmin,
) -> Sink:
    # One fence per (pipeline uid, stage, sink), whatever the lineage of the checkpoint.
    fence_key = f"{spec.tenant}/{spec.pipeline_uid}/{compiled.stage.name}/{sink.name}"
    match sink.kind:
        case "kafka":
            assert sink.kafka is not None and topic_id is not None
            target = KafkaSinkTarget(
                bootstrap=spec.kafka,
                topic_prefix=spec.topic_prefix,
                topic=sink.kafka.topic,
                topic_id=topic_id,
            )
            return KafkaSink(sink.name, target, fence_key=fence_key, admin=admin)
        case "iceberg":
            assert sink.iceberg is not None
            return IcebergSink(
                sink.name,
                open_catalog(spec.lakehouse_folder),
                sink.iceberg.table,
                schema=compiled.schemas[sink.name],
                fence_key=fence_key,
            )
        case _:
            assert_never(sink.kind)
