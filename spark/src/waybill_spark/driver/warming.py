"""Goes through what every run does, so that its classes are loaded and some of it is compiled."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.manifest.reading import parse_manifest
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.cluster import Kafka
from waybill_spark.driver.compile import compile_pipeline
from waybill_spark.driver.source import read_topics
from waybill_spark.guard.allowed import allowed

logger = logging.getLogger(__name__)

MANIFEST: Final = """
version: 1
name: rehearsal
inputs:
  - name: said
    kafka: {topic: said}
    schema: "number BIGINT, word STRING, amount DECIMAL(10,2), at TIMESTAMP"
stages:
  - name: only
    inputs: [said]
    steps:
      - {name: some, sql: "SELECT *, amount * 2 AS twice FROM said WHERE number > 0"}
      - {name: spoken, sql: "SELECT number, upper(word) AS word, twice, at FROM some"}
    sinks:
      - {name: heard, kafka: {topic: heard, key: number}}
"""
RECORD: Final = '{"number": 1, "word": "one", "amount": 1.5, "at": "2026-01-01T00:00:00Z"}'

BACK: Final = 2  # from the end: a record, and the marker of its transaction


def warming(
    spark: SparkSession, kafka: Kafka, topic: str, scratch: Path
) -> Iterator[Callable[[], None]]:
    """Steps of a few seconds each. `topic`: any that may be read; its records are thrown away."""
    yield lambda: take_batches(spark, scratch / "batches")
    yield lambda: _read_kafka(spark, kafka, topic, scratch / "read")


def _read_kafka(spark: SparkSession, kafka: Kafka, topic: str, checkpoint: Path) -> None:
    try:
        _read(spark, kafka, topic, checkpoint)
    except Retryable as error:
        logger.warning("Kafka cannot be read yet", extra={"reason": str(error)})


def take_batches(spark: SparkSession, checkpoint: Path) -> None:
    (stage,) = compile_pipeline(spark, parse_manifest(MANIFEST), allowed())
    numbers = (
        spark.newSession().readStream.format("rate-micro-batch").option("rowsPerBatch", "1").load()
    )
    records = numbers.select(
        F.lit("said").alias("topic"),
        F.lit(0).alias("partition"),
        F.col("value").alias("offset"),
        F.lit(RECORD).cast("binary").alias("value"),
    )
    _run(records, stage.rows, checkpoint)


def _read(spark: SparkSession, kafka: Kafka, topic: str, checkpoint: Path) -> None:
    """What stands at the end of the topic, if anything does."""
    admin = make_admin(kafka)
    found = admin.identify([topic])
    partitions = found[topic].partitions if topic in found else ()
    starts, ends = admin.starts(topic, partitions), admin.stable_ends(topic, partitions)
    filled = [partition for partition in partitions if starts[partition] < ends[partition]]
    if not filled:
        return
    few = {p: max(starts[p], ends[p] - BACK) if p == filled[0] else ends[p] for p in partitions}
    stream = read_topics(
        spark.newSession(),
        kafka,
        topics={topic: found[topic].topic_id},
        partitions=found,
        starts={(found[topic].topic_id, partition): start for partition, start in few.items()},
        offsets_max=BACK,
    )
    _run(stream, lambda frame: frame.toArrow(), checkpoint)


def _run(stream: DataFrame, take: Callable[[DataFrame], object], checkpoint: Path) -> None:
    def process(frame: DataFrame, batch_id: int) -> None:
        take(frame)

    query = (
        stream.writeStream.foreachBatch(process)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
