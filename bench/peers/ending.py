"""`python -m bench.peers.ending SPEC`: a PySpark program that reads what there is.

For each line of its input it starts a query by `availableNow`, and writes a line when the query has
ended. Before the first one it says that its session is ready, as that of a spare driver is. Sinks
are Spark's own of Kafka, or Iceberg's own.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from bench.peers.spark import SparkSpec, iceberg_catalog, into_kafka, rows, session

TABLE: Final = "bench.theirs"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingSpec:
    spark: SparkSpec
    offsets_max: int
    lakehouse: str | None
    """Where the table is; None: it writes into the topic."""


def main() -> int:
    said: dict[str, Any] = json.loads(sys.argv[1])
    spec = EndingSpec(**{**said, "spark": SparkSpec(**said["spark"])})
    with session(spec.spark) as spark:
        if spec.lakehouse is not None:
            for key, value in iceberg_catalog(Path(spec.lakehouse)).items():
                spark.conf.set(key, value)
            spark.sql("CREATE NAMESPACE IF NOT EXISTS lakehouse.bench")
        print("ready", flush=True)
        for _ in sys.stdin:
            query = start(spark, spec)
            query.awaitTermination()
            print("ended", flush=True)
    return 0


def start(spark: SparkSession, spec: EndingSpec) -> StreamingQuery:
    frame = rows(spark, spec.spark, spec.offsets_max)
    if spec.lakehouse is None:
        return into_kafka(frame, spec.spark).trigger(availableNow=True).start()
    return (
        frame.writeStream.format("iceberg")
        .trigger(availableNow=True)
        .option("checkpointLocation", f"{spec.spark.folder}/checkpoint")
        .toTable(f"lakehouse.{TABLE}")
    )


if __name__ == "__main__":
    raise SystemExit(main())
