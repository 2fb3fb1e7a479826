"""The Iceberg sink on a real catalog: rows and fence in one commit, and nobody writes twice."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, LongType, NestedField, StringType

from builders import make_fence
from contracts.sink import SinkContract
from waybill_shared.contract.errors import UserError
from waybill_shared.process.clock import SystemClock
from waybill_spark.commits import Identity
from waybill_spark.driver.failures import describe
from waybill_spark.ledger import Ledger
from waybill_spark.sinks.contract import Sink, SinkLife, SinkSuperseded, SinkUnreachable
from waybill_spark.sinks.iceberg.lakehouse import open_catalog
from waybill_spark.sinks.iceberg.sink import IcebergSink, refuse_unfit
from waybill_spark.stopping import StageStopped

TABLE = "raw.orders"
LIFE = SinkLife(name="lake", since=1, fence_key="here/waybill/default/uid/load/lake@1")
SCHEMA = pa.schema([("order_id", pa.int64()), ("customer", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return open_catalog(tmp_path)


def opened(catalog: SqlCatalog) -> IcebergSink:
    sink = IcebergSink(LIFE, catalog, TABLE, schema=SCHEMA)
    sink.claim()
    return sink


def table(*numbers: int) -> pa.Table:
    return pa.table({"order_id": list(numbers), "customer": ["ada"] * len(numbers)}, schema=SCHEMA)


def rows(*numbers: int) -> list[pa.RecordBatch]:
    return [*table(*numbers).to_batches()]


def numbers_in(catalog: SqlCatalog, snapshot_id: int | None = None) -> list[int]:
    table = catalog.load_table(TABLE).scan(snapshot_id=snapshot_id).to_arrow()
    return sorted(table.column("order_id").to_pylist())


class TablePlace:
    def __init__(self, catalog: SqlCatalog) -> None:
        self._catalog = catalog

    def sink(self, since: int = 1) -> Sink:
        life = replace(LIFE, since=since, fence_key=f"{LIFE.fence_key}@{since}")
        return IcebergSink(life, self._catalog, TABLE, schema=SCHEMA)

    def rows(self, *numbers: int) -> Iterable[pa.RecordBatch]:
        return rows(*numbers)

    def read(self) -> list[int]:
        return numbers_in(self._catalog)


class TestIcebergSink(SinkContract):
    @pytest.fixture
    def place(self, catalog: SqlCatalog) -> TablePlace:
        return TablePlace(catalog)


def test_the_fence_is_read_back_with_the_snapshot_that_it_came_with(catalog: SqlCatalog) -> None:
    written = opened(catalog).write(rows(1, 2), make_fence(sequence=0))
    opened(catalog).write(rows(), make_fence(sequence=1))

    assert numbers_in(catalog, int(written.version["iceberg_snapshot_id"])) == [1, 2]
    last = opened(catalog).last()
    assert last is not None
    assert last.fence == make_fence(sequence=1)
    assert last.version["iceberg_snapshot_id"] != written.version["iceberg_snapshot_id"]


def test_a_paused_driver_is_refused_on_a_table_that_somebody_else_made(catalog: SqlCatalog) -> None:
    catalog.create_namespace("raw")
    catalog.create_table(TABLE, schema=SCHEMA, properties={"commit.retry.num-retries": "9"})
    paused, newer = opened(catalog), opened(catalog)

    newer.write(rows(1), make_fence(sequence=0))
    with pytest.raises(SinkSuperseded):
        paused.write(rows(1), make_fence(sequence=0))

    assert numbers_in(catalog) == [1]
    assert catalog.load_table(TABLE).properties["commit.retry.num-retries"] == "9"


def closing(catalog: SqlCatalog) -> Ledger:
    """As `driver.closing` opens a sink: it knows no columns."""
    sink = IcebergSink(LIFE, catalog, TABLE, schema=None)
    identity = Identity(tenant="default", pipeline_uid="uid", generation=1, epoch=2)
    sink.claim()
    return Ledger(
        sink, stage="load", inputs=(), identity=identity, emit=lambda commit: None,
        clock=SystemClock(),
    )  # fmt: skip


def test_a_deletion_shuts_out_a_driver_that_has_written_nothing_yet(catalog: SqlCatalog) -> None:
    paused, ledger = opened(catalog), closing(catalog)
    ledger.read()
    assert ledger.fence is None

    ledger.shut()

    with pytest.raises(SinkSuperseded):
        paused.write(rows(1), make_fence(sequence=0))
    assert numbers_in(catalog) == []


def test_a_deletion_makes_no_table(catalog: SqlCatalog) -> None:
    with pytest.raises(StageStopped, match="there is no table"):
        closing(catalog).shut()


def test_another_writer_of_the_table_only_makes_us_try_again(catalog: SqlCatalog) -> None:
    sink = opened(catalog)
    sink.write(rows(1), make_fence(sequence=0))

    catalog.load_table(TABLE).append(table(100))
    written = sink.write(rows(2), make_fence(sequence=1))

    assert numbers_in(catalog) == [1, 2, 100]
    assert numbers_in(catalog, int(written.version["iceberg_snapshot_id"])) == [1, 2, 100]


def test_a_fence_outlives_its_snapshot(catalog: SqlCatalog) -> None:
    opened(catalog).write(rows(1), make_fence(sequence=0))
    first = catalog.load_table(TABLE).current_snapshot()
    catalog.load_table(TABLE).append(table(100))
    assert first is not None
    catalog.load_table(TABLE).maintenance.expire_snapshots().by_id(first.snapshot_id).commit()

    last = opened(catalog).last()

    assert last is not None
    assert last.fence.sequence == 0
    assert last.version == {}


def test_a_sink_that_cannot_be_reached_is_named_with_its_place(
    catalog: SqlCatalog, tmp_path: Path
) -> None:
    sink = opened(catalog)
    (tmp_path / "warehouse").rename(tmp_path / "moved")
    (tmp_path / "warehouse").touch()
    with pytest.raises(SinkUnreachable) as raised:
        sink.write(rows(1), make_fence(sequence=0))
    told = describe(raised.value, "load")
    assert (told.domain, told.retryable) == ("external", True)
    assert told.message.startswith("sink lake: raw.orders cannot be reached: ")
    assert str(tmp_path / "warehouse") in told.hint


def test_a_catalog_that_cannot_be_reached_is_told_without_its_statements(
    catalog: SqlCatalog, tmp_path: Path
) -> None:
    (tmp_path / "catalog.db").unlink()
    with pytest.raises(SinkUnreachable, match=r"cannot be reached: [a-z ]+$"):
        opened(catalog)


def test_a_lakehouse_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "warehouse").touch()
    with pytest.raises(SinkUnreachable, match="cannot be opened") as raised:
        open_catalog(tmp_path)
    assert str(tmp_path) in raised.value.hint


def test_what_a_table_does_not_take_is_told_by_column(catalog: SqlCatalog) -> None:
    catalog.create_namespace("raw")
    columns = (
        NestedField(1, "n", IntegerType()),
        NestedField(2, "note", StringType()),
        NestedField(3, "day", DateType(), required=True),
        NestedField(4, "city", StringType(), required=True),
    )
    table = catalog.create_table(TABLE, Schema(*columns))
    rows = {"n": pa.int64(), "note": pa.struct([("a", pa.int64())]), "day": pa.date32()}

    with pytest.raises(UserError) as refused:
        refuse_unfit("lake", table, pa.schema(list(rows.items())))

    assert refused.value.problems[0].message == (
        f"sink lake: table {TABLE} does not take these rows: the query gives no city, which the"
        " table requires; n is int, the query gives long; note is string, the query gives"
        " struct<-1: a: optional long>; day may be null, and the table requires a value"
    )


def test_a_narrower_type_is_taken(catalog: SqlCatalog) -> None:
    catalog.create_namespace("raw")
    table = catalog.create_table(TABLE, Schema(NestedField(1, "n", LongType())))
    refuse_unfit("lake", table, pa.schema([("n", pa.int32())]))
