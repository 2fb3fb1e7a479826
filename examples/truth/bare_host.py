"""`python -m examples.truth.bare_host SPEC`: runs the ordinary program when it is told to.

Several times in one JVM, because a JVM takes seconds to start. Orders come as JSON lines on
standard input, answers go as JSON lines to standard output; it ends when its input does.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from examples.truth import bare
from waybill_local.jars import ICEBERG, jar_set
from waybill_spark.driver.jvm.launch import JvmOptions, start_jvm

CATALOG: Final = "local"
NAMESPACE: Final = "orders"
HEAP: Final = "1g"
# As Iceberg's quick start has it; all else is as Spark comes.
CONF: Final = {
    "spark.master": "local[2]",
    "spark.app.name": "orders",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
    f"spark.sql.catalog.{CATALOG}.type": "hadoop",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpec:
    """`folder` is where tables and checkpoints are; the rest is what the JVM needs."""

    kafka: str
    folder: str
    java: str
    jars: str
    archives: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Run the program on `topic` until it has taken all that is there; `hold` once it has appended.

    A run on the same topic goes on with the checkpoint and the table of the one before.
    """

    topic: str
    options: dict[str, str] = field(default_factory=dict)
    hold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`error` is what the program died of; `held`: it has appended, and waits to be killed."""

    error: str | None = None
    held: bool = False


def table_folder(folder: str, topic: str) -> str:
    """Where the table is that the program fills from `topic`."""
    return f"{folder}/warehouse/{NAMESPACE}/{topic}"


def main() -> int:
    spec = HostSpec(**json.loads(sys.argv[1]))
    options = JvmOptions(
        java=Path(spec.java),
        jars=Path(spec.jars),
        archives=Path(spec.archives),
        scratch=Path(spec.folder),
        heap=HEAP,
        log4j=Path(__file__).with_name("log4j2.properties"),
        more=jar_set(ICEBERG).class_path,
    )
    warehouse = {f"spark.sql.catalog.{CATALOG}.warehouse": f"{spec.folder}/warehouse"}
    jvm = start_jvm(options, {**CONF, **warehouse})
    try:
        spark = SparkSession.builder.getOrCreate()
        for line in sys.stdin:
            _answer(_run(spark, spec, Order(**json.loads(line))))
    finally:
        jvm.stop()
    return 0


def _run(spark: SparkSession, spec: HostSpec, order: Order) -> Answer:
    table = f"{CATALOG}.{NAMESPACE}.{order.topic}"
    append = bare.append_to(table)
    job = bare.Job(
        kafka=spec.kafka,
        topic=order.topic,
        table=table,
        checkpoint=f"{spec.folder}/checkpoints/{order.topic}",
        options=order.options,
    )
    query = bare.start(spark, job, _then_hold(append) if order.hold else append)
    try:
        query.processAllAvailable()
    except StreamingQueryException as error:
        return Answer(error=str(error))
    finally:
        query.stop()
    return Answer()


def _then_hold(append: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
    def hold(batch: DataFrame, batch_id: int) -> None:
        append(batch, batch_id)
        _answer(Answer(held=True))
        sys.stdin.read()  # comes back only if whoever should kill us is gone
        os._exit(1)

    return hold


def _answer(answer: Answer) -> None:
    print(json.dumps(asdict(answer)), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
