"""One Spark session for all tests here, started as a driver starts its own."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from integration.ingress.objects import BUCKET, REGION, ObjectStore, serving_objects
from integration.spark.catalog_servers import BEARER, SECRET, Opened, Told
from integration.spark.hive_metastore import serving_hive
from integration.spark.rest_catalog import TOKEN, RestServer, serving_catalog
from postgres import Database
from waybill_local import archives, jars
from waybill_local.java import find_java
from waybill_shared.contract.driver import SinkPlaces
from waybill_spark import driver
from waybill_spark.driver.jvm.launch import JvmOptions, start_jvm
from waybill_spark.driver.jvm.session import open_session, spark_conf
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog, open_catalog

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


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with serving_objects() as server:
        yield server


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A connection to one that has its tables on this machine."""
    folder = tmp_path_factory.mktemp("hive")
    with serving_hive(folder) as uri:
        yield {"kind": "iceberg", "catalog": "hive", "uri": uri, "folders": [str(folder)]}


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[RestServer]:
    with serving_catalog(tmp_path) as server:
        yield server


@pytest.fixture
def told(tmp_path: Path, store: ObjectStore, postgres: Database, rest: RestServer) -> Told:
    """The file of connections, as what stands in it."""
    os.environ[SECRET], os.environ[BEARER] = store.secret_key, TOKEN
    objects = {"endpoint": store.endpoint, "region": REGION, "accessKey": store.access_key}
    place = f"s3://{BUCKET}/{tmp_path.name}"
    return {
        "objects": {"kind": "s3", **objects, "secretKey": {"env": SECRET}},
        "base": postgres.settings(),
        "sql": {
            "kind": "iceberg",
            "catalog": "sql",
            "database": "base",
            "name": tmp_path.name,
            "warehouse": place,
            "objects": "objects",
        },
        "rest": {
            "kind": "iceberg",
            "catalog": "rest",
            "uri": rest.uri,
            "token": {"env": BEARER},
            "folders": [f"{tmp_path}/served"],
        },
        "glue": {
            "kind": "iceberg", "catalog": "glue",
            "uri": store.endpoint, "warehouse": place, "objects": "objects",
        },
    }  # fmt: skip


@pytest.fixture
def open_told(tmp_path: Path) -> Iterator[Opened]:
    with ExitStack() as stack:

        def opens(told: Told, name: str) -> OpenCatalog:
            file = tmp_path / "connections.yaml"
            file.write_text(json.dumps(told))
            places = SinkPlaces(lakehouse_folder=tmp_path, connections_file=file)
            catalog = open_catalog(name, places, what="sink lake")
            stack.callback(catalog.tables.close)
            return catalog

        yield opens
