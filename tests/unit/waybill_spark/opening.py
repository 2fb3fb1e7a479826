"""The sinks of a stage, opened as a driver opens them."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from builders import make_record
from waybill_shared.contract.driver import RunSpec, SinkPlaces
from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_spark.driver.sinks import open_sinks
from waybill_spark.driver.sql.planned import join
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.tracking.sink import Sink
from waybill_stage_runner.core.pipelines.planning import TopicState

TOPICS = {"orders.in": TopicState(topic_id="R", starts={0: 0}, ends={0: 0})}


class FakeAdmin:
    """Knows which cluster it is, and nothing else."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster

    def cluster_id(self) -> str:
        return self._cluster


def sinks_of(
    manifest: Manifest, stage: StageDefinition, *, prefix: str = "waybill", cluster: str = "here"
) -> Sequence[Sink]:
    record = make_record()
    spec = RunSpec.model_construct(
        tenant=record.tenant,
        pipeline_uid=record.pipeline_uid,
        topic_prefix=prefix,
        places=SinkPlaces(lakehouse_folder=Path()),
        topic_absent_s=0.0,
        replication=1,
    )
    fences = Fences(cast(KafkaAdmin, FakeAdmin(cluster)), prefix)
    (planned,) = join(manifest, [stage])
    return open_sinks(spec, fences, planned, schemas={})
