"""An ordinary Structured Streaming program: orders from a Kafka topic into an Iceberg table.

No straw man, but what guides show: `from_json` with a schema, `foreachBatch` with an append, every
option at its default. It knows nothing of faults; `bare_host` runs it, and kills it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

COLUMNS: Final = "order_id BIGINT, customer STRING, amount DECIMAL(10,2)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """`options` are for Spark's Kafka source, beyond the two that it cannot do without."""

    kafka: str
    topic: str
    table: str
    checkpoint: str
    options: Mapping[str, str]


def start(
    spark: SparkSession, job: Job, append: Callable[[DataFrame, int], None]
) -> StreamingQuery:
    """The query, running; `append` is called with each batch, as `append_to` makes it."""
    spark.sql(f"CREATE TABLE IF NOT EXISTS {job.table} ({COLUMNS}) USING iceberg")
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", job.kafka)
        .option("subscribe", job.topic)
        .option("startingOffsets", "earliest")
        .options(**job.options)
        .load()
    )
    order = F.from_json(F.col("value").cast("string"), COLUMNS).alias("order")
    return (
        raw.select(order)
        .select("order.*")
        .writeStream.foreachBatch(append)
        .option("checkpointLocation", job.checkpoint)
        .start()
    )


def append_to(table: str) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` is for: any writer, here into Iceberg.

    Spark calls it again for a batch that it has not noted as done, and says so in its guide. Its
    file sink and Iceberg's own streaming sink remember the batch; an append like this does not.
    """

    def append(batch: DataFrame, batch_id: int) -> None:
        batch.writeTo(table).append()

    return append
