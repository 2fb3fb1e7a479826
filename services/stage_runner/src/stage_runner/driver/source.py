"""The Kafka source of a stage: raw records with their positions, committed ones only."""

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from shared.kafka import TopicIdentity
from shared.vectors import Vector

EARLIEST: Final = -2  # Spark's word for it in a JSON of offsets
FETCH_WAIT_MS: Final = "5"  # Spark asks for offsets on the connection where its prefetch waits


def read_topics(
    spark: SparkSession,
    bootstrap: str,
    *,
    topics: Mapping[str, str],
    partitions: Mapping[str, TopicIdentity],
    starts: Vector,
    offsets_max: int,
) -> DataFrame:
    """One stream over `topics` (name → id); `starts` only counts while there is no checkpoint."""
    offsets = {
        topic: {
            str(partition): starts.get((topic_id, partition), EARLIEST)
            for partition in partitions[topic].partitions
        }
        for topic, topic_id in topics.items()
    }
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", ",".join(sorted(topics)))
        .option("startingOffsets", json.dumps(offsets))
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", str(offsets_max))
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.fetch.max.wait.ms", FETCH_WAIT_MS)
        .load()
        .select("topic", "partition", "offset", "value")
    )
