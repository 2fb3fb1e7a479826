"""What every stage of a driver shares, and how a stage reads outside of its query."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.events import pipeline_key
from waybill_shared.contract.rewinds import StageRewind
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.process.clock import Clock
from waybill_spark.driver.letters import SparkLetters
from waybill_spark.driver.limits import batch_limits
from waybill_spark.driver.reading.topics import TopicSource
from waybill_spark.driver.sql.compile import CompiledStage
from waybill_spark.kafka.commit_emitter import CommitEmitter
from waybill_spark.kafka.replay_messages import ReplayMessages
from waybill_spark.tracking.commits import Identity
from waybill_spark.tracking.dead_letters.budget import Budget
from waybill_spark.tracking.loads import Loads
from waybill_spark.tracking.ports import DeadJournal


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The things that all stages of the driver share."""

    spark: SparkSession
    kafka: Kafka
    admin: KafkaAdmin
    emitter: CommitEmitter
    identity: Identity
    clock: Clock
    checkpoint_folder: Path
    batch_rows_max: int
    batch_bytes_max: int
    can_work: Callable[[], bool]
    """Returns True if executors can do work of ours that is not Spark's, such as writing."""
    topic_absent_s: float
    loads: Loads
    report_maintenance: Callable[[TableMaintenance], None]
    rewinds: tuple[StageRewind, ...]
    dead_letters: tuple[DeadLetterRequest, ...]
    replays_topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterRules:
    """The topics for the dead records of a stage, and how many may go there."""

    journal: DeadJournal
    budget: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class StageReplays:
    """The letters that stages of the pipeline are to replay, as one of them reads them."""

    messages: ReplayMessages
    letters: SparkLetters


def make_source(compiled: CompiledStage, around: Surroundings) -> TopicSource:
    """Return what reads the inputs of a stage again."""
    rows_max, bytes_max = around.batch_rows_max, around.batch_bytes_max
    limits = batch_limits(
        compiled, rows_max=rows_max, bytes_max=bytes_max, can_work=around.can_work
    )
    return TopicSource(
        around.admin,
        around.spark,
        around.kafka,
        compiled.rows,
        compiled.dead,
        sizes=compiled.sizes,
        limits=limits,
        absent_s=around.topic_absent_s,
        whole=compiled.whole,
    )


def make_replays(compiled: CompiledStage, around: Surroundings) -> StageReplays:
    """Return what reads the letters that stages of the pipeline are to replay."""
    key = pipeline_key(around.identity.tenant, around.identity.pipeline_uid)
    absent_s = around.topic_absent_s
    return StageReplays(
        messages=ReplayMessages(around.admin, around.replays_topic, key, absent_s),
        letters=SparkLetters(around.admin, around.spark, compiled, absent_s=absent_s),
    )
