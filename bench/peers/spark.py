"""`python -m bench.peers.spark SPEC`: a PySpark program without Waybill, Kafka to Kafka.

`plain` is what guides show, every option at its default; `tuned` has every setting that Waybill
gives its drivers. Both write with Spark's own Kafka sink. It says when it runs, and ends with its
input.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

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


def main() -> int:
    spec = SparkSpec(**json.loads(sys.argv[1]))
    options = JvmOptions(
        java=Path(spec.java),
        jars=Path(spec.jars),
        archives=Path(spec.archives),
        heap=HEAP,
        log4j=LOG4J,
        scratch=Path(spec.folder),
    )
    tuned = spark_conf("local[2]", "orders", warehouse=Path(spec.folder) / "warehouse")
    jvm = start_jvm(options, tuned if spec.profile == "tuned" else PLAIN)
    try:
        query = start(SparkSession.builder.getOrCreate(), spec)
        print(json.dumps({"running": query.isActive}), flush=True)
        sys.stdin.read()
        query.stop()
    finally:
        jvm.stop()
    return 0


def start(spark: SparkSession, spec: SparkSpec) -> StreamingQuery:
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", spec.kafka)
        .option("subscribe", spec.source)
        .option("startingOffsets", "earliest")
    )
    if spec.profile == "tuned":
        reader = reader.option("kafka.fetch.max.wait.ms", "5")
    order = F.from_json(F.col("value").cast("string"), spec.columns).alias("order")
    reader.load().select(order).select("order.*").createOrReplaceTempView("orders")
    return (
        spark.sql(spec.query)
        .select(F.to_json(F.struct("*")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", spec.kafka)
        .option("topic", spec.target)
        .option("checkpointLocation", f"{spec.folder}/checkpoint")
        .start()
    )


if __name__ == "__main__":
    raise SystemExit(main())
