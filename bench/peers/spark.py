"""`python -m bench.peers.spark SPEC`: a PySpark program without Waybill, Kafka to Kafka.

`plain` is what guides show, every option at its default; `tuned` has every setting that Waybill
gives its drivers. Both write with Spark's own Kafka sink. It says when it runs, and ends with its
input.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from waybill_spark.driver.jvm.launch import JvmOptions, start_jvm
from waybill_spark.driver.jvm.session import spark_conf

HEAP: Final = "1g"
LOG4J: Final = Path(__file__).parents[2] / "examples" / "truth" / "log4j2.properties"
PLAIN: Final = {
    "spark.master": "local[2]",
    "spark.app.name": "orders",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSpec:
    profile: Literal["plain", "tuned"]
    kafka: str
    source: str
    target: str
    columns: str
    query: str
    folder: str
    java: str
    jars: str
    archives: str
    more: tuple[str, ...] = ()
    """Jars of Iceberg, if it writes there."""


def main() -> int:
    spec = SparkSpec(**json.loads(sys.argv[1]))
    with session(spec) as spark:
        query = start(spark, spec)
        print(json.dumps({"running": query.isActive}), flush=True)
        sys.stdin.read()
        query.stop()
    return 0


@contextmanager
def session(spec: SparkSpec) -> Iterator[SparkSession]:
    options = JvmOptions(
        java=Path(spec.java),
        jars=Path(spec.jars),
        archives=Path(spec.archives),
        heap=HEAP,
        log4j=LOG4J,
        scratch=Path(spec.folder),
        more=tuple(map(Path, spec.more)),
    )
    tuned = spark_conf("local[2]", "orders", warehouse=Path(spec.folder) / "warehouse")
    jvm = start_jvm(options, tuned if spec.profile == "tuned" else PLAIN)
    try:
        yield SparkSession.builder.getOrCreate()
    finally:
        jvm.stop()


def start(spark: SparkSession, spec: SparkSpec) -> StreamingQuery:
    return into_kafka(rows(spark, spec), spec).start()


def rows(spark: SparkSession, spec: SparkSpec, offsets_max: int | None = None) -> DataFrame:
    """Return the rows of the query over the stream. `offsets_max`: the most in a batch."""
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", spec.kafka)
        .option("subscribe", spec.source)
        .option("startingOffsets", "earliest")
    )
    if spec.profile == "tuned":
        reader = reader.option("kafka.fetch.max.wait.ms", "5")
    if offsets_max is not None:
        reader = reader.option("maxOffsetsPerTrigger", str(offsets_max))
    order = F.from_json(F.col("value").cast("string"), spec.columns).alias("order")
    reader.load().select(order).select("order.*").createOrReplaceTempView("orders")
    return spark.sql(spec.query)


def into_kafka(frame: DataFrame, spec: SparkSpec) -> DataStreamWriter:
    return (
        frame.select(F.to_json(F.struct("*")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", spec.kafka)
        .option("topic", spec.target)
        .option("checkpointLocation", f"{spec.folder}/checkpoint")
    )


def iceberg_catalog(lakehouse: Path) -> dict[str, str]:
    """Return the properties of a catalog `lakehouse`, as Waybill's local one is."""
    catalog = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{lakehouse / 'catalog.db'}",
        ".warehouse": f"file://{lakehouse / 'warehouse'}",
        ".jdbc.schema-version": "V1",
        ".cache-enabled": "false",
    }
    return {f"spark.sql.catalog.lakehouse{key}": value for key, value in catalog.items()}


if __name__ == "__main__":
    raise SystemExit(main())
