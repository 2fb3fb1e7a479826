"""What Iceberg sinks have written, as Spark's own Iceberg reads it: now, and at each snapshot."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from builders import make_fence
from integration.spark.iceberg_sinks import NAME, loaded, local, opened, target
from waybill_shared.contract.manifest.iceberg import LOCAL
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog

SCHEMA: Final = pa.schema(
    [("order_id", pa.int32()), ("at", pa.timestamp("us", "UTC")), ("customer", pa.string())]
)
ITEMS: Final = pa.list_(pa.struct([("n", pa.int64())]))
WIDER: Final = pa.schema([("order_id", pa.int64()), *list(SCHEMA)[1:], ("items", ITEMS)])
Rows = list[tuple[Any, ...]]
Read = Callable[..., Rows]


@pytest.fixture
def catalog(tmp_path: Path) -> OpenCatalog:
    return local(tmp_path)


@pytest.fixture
def read(spark: SparkSession, tmp_path: Path) -> Read:
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{tmp_path / 'catalog.db'}",
        ".warehouse": f"file://{tmp_path / 'warehouse'}",
        ".jdbc.schema-version": "V1",
        ".cache-enabled": "false",
    }
    session = spark.newSession()
    for key, value in settings.items():
        session.conf.set(f"spark.sql.catalog.{LOCAL}{key}", value)

    def rows(columns: str, snapshot: str | None = None) -> Rows:
        version = "" if snapshot is None else f" VERSION AS OF {snapshot}"
        frame = session.sql(f"SELECT {columns} FROM {LOCAL}.{NAME}{version} ORDER BY order_id")
        return [tuple(row) for row in frame.collect()]

    return rows


def order(order_id: int, customer: str, **more: object) -> dict[str, Any]:
    at = datetime(2026, 1, 1 + order_id % 28, tzinfo=UTC)
    return {"order_id": order_id, "at": at, "customer": customer, **more}


def write(
    catalog: OpenCatalog,
    sequence: int,
    schema: pa.Schema,
    rows: list[dict[str, Any]],
    **settings: Any,  # noqa: ANN401
) -> str:
    table = pa.Table.from_pylist(rows, schema=schema)
    sink = opened(catalog, target(**{"table": NAME, **settings}), schema)
    written = sink.write(table.to_batches(), make_fence(sequence=sequence))
    return written.version["iceberg_snapshot_id"]


def test_spark_reads_every_mode_partitioning_and_schema(catalog: OpenCatalog, read: Read) -> None:
    by_day = [{"column": "at", "transform": "day"}]
    by_key = [{"column": "order_id", "transform": "bucket[4]"}]
    upsert: dict[str, Any] = {"mode": "upsert", "keys": ["order_id"]}
    first = write(catalog, 0, SCHEMA, [order(n, "ada") for n in (1, 2, 3)], partitionBy=by_day)
    second = write(catalog, 1, SCHEMA, [order(2, "bob"), order(4, "bob")], **upsert)
    wide = [order(2**40, "kim", items=[{"n": 1}]), order(3, "kim", items=None)]
    third = write(
        catalog, 2, WIDER, [{**each, "at": order(5, "")["at"]} for each in wide],
        **upsert, partitionBy=by_key, schemaEvolution="widen",
    )  # fmt: skip
    fourth = write(
        catalog, 3, WIDER, [order(4, "eva", items=[])], mode="overwrite", overwrite="partitions"
    )

    assert read("order_id, customer", first) == [(1, "ada"), (2, "ada"), (3, "ada")]
    assert read("order_id, customer", second) == [
        (1, "ada"), (2, "bob"), (3, "ada"), (4, "bob"),
    ]  # fmt: skip
    assert read("order_id, customer, items.n", third) == [
        (1, "ada", None), (2, "bob", None), (3, "kim", None), (4, "bob", None), (2**40, "kim", [1]),
    ]  # fmt: skip
    now = read("order_id, customer")
    assert now == read("order_id, customer", fourth)
    assert (4, "eva") in now
    ours = loaded(catalog).scan().to_arrow().sort_by("order_id").select(["order_id", "customer"])
    assert now == [tuple(row.values()) for row in ours.to_pylist()]
    assert read("order_id", None) == [(row[0],) for row in now]
