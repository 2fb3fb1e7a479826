"""Goes through what every run does, so that its classes are loaded and some of it is compiled."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Final

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.cluster import Kafka
from waybill_spark.driver.reading.source import read_topics
from waybill_spark.driver.sql.compile import CompiledStage, compile_pipeline
from waybill_spark.guard.allowed import read_allowed

logger = logging.getLogger(__name__)

COLUMNS: Final = "number BIGINT, word STRING, amount DECIMAL(10,2), at TIMESTAMP"
STAGE: Final = {
    "name": "only",
    "inputs": ["said"],
    "steps": [
        {"name": "some", "sql": "SELECT *, amount * 2 AS twice FROM said WHERE number > 0"},
        {"name": "spoken", "sql": "SELECT number, upper(word) AS word, twice, at FROM some"},
    ],
    "sinks": [{"name": "written", "kafka": {"topic": "written", "key": "number"}}],
}
RECORD: Final = '{"number": 1, "word": "one", "amount": 1.5, "at": "2026-01-01T00:00:00Z"}'

BACK: Final = 2  # from the end: a record, and the marker of its transaction
READS: Final = 4  # Java compiles what has run a few times; a fifth gains nothing that one can see


def warm_up(
    spark: SparkSession, kafka: Kafka, topic: str, scratch: Path
) -> Iterator[Callable[[], None]]:
    """Yield steps of a few seconds each.

    `topic`: any that may be read; its records are not used.
    """
    yield lambda: take_batches(spark, scratch / "batches")
    for number in range(READS):
        yield partial(_read_kafka, spark, kafka, topic, scratch / f"read-{number}")


def take_batches(spark: SparkSession, checkpoint: Path) -> None:
    """Process batches on the path of a stage that has different views for its sinks."""
    numbers = (
        spark.newSession().readStream.format("rate-micro-batch").option("rowsPerBatch", "1").load()
    )
    records = numbers.select(
        F.lit("said").alias("topic"),
        F.lit(0).alias("partition"),
        F.col("value").alias("offset"),
        F.lit(RECORD).cast("binary").alias("value"),
    )
    stage = _stage(spark, "said")
    _run(records, lambda frame, _: stage.rows(frame), checkpoint)


def _read_kafka(spark: SparkSession, kafka: Kafka, topic: str, checkpoint: Path) -> None:
    try:
        _read(spark, kafka, topic, checkpoint)
    except Retryable as error:
        logger.warning("Kafka cannot be read yet", extra={"reason": str(error)})


def _read(spark: SparkSession, kafka: Kafka, topic: str, checkpoint: Path) -> None:
    """Read the last records of the topic, if there are any, on the path of most stages."""
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
    stage = _stage(spark, topic)
    planned = stage.plan(stream)
    assert planned is not None, "it has one view"
    _run(planned, stage.collect, checkpoint)


def _stage(spark: SparkSession, topic: str) -> CompiledStage:
    source = {"name": "said", "kafka": {"topic": topic}, "schema": COLUMNS}
    manifest = Manifest.model_validate(
        {"version": 1, "name": "rehearsal", "inputs": [source], "stages": [STAGE]}
    )
    (stage,) = compile_pipeline(spark, manifest, read_allowed())
    return stage


def _run(
    stream: DataFrame, take: Callable[[DataFrame, JavaObject], object], checkpoint: Path
) -> None:
    started: Future[StreamingQuery] = Future()

    def process(frame: DataFrame, batch_id: int) -> None:
        take(frame, started.result()._jsq.streamingQuery().lastExecution())

    query = (
        stream.writeStream.foreachBatch(process)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    started.set_result(query)
    query.awaitTermination()
