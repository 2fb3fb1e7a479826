"""Rows that Spark keeps with its executors: the same as elsewhere, and sinks go to them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from batch_reading import tables_of
from builders import make_fence
from integration.spark import iceberg_sinks, postgres_sinks
from integration.spark.conftest import RawFrame
from integration.spark.manifests import KAFKA_SINK, LAKE_SINK, make_manifest
from postgres import Database
from waybill_shared.contract.errors import Problem, UserError
from waybill_spark.driver.reading import executor_rows
from waybill_spark.driver.reading.executor_rows import can_work
from waybill_spark.driver.sql.compile import CompiledStage, compile_pipeline
from waybill_spark.guard.allowed import read_allowed
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.distributed_rows import DistributedRows, Share

SQL = "SELECT order_id, customer FROM orders"
COUNT = 2_000


@pytest.fixture(scope="module")
def compiled(spark: SparkSession) -> CompiledStage:
    manifest = make_manifest(SQL, sinks=(KAFKA_SINK, LAKE_SINK))
    (made,) = compile_pipeline(spark, manifest, read_allowed())
    return made


@pytest.fixture(scope="module")
def batch(spark: SparkSession, compiled: CompiledStage, raw_frame: RawFrame) -> Iterator[BatchRows]:
    records = [
        ("orders.in", 0, offset, b'{"order_id": %d, "customer": "c%d"}' % (offset, offset % 7))
        for offset in range(COUNT)
    ]
    rows = compiled.distribute(raw_frame(records))
    yield rows
    rows.close()
    context = spark.sparkContext._jsc
    assert context is not None
    assert context.getPersistentRDDs().isEmpty(), "nobody needs them any more"


def telling(refused: int | None = None) -> Callable[[Share], Iterator[tuple[int, int]]]:
    """How many rows each share has; those of one of them are refused. Goes there by its text."""

    def tell(share: Share) -> Iterator[tuple[int, int]]:
        number = sum(rows.num_rows for rows in share.rows)
        if share.task == refused:
            raise UserError([Problem(message="no such table", hint="make it")])
        yield share.task, number

    return tell


def lake(batch: BatchRows) -> DistributedRows:
    rows = batch.by_sink["lake"]
    assert isinstance(rows, DistributedRows)
    return rows


def test_they_come_in_their_order_a_part_at_a_time(batch: BatchRows) -> None:
    parts = [*lake(batch)]
    assert lake(batch).num_rows == COUNT
    assert len(parts) >= 2
    found = [number for part in parts for number in part.column("order_id").to_pylist()]
    assert found == [*range(COUNT)]


def test_each_sink_has_its_columns_and_they_are_read_again(batch: BatchRows) -> None:
    first, again = tables_of(batch), tables_of(batch)
    assert first == again
    assert first["lake"].column_names == ["order_id", "customer"]
    assert first["out"].num_rows == COUNT


def test_work_is_done_where_they_are(batch: BatchRows) -> None:
    told = lake(batch).carry_out(telling(), lambda done: None)
    assert len(told) == 2
    assert sum(number for _, number in told) == COUNT


def test_what_is_wrong_in_a_share_is_raised_and_the_others_are_undone(batch: BatchRows) -> None:
    undone: list[tuple[int, int]] = []
    with pytest.raises(UserError, match="no such table") as raised:
        lake(batch).carry_out(telling(refused=1), undone.extend)
    assert raised.value.problems[0].hint == "make it"
    assert [task for task, _ in undone] == [0]


def test_a_table_of_iceberg_is_written_by_executors(batch: BatchRows, tmp_path: Path) -> None:
    catalog = iceberg_sinks.local(tmp_path)
    iceberg_sinks.opened(catalog).write(lake(batch), make_fence(sequence=0))
    assert iceberg_sinks.numbers_in(catalog) == [*range(COUNT)]
    assert len(iceberg_sinks.loaded(catalog).inspect.files()) == 2


def test_files_that_are_gone_before_they_are_committed_are_written_again(
    batch: BatchRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As orphans, while the driver was asleep for a day."""
    catalog = iceberg_sinks.local(tmp_path)
    sink = iceberg_sinks.opened(catalog)
    iceberg_sinks.loaded(catalog).append(iceberg_sinks.as_table(-1))
    there = {*tmp_path.rglob("*.parquet")}

    def fall_asleep(_: float) -> None:
        for file in {*tmp_path.rglob("*.parquet")} - there:
            file.unlink()

    clock = SimpleNamespace(sleep=fall_asleep)  # of this module alone: other threads sleep as well
    monkeypatch.setattr("waybill_spark.sinks.iceberg.sink.time", clock)
    sink.write(lake(batch), make_fence(sequence=0))
    assert iceberg_sinks.numbers_in(catalog) == [-1, *range(COUNT)]


def test_rows_of_one_key_meet_and_have_their_places(batch: BatchRows) -> None:
    def work(share: Share) -> Iterator[tuple[set[str], list[tuple[int, int]]]]:
        table = pa.Table.from_batches([*share.rows])
        came, numbers = (table.column(name).to_pylist() for name in ("came", "order_id"))
        yield set(table.column("customer").to_pylist()), [*zip(came, numbers, strict=True)]

    told = lake(batch).by_keys(["customer"], "came").carry_out(work, lambda done: None)
    assert len(told) == 2
    assert not told[0][0] & told[1][0]
    places = sorted([*told[0][1], *told[1][1]])
    assert [number for _, number in places] == [*range(COUNT)]


def test_an_upsert_is_done_by_executors(batch: BatchRows, tmp_path: Path) -> None:
    catalog = iceberg_sinks.local(tmp_path)
    wanted = iceberg_sinks.target(mode="upsert", keys=["customer"])
    sink = iceberg_sinks.opened(catalog, wanted)
    sink.write(iceberg_sinks.as_rows(1, 2), make_fence(sequence=0))
    sink.write(lake(batch), make_fence(sequence=1))
    sink.write(lake(batch), make_fence(sequence=2))
    rows = iceberg_sinks.loaded(catalog).scan().to_arrow().to_pylist()
    last = {f"c{n % 7}": n for n in range(COUNT)}
    assert {row["customer"]: row["order_id"] for row in rows} == {"ada": 1, "bob": 2, **last}
    assert len(rows) == len(last) + 2


def test_a_table_of_postgres_is_written_by_executors(batch: BatchRows, postgres: Database) -> None:
    postgres_sinks.opened(postgres).write(lake(batch), make_fence(sequence=0))
    assert [number for number, _ in postgres_sinks.read(postgres)] == [*range(COUNT)]


def test_executors_are_asked_whether_they_can_work(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert can_work(spark)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python")
    assert not can_work(spark)
    (record,) = [each for each in caplog.records if each.name == executor_rows.__name__]
    assert "big batches go through the driver" in record.message
    assert 'Cannot run program "/nowhere/python"' in record.__dict__["reason"]
