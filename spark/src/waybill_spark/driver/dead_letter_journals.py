"""Opens the journals of a pipeline's stages, and makes the dead-letter topics that are absent."""

from collections.abc import Iterable, Mapping

from waybill_shared.contract.driver import RunSpec
from waybill_shared.contract.events import StageDefinition, pipeline_key
from waybill_shared.contract.manifest.dead_letter_settings import DeadLetterSettings
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.slots import stage_key
from waybill_spark.driver.sinks import fence_key
from waybill_spark.kafka.dead_letter_journal import JournalOf, KafkaDeadJournal
from waybill_spark.kafka.dead_letter_topics import make_absent, topics_for
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.tracking.dead_letters.budget import Budget
from waybill_spark.tracking.ports import JOURNAL


def make_topics(spec: RunSpec, manifest: Manifest, fences: Fences) -> None:
    make_absent(fences.admin, _topics(manifest, spec.stages), spec.replication)


def open_journal(
    spec: RunSpec, manifest: Manifest, fences: Fences, stage: StageDefinition
) -> KafkaDeadJournal:
    return KafkaDeadJournal(
        JournalOf(
            pipeline=spec.pipeline,
            stage=stage.name,
            since=stage.since,
            key=stage_key(stage) if stage.was else "",
            fence_key=fence_key(spec, fences, f"{stage_key(stage)}/{JOURNAL}"),
            facts_key=pipeline_key(spec.tenant, spec.pipeline_uid),
            topics=_topics(manifest, [stage]),
            topic_ids={source.topic: source.topic_id for source in stage.inputs},
        ),
        fences,
    )


def budget_of(settings: DeadLetterSettings) -> Budget:
    return Budget(settings.records, settings.window_ms)


def _topics(manifest: Manifest, stages: Iterable[StageDefinition]) -> Mapping[str, str]:
    return topics_for(manifest, (source.topic for stage in stages for source in stage.inputs))
