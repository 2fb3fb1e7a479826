"""The Kafka source of a stage: raw records with their positions, committed ones only."""

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from waybill_shared.contract.events import Range
from waybill_shared.contract.vectors import Vector
from waybill_shared.kafka.admin_answers import TopicIdentity
from waybill_shared.kafka.cluster import Kafka, cluster_of
from waybill_spark.tracking.dead_letters.records import Without

EARLIEST: Final = -2  # Spark's word for it in a JSON of offsets
COLUMNS: Final = ("topic", "partition", "offset", "value")
MORE_COLUMNS: Final = ("key", "headers", "timestamp")
"""Only where they are asked for: Kafka's records become larger by them."""
# Spark's own two minutes delay a batch with records that never arrive: those of a deleted topic.
POLL_TIMEOUT_MS: Final = "30000"
TASK_RECORDS: Final = "maxRecordsPerPartition"  # of Spark's, not of Kafka's
FETCH_WAIT_MS: Final = "5"  # Spark asks for offsets on the connection where its prefetch waits


def read_topics(
    spark: SparkSession,
    kafka: Kafka,
    *,
    topics: Mapping[str, str],
    partitions: Mapping[str, TopicIdentity],
    starts: Vector,
    offsets_max: int | None,
    whole: bool = False,
) -> DataFrame:
    """Read one stream over `topics` (name → id).

    `starts` counts only while there is no checkpoint. `offsets_max`: the most in a batch; None: a
    batch has all that there is.
    """
    offsets = {
        topic: {
            str(partition): starts.get((topic_id, partition), EARLIEST)
            for partition in partitions[topic].partitions
        }
        for topic, topic_id in topics.items()
    }
    return (
        spark.readStream.format("kafka")
        .options(**_options(kafka))
        .option("subscribe", ",".join(sorted(topics)))
        .option("startingOffsets", json.dumps(offsets))
        .options(**({} if offsets_max is None else {"maxOffsetsPerTrigger": str(offsets_max)}))
        .option("includeHeaders", str(whole).lower())
        .load()
        .select(*columns(whole))
    )


def read_ranges(
    spark: SparkSession,
    kafka: Kafka,
    ranges: tuple[Range, ...],
    *,
    whole: bool = False,
    in_a_task: int | None = None,
) -> DataFrame:
    """Read exactly these records, once.

    `in_a_task`: the most that one task reads of a partition.
    """
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for run in ranges:
        starts.setdefault(run.topic, {})[str(run.partition)] = run.start
        ends.setdefault(run.topic, {})[str(run.partition)] = run.end
    assigned = {topic: sorted(map(int, partitions)) for topic, partitions in starts.items()}
    return (
        spark.read.format("kafka")
        .options(**_options(kafka))
        .options(**({} if in_a_task is None else {TASK_RECORDS: str(in_a_task)}))
        .option("assign", json.dumps(assigned))
        .option("startingOffsets", json.dumps(starts))
        .option("endingOffsets", json.dumps(ends))
        .option("includeHeaders", str(whole).lower())
        .load()
        .select(*columns(whole))
    )


def columns(whole: bool) -> tuple[str, ...]:
    return (*COLUMNS, *MORE_COLUMNS) if whole else COLUMNS


def leave_out(raw: DataFrame, without: Without) -> DataFrame:
    """Leave these records out.

    Offsets are one literal for each partition: ten thousand of them as expressions would take Spark
    longer than the batch.
    """
    for (topic, partition), offsets in sorted(without.items()):
        listed = F.from_json(F.lit(json.dumps(sorted(offsets))), "array<bigint>")
        here = (F.col("topic") == topic) & (F.col("partition") == partition)
        raw = raw.where(~(here & F.array_contains(listed, F.col("offset"))))
    return raw


def _options(kafka: Kafka) -> dict[str, str]:
    cluster = cluster_of(kafka).java_options()
    return {
        **{f"kafka.{name}": value for name, value in cluster.items()},
        "kafka.allow.auto.create.topics": "false",  # one that was deleted stays so
        "kafka.isolation.level": "read_committed",
        "kafka.fetch.max.wait.ms": FETCH_WAIT_MS,
        "kafkaConsumer.pollTimeoutMs": POLL_TIMEOUT_MS,
        "failOnDataLoss": "true",
    }
