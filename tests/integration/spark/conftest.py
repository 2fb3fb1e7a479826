"""One Spark session for all tests here, started as a driver starts its own."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from waybill_local import archives, jars
from waybill_local.java import find_java
from waybill_spark import driver
from waybill_spark.driver.jvm.launch import JvmOptions, start_jvm
from waybill_spark.driver.jvm.session import open_session, spark_conf

CANARY = "a secret of the driver"
RawFrame = Callable[[Sequence[tuple[str, int, int, bytes | None]]], DataFrame]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, class_archive: None) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    options = JvmOptions(
        java=find_java().path,
        jars=jars.jar_set(jars.SPARK).folder,
        archives=archives.folder(),
        scratch=folder,
        heap="1g",
        log4j=Path(driver.__path__[0]) / "log4j2.properties",
        more=jars.jar_set(jars.ICEBERG).class_path,
    )
    before = dict(os.environ)
    # A JVM that cannot use the archive does not start: else it would be slow without a word.
    os.environ["JAVA_TOOL_OPTIONS"] += " -Xshare:on"
    os.environ["WAYBILL_KAFKA_PASSWORD"] = CANARY
    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = spark_conf("local[2]", "tests", warehouse=folder / "warehouse")
    jvm = start_jvm(options, conf)
    try:
        session = open_session({"spark.authenticate.secret": CANARY})
        yield session
        session.stop()
    finally:
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
        if gateway is not None:
            gateway.shutdown()
        jvm.stop()
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def raw_frame(spark: SparkSession) -> RawFrame:
    """Raw records as (topic, partition, offset, value)."""

    def make(records: Sequence[tuple[str, int, int, bytes | None]]) -> DataFrame:
        topics, partitions, offsets, values = zip(*records, strict=True)
        table = pa.table(
            {
                "topic": pa.array(topics, pa.string()),
                "partition": pa.array(partitions, pa.int32()),
                "offset": pa.array(offsets, pa.int64()),
                "value": pa.array(values, pa.binary()),
            }
        )
        return spark.createDataFrame(table)

    return make
