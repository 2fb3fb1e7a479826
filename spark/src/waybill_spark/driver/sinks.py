"""Builds the sinks of a stage from its manifest and definition."""

from collections.abc import Iterator, Mapping
from typing import assert_never

import pyarrow as pa

from waybill_shared.contract.driver import DriverSpec
from waybill_shared.contract.events import SinkDefinition, StageDefinition
from waybill_shared.contract.manifest.model import Sink as SinkManifest
from waybill_shared.contract.manifest.model import Stage
from waybill_shared.contract.slots import sink_key
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_spark.sinks.contract import Sink, SinkLife
from waybill_spark.sinks.iceberg.lakehouse import open_catalog
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.sinks.kafka.sink import KafkaSink, KafkaSinkTarget


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
    manifests = {sink.name: sink for sink in stage.sinks}
    environment = f"{admin.cluster_id()}/{spec.topic_prefix}"
    for defined in definition.sinks:
        sink, life = manifests[defined.name], _life(spec, environment, stage.name, defined)
        match sink.kind:
            case "kafka":
                target = _target(spec, admin, sink, defined.topic_id)
                yield KafkaSink(life, target, admin)
            case "iceberg":
                assert sink.iceberg is not None
                catalog, schema = open_catalog(spec.lakehouse_folder), schemas.get(sink.name)
                yield IcebergSink(life, catalog, sink.iceberg.table, schema=schema)
            case _:
                assert_never(sink.kind)


def _life(spec: DriverSpec, environment: str, stage: str, sink: SinkDefinition) -> SinkLife:
    """One fence whatever the lineage of the checkpoint; two environments may share a table."""
    place = f"{environment}/{spec.tenant}/{spec.pipeline_uid}"
    key = f"{place}/{sink_key(stage, sink.name, sink.since)}"
    return SinkLife(name=sink.name, since=sink.since, fence_key=key, moved=sink.moved)


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
