"""R31 to R33: a batch that executors write, compared with what Spark, or a driver, does."""

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
import pyarrow as pa
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from psycopg import sql
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.contest import Contest, Turn, Turns
from bench.peers.spark import iceberg_catalog
from bench.sinks import INSERT, TABLE, Bare, database, fences_of_one, sink_in
from bench.surroundings import Surroundings
from waybill_local import jars
from waybill_shared.contract.events import Range
from waybill_shared.contract.manifest.iceberg import IcebergSinkSettings
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.topics import create_missing
from waybill_spark import driver
from waybill_spark.driver.jvm.launch import JvmOptions, start_jvm
from waybill_spark.driver.jvm.session import open_session, spark_conf
from waybill_spark.driver.reading.executor_rows import ExecutorRows
from waybill_spark.driver.reading.source import read_ranges
from waybill_spark.driver.sql.compile import CompiledStage, compile_pipeline
from waybill_spark.guard.allowed import read_allowed
from waybill_spark.sinks.iceberg.catalogs import open_local
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.sinks.iceberg.tables import IcebergTarget
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.distributed_rows import DistributedRows
from waybill_spark.tracking.sink import SinkLife

RECORDS: Final = 500_000
PARTITIONS: Final = 2
COLUMNS: Final = "order_id BIGINT, customer STRING, amount DECIMAL(10,2)"
SCHEMA: Final = pa.schema(
    [("order_id", pa.int64()), ("customer", pa.string()), ("amount", pa.decimal128(10, 2))]
)
FLUSH_S: Final = 120.0
MANIFEST: Final = """
version: 1
name: big
inputs: [{{name: orders, kafka: {{topic: {topic}}}, schema: "{columns}"}}]
stages: [{{name: load, inputs: [orders], sinks: [{{name: ours, iceberg: {{table: bench.ours}}}}]}}]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Records that wait in Kafka, and a stage that reads them."""

    spark: SparkSession
    kafka: str
    topic: str
    compiled: CompiledStage

    def raw(self) -> DataFrame:
        each = RECORDS // PARTITIONS
        ranges = tuple(
            Range(topic=self.topic, topic_id="T", partition=number, start=0, end=each)
            for number in range(PARTITIONS)
        )
        return read_ranges(self.spark, self.kafka, ranges)

    def parsed(self) -> DataFrame:
        """As everyone reads it."""
        order = F.from_json(F.col("value").cast("string"), COLUMNS).alias("order")
        return self.raw().select(order).select("order.*")

    @contextmanager
    def kept(self) -> Iterator[tuple[DistributedRows, DataFrame]]:
        """Rows that Spark keeps, as a sink is given them and as a frame."""
        frame = self.parsed()
        kept = ExecutorRows(frame)
        kept.compute()
        with closing(
            BatchRows({"ours": kept.rows({name: name for name in frame.columns})})
        ) as rows:
            ours = rows.by_sink["ours"]
            assert isinstance(ours, DistributedRows)
            yield ours, frame


@contextmanager
def batch(around: Surroundings) -> Iterator[Batch]:
    topic = f"big-{uuid.uuid4().hex[:6]}"
    create_missing(make_admin(around.kafka), [NewTopic(topic, PARTITIONS, 1)])
    producer = Producer(
        {"bootstrap.servers": around.kafka, "queue.buffering.max.messages": RECORDS}
    )
    for number in range(RECORDS):
        record = b'{"order_id": %d, "customer": "customer %d", "amount": %d.25}'
        value = record % (number, number % 1_000, number % 97)
        producer.produce(topic, value=value, partition=number % PARTITIONS)
    assert producer.flush(FLUSH_S) == 0
    with session(around) as spark:
        manifest = read_manifest(MANIFEST.format(topic=topic, columns=COLUMNS)).model
        (compiled,) = compile_pipeline(spark, manifest, read_allowed())
        yield Batch(spark=spark, kafka=around.kafka, topic=topic, compiled=compiled)


@contextmanager
def session(around: Surroundings) -> Iterator[SparkSession]:
    """As a driver has it, and Spark's own Iceberg over the same catalog."""
    lakehouse = around.folder / "lakehouse"
    open_local(lakehouse, "bench")
    options = JvmOptions(
        java=Path(around.environment["WAYBILL_STAGE_RUNNER_JAVA"]),
        jars=Path(around.environment["WAYBILL_STAGE_RUNNER_SPARK_JARS"]),
        archives=Path(around.environment["WAYBILL_STAGE_RUNNER_SPARK_ARCHIVES"]),
        scratch=around.folder,
        heap="1g",
        log4j=Path(driver.__path__[0]) / "log4j2.properties",
        more=jars.jar_set(jars.ICEBERG).class_path,
    )
    os.environ["PYSPARK_PYTHON"] = sys.executable
    jvm = start_jvm(options, spark_conf("local[2]", "bench", warehouse=around.folder / "spark"))
    try:
        spark = open_session()
        for key, value in iceberg_catalog(lakehouse).items():
            spark.conf.set(key, value)
        yield spark
        spark.stop()
    finally:  # the next contest has a JVM of its own
        gateway = SparkContext._gateway  # noqa: SLF001 - as PySpark has no word for it
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
        if gateway is not None:
            gateway.shutdown()
        jvm.stop()


@contextmanager
def from_kafka(around: Surroundings) -> Iterator[Turns]:
    with batch(around) as given, closing(iceberg_sink(around)) as sink:
        fences = fences_of_one()

        def ours() -> None:
            with closing(given.compiled.distribute(given.raw())) as rows:
                sink.write(rows.by_sink["ours"].to_batches(), next(fences))

        def theirs() -> None:
            given.parsed().writeTo("lakehouse.bench.theirs").append()

        given.spark.sql(f"CREATE TABLE lakehouse.bench.theirs ({COLUMNS})")
        yield Turns(ours=rate(ours), theirs=rate(theirs))


@contextmanager
def from_rows(around: Surroundings) -> Iterator[Turns]:
    with (
        batch(around) as given,
        closing(iceberg_sink(around)) as sink,
        given.kept() as (rows, frame),
    ):
        fences = fences_of_one()
        given.spark.sql(f"CREATE TABLE lakehouse.bench.theirs ({COLUMNS})")
        yield Turns(
            ours=rate(lambda: sink.write(rows, next(fences))),
            theirs=rate(lambda: frame.writeTo("lakehouse.bench.theirs").append()),
        )


@contextmanager
def into_postgres(around: Surroundings) -> Iterator[Turns]:
    with (
        batch(around) as given,
        database(around) as server,
        psycopg.connect(server.url, autocommit=True) as connection,
        given.kept() as (rows, frame),
    ):
        for table in ("ours", "bare"):
            connection.execute(f"CREATE TABLE public.{table} {TABLE.format(key='')}".encode())
        sink, bare, fences = sink_in(server, "append"), Bare(connection, INSERT), fences_of_one()

        def emptied(table: str, write: Callable[[], object]) -> Turn:
            def turn() -> float:
                connection.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(table)))
                connection.execute("CHECKPOINT")
                return rate(write)()

            return turn

        with closing(sink):
            yield Turns(
                ours=emptied("ours", lambda: sink.write(rows, next(fences))),
                theirs=emptied("bare", lambda: bare.write(frame.toArrow().to_batches())),
            )


def iceberg_sink(around: Surroundings) -> IcebergSink:
    catalog = open_local(around.folder / "lakehouse", "bench")
    settings = IcebergSinkSettings.model_validate({"table": "bench.ours"})
    target = IcebergTarget(sink="ours", settings=settings, pipeline_uid="bench")
    life = SinkLife(name="ours", since=1, fence_key="bench")
    sink = IcebergSink(life, catalog, target, schema=SCHEMA)
    sink.claim()
    sink.last()
    return sink


def rate(write: Callable[[], object]) -> Turn:
    def turn() -> float:
        began = time.perf_counter()
        write()
        return RECORDS / (time.perf_counter() - began)

    return turn


R31 = Contest(
    key="R31",
    what=f"{RECORDS:,} records of JSON in one batch, from Kafka into an Iceberg table",
    ours="Waybill: strict reading, kept by Spark, files by its executors, commit with the fence",
    theirs="Spark: from_json and Iceberg's own append",
    unit="/s",
    target=0.9,
    begin=from_kafka,
)
R32 = Contest(
    key="R32",
    what=f"{RECORDS:,} rows that Spark keeps, into an Iceberg table",
    ours="Waybill's sink: files by executors, commit with the fence",
    theirs="Iceberg's own append in Spark",
    unit="/s",
    target=0.9,
    begin=from_rows,
)
R33 = Contest(
    key="R33",
    what=f"{RECORDS:,} rows that Spark keeps, into a table of Postgres",
    ours="Waybill's sink: copied by executors, taken over with the fence",
    theirs="toArrow, COPY and INSERT in one transaction of psycopg",
    unit="/s",
    target=0.8,
    begin=into_postgres,
)
