"""Sinks that are given rows which lie with executors: the same contract, and what is theirs alone.

Here a task is run again after its work was done, as Spark does when an answer is lost.
"""

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from builders import make_fence
from contracts.sink import SinkContract
from integration.spark import iceberg_sinks, postgres_sinks
from integration.spark.distributed_tables import UPSERT, left, stored
from integration.spark.iceberg_sinks import LIFE, ErasingPlace, TablePlace
from postgres import Database
from shares import Fewer, Shares
from waybill_shared.contract.errors import Retryable, UserError
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.tracking.sink import RowsRefused, SinkUnreachable

BY_CUSTOMER: Final = [{"column": "customer"}]
PARTITIONED: Final = pytest.mark.parametrize(
    "partitions", [None, BY_CUSTOMER], ids=["whole", "partitioned"]
)
ERASING: Final = {"mode": "overwrite"}
Numbers = tuple[int, ...]


@pytest.fixture
def catalog(tmp_path: Path) -> OpenCatalog:
    return iceberg_sinks.local(tmp_path)


class SpreadTable(TablePlace):
    def rows(self, *numbers: int) -> Iterable[pa.RecordBatch]:
        return Shares(iceberg_sinks.as_table(*numbers))


class SpreadErasing(ErasingPlace, SpreadTable):
    """Each batch replaces."""


@PARTITIONED
class TestAppend(SinkContract):
    @pytest.fixture
    def place(self, catalog: OpenCatalog, partitions: Any) -> TablePlace:  # noqa: ANN401
        return SpreadTable(catalog, {"partitionBy": partitions})


@PARTITIONED
class TestOverwrite(SinkContract):
    @pytest.fixture
    def place(self, catalog: OpenCatalog, partitions: Any) -> TablePlace:  # noqa: ANN401
        return SpreadErasing(catalog, {**ERASING, "partitionBy": partitions})


class TestOverwriteOfPartitions(SinkContract):
    @pytest.fixture
    def place(self, catalog: OpenCatalog) -> TablePlace:
        settings = {**ERASING, "overwrite": "partitions", "partitionBy": BY_CUSTOMER}
        return SpreadErasing(catalog, settings)


@PARTITIONED
class TestUpsert(SinkContract):
    @pytest.fixture
    def place(self, catalog: OpenCatalog, partitions: Any) -> TablePlace:  # noqa: ANN401
        return SpreadTable(catalog, {**UPSERT, "partitionBy": partitions})


def files_in(tmp_path: Path) -> set[str]:
    return {file.name for file in tmp_path.rglob("*.parquet")}


def files_of(catalog: OpenCatalog) -> set[str]:
    paths = iceberg_sinks.loaded(catalog).inspect.files().column("file_path").to_pylist()
    return {Path(urlsplit(path).path).name for path in paths}


def test_files_of_executors_say_whose_they_are_and_an_attempt_that_was_lost_counts_for_nothing(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    rows = Shares(iceberg_sinks.as_table(1, 2, 3, 4))
    iceberg_sinks.opened(catalog).write(rows, replace(make_fence(sequence=0), pipeline_uid="u7"))

    assert iceberg_sinks.numbers_in(catalog) == [1, 2, 3, 4]
    counted = files_of(catalog)
    assert len(counted) == 2
    assert all("-u7-lake-0-" in name for name in files_in(tmp_path))
    assert len(files_in(tmp_path) - counted) == 1, "what the lost attempt has written"


def test_whoever_comes_in_between_makes_nobody_write_again(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    sink = iceberg_sinks.opened(catalog)
    sink.write(iceberg_sinks.as_rows(1), make_fence(sequence=0))
    iceberg_sinks.loaded(catalog).append(iceberg_sinks.as_table(100))
    rows = Shares(iceberg_sinks.as_table(2, 3))

    sink.write(rows, make_fence(sequence=1))

    assert iceberg_sinks.numbers_in(catalog) == [1, 2, 3, 100]
    assert rows.asked == 1


def test_a_table_that_has_changed_is_written_for_anew(catalog: OpenCatalog) -> None:
    sink = iceberg_sinks.opened(catalog)
    sink.write(iceberg_sinks.as_rows(1), make_fence(sequence=0))
    with iceberg_sinks.loaded(catalog).update_spec() as update:
        update.add_identity("customer")
    rows = Shares(iceberg_sinks.as_table(2, 3))

    sink.write(rows, make_fence(sequence=1))

    assert iceberg_sinks.numbers_in(catalog) == [1, 2, 3]
    assert rows.asked == 2
    assert len(iceberg_sinks.loaded(catalog).inspect.partitions()) == 3


def test_columns_of_the_first_rows_are_added_in_their_commit(catalog: OpenCatalog) -> None:
    iceberg_sinks.opened(catalog).write(iceberg_sinks.as_rows(1), make_fence(sequence=0))
    schema = pa.schema([*iceberg_sinks.SCHEMA, ("tax", pa.float64())])
    wider = iceberg_sinks.target(schemaEvolution="add")
    more = iceberg_sinks.as_table(2, 3).append_column("tax", pa.array([0.5, 1.5]))

    iceberg_sinks.opened(catalog, wider, schema).write(Shares(more), make_fence(sequence=1))

    found = iceberg_sinks.loaded(catalog).scan().to_arrow().sort_by("order_id")
    assert found.column("tax").to_pylist() == [None, 0.5, 1.5]


def test_rows_that_executors_refuse_leave_no_file(catalog: OpenCatalog, tmp_path: Path) -> None:
    schema = pa.schema([("order_id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    good, far = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000, 10**18
    columns = [pa.array([1, 2, 3, 4]), pa.array([good, good, far, good], schema.field("at").type)]
    rows = Shares(pa.Table.from_arrays(columns, schema=schema))
    sink = IcebergSink(LIFE, catalog, iceberg_sinks.target(), schema=schema)
    sink.claim()
    sink.last()

    with pytest.raises(RowsRefused, match="at is not in the years 1 to 9999"):
        sink.write(rows, make_fence(sequence=0))

    assert files_in(tmp_path) == set()
    assert sink.find_refusal(rows) is not None
    assert iceberg_sinks.loaded(catalog).current_snapshot() is None


FLAGGED: Final = pa.schema(
    [("k", pa.int64()), ("n", pa.int64()), ("v", pa.string()), ("void", pa.bool_())]
)
Row = tuple[int, int | None, str, bool]


def flagged(*rows: Row) -> pa.Table:
    columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), FLAGGED, strict=True)]
    return pa.Table.from_arrays(columns, schema=FLAGGED)


@pytest.mark.parametrize("order_by", [None, "n"])
@pytest.mark.parametrize(
    "partitions", [None, [{"column": "k", "transform": "bucket[3]"}]], ids=["whole", "buckets"]
)
def test_an_upsert_by_executors_gives_what_one_here_gives(
    tmp_path: Path,
    order_by: str | None,
    partitions: Any,  # noqa: ANN401
) -> None:
    dice = random.Random(7)
    orders = [None, *range(9)]
    batches = [
        flagged(
            *(
                (dice.randrange(40), dice.choice(orders), f"{number}.{row}", dice.random() < 0.2)
                for row in range(60)
            )
        )
        for number in range(6)
    ]
    settings = {"mode": "upsert", "keys": ["k"], "deleteWhere": "void", "partitionBy": partitions}
    wanted = iceberg_sinks.target(**settings, **({"orderBy": order_by} if order_by else {}))
    found = []
    for name, rows_of in (("here", pa.Table.to_batches), ("there", Shares)):
        catalog = iceberg_sinks.local(tmp_path / name)
        sink = iceberg_sinks.opened(catalog, wanted, FLAGGED)
        for sequence, batch in enumerate(batches):
            sink.write(rows_of(batch), make_fence(sequence=sequence))
        table = iceberg_sinks.loaded(catalog)
        assert len(table.snapshots()) == len(batches)
        found.append(table.scan().to_arrow().sort_by("k").to_pylist())
    assert found[0] == found[1]
    assert len(found[0]) > 10


def test_an_upsert_looks_at_what_came_in_between(catalog: OpenCatalog, tmp_path: Path) -> None:
    """And the files of the first try are gone, but for what a lost attempt has left."""
    sink = iceberg_sinks.opened(catalog, iceberg_sinks.target(**UPSERT))
    sink.write(iceberg_sinks.as_rows(1, 2), make_fence(sequence=0))
    iceberg_sinks.loaded(catalog).append(iceberg_sinks.as_table(3))

    before = files_in(tmp_path)
    sink.write(Shares(iceberg_sinks.as_table(2, 3, 4)), make_fence(sequence=1))

    assert iceberg_sinks.numbers_in(catalog) == [1, 2, 3, 4]
    left_over = files_in(tmp_path) - files_of(catalog) - before
    assert {name.split("-lake-1-")[1].split("-")[0] for name in left_over} == {"1"}


def test_old_rows_that_only_stay_are_not_judged(catalog: OpenCatalog) -> None:
    schema = pa.schema([("order_id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    sink = iceberg_sinks.opened(catalog, iceberg_sinks.target(**UPSERT), schema)
    with iceberg_sinks.loaded(catalog).transaction() as change:
        change.set_properties({"write.metadata.metrics.default": "none"})
    far = pa.array([0, 10**18], schema.field("at").type)
    iceberg_sinks.loaded(catalog).append(pa.table({"order_id": [1, 2], "at": far}, schema=schema))

    soon = pa.array([5, 6], schema.field("at").type)
    rows = pa.table({"order_id": [1, 3], "at": soon}, schema=schema)
    sink.write(Shares(rows), make_fence(sequence=0))

    assert iceberg_sinks.loaded(catalog).scan().count() == 3


def test_an_upsert_by_executors_needs_keys(catalog: OpenCatalog, tmp_path: Path) -> None:
    sink = iceberg_sinks.opened(catalog, iceberg_sinks.target(**UPSERT))
    rows = iceberg_sinks.as_table(1, 2, 3)
    keyless = rows.set_column(0, "order_id", pa.array([1, None, 3], pa.int64()))
    with pytest.raises(RowsRefused, match="key order_id is null"):
        sink.write(Shares(keyless), make_fence(sequence=0))
    assert files_in(tmp_path) == set()


class Elsewhere(Shares):
    def answers(self, work: Any) -> Any:  # noqa: ANN401
        told = super().answers(work)
        for each in told:
            for file in getattr(each, "files", [each]):
                Path(urlsplit(file.file_path).path).unlink()
        return told


EITHER: Final = pytest.mark.parametrize("settings", [{}, UPSERT], ids=["append", "upsert"])


@EITHER
def test_rows_that_went_meanwhile_are_not_passed_over(
    catalog: OpenCatalog, postgres: Database, settings: dict[str, Any]
) -> None:
    wanted = iceberg_sinks.target(**settings)
    with pytest.raises(Retryable, match="executors had 3 rows of 4"):
        iceberg_sinks.opened(catalog, wanted).write(
            Fewer(iceberg_sinks.as_table(1, 2, 3)), make_fence(sequence=0)
        )
    table = pa.Table.from_batches(postgres_sinks.rows(1, 2, 3))
    with pytest.raises(SinkUnreachable, match="of 4 rows of a batch, 3 are there"):
        postgres_sinks.opened(postgres, **settings).write(Fewer(table), make_fence(sequence=0))
    assert (stored(postgres), left(postgres)) == ([], [])


@EITHER
def test_files_on_the_disk_of_a_worker_are_not_committed(
    catalog: OpenCatalog, settings: dict[str, Any]
) -> None:
    wanted = iceberg_sinks.target(**settings)
    with pytest.raises(UserError, match="is on a worker, and not here"):
        iceberg_sinks.opened(catalog, wanted).write(
            Elsewhere(iceberg_sinks.as_table(1, 2)), make_fence(sequence=0)
        )
    assert iceberg_sinks.loaded(catalog).current_snapshot() is None
