"""The modes of the Iceberg sink: each is held to the contract of sinks, and does what it says."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo, Reference
from pyiceberg.expressions.literals import literal

from builders import make_fence
from contracts.sink import SinkContract
from integration.spark.iceberg_sinks import (
    FLAGGED,
    NAME,
    SCHEMA,
    ErasingPlace,
    TablePlace,
    as_rows,
    loaded,
    local,
    numbers_in,
    opened,
    target,
)
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.tracking.sink import RowsRefused, SinkUnreachable

BY_CUSTOMER = [{"column": "customer"}]
UPSERT: dict[str, Any] = {"mode": "upsert", "keys": ["order_id"]}
PARTITIONED = pytest.mark.parametrize(
    "partitions", [None, BY_CUSTOMER, [{"column": "order_id", "transform": "bucket[3]"}]],
    ids=["whole", "identity", "bucket"],
)  # fmt: skip


@pytest.fixture
def catalog(tmp_path: Path) -> OpenCatalog:
    return local(tmp_path)


@PARTITIONED
class TestAppend(SinkContract):
    @pytest.fixture
    def place(self, catalog: OpenCatalog, partitions: Any) -> TablePlace:  # noqa: ANN401
        return TablePlace(catalog, {"partitionBy": partitions})


@PARTITIONED
class TestUpsert(SinkContract):
    @pytest.fixture
    def place(self, catalog: OpenCatalog, partitions: Any) -> TablePlace:  # noqa: ANN401
        return TablePlace(catalog, {**UPSERT, "partitionBy": partitions})


@PARTITIONED
class TestUpsertWithDeletes(SinkContract):
    @pytest.fixture
    def place(self, catalog: OpenCatalog, partitions: Any) -> TablePlace:  # noqa: ANN401
        settings = {**UPSERT, "deleteWhere": "void", "partitionBy": partitions}
        return TablePlace(catalog, settings, FLAGGED)


@PARTITIONED
class TestOverwriteOfTheTable(SinkContract):
    @pytest.fixture
    def place(self, catalog: OpenCatalog, partitions: Any) -> TablePlace:  # noqa: ANN401
        return ErasingPlace(catalog, {"mode": "overwrite", "partitionBy": partitions})


class TestOverwriteOfPartitions(SinkContract):
    @pytest.fixture
    def place(self, catalog: OpenCatalog) -> TablePlace:
        settings = {"mode": "overwrite", "overwrite": "partitions", "partitionBy": BY_CUSTOMER}
        return ErasingPlace(catalog, settings)


class Writer:
    """Batch after batch into one table."""

    def __init__(self, sink: IcebergSink, schema: pa.Schema) -> None:
        self._sink = sink
        self._schema = schema
        self._sequence = -1

    def write(self, *rows: dict[str, Any]) -> str:
        self._sequence += 1
        table = pa.Table.from_pylist(list(rows), schema=self._schema)
        written = self._sink.write(table.to_batches(), make_fence(sequence=self._sequence))
        return written.version["iceberg_snapshot_id"]


def found(catalog: OpenCatalog, *columns: str) -> list[tuple[Any, ...]]:
    rows = loaded(catalog).scan().to_arrow().to_pylist()
    return sorted(tuple(row[column] for column in columns) for row in rows)


ORDERED = pa.schema([*SCHEMA, ("at", pa.int64()), ("void", pa.bool_())])


def order(order_id: int, customer: str, at: int | None = None, *, void: bool = False) -> Any:  # noqa: ANN401
    return {"order_id": order_id, "customer": customer, "at": at, "void": void}


def test_the_last_row_of_a_key_stays(catalog: OpenCatalog) -> None:
    writer = Writer(opened(catalog, target(**UPSERT)), SCHEMA)
    writer.write(*(order(1, name) for name in ("ada", "eva")), order(2, "bob"))
    writer.write(order(2, "zoe"), order(3, "kim"))
    assert found(catalog, "order_id", "customer") == [(1, "eva"), (2, "zoe"), (3, "kim")]


def test_the_greatest_row_of_a_key_stays_whenever_it_comes(catalog: OpenCatalog) -> None:
    wanted = target(**UPSERT, orderBy="at", deleteWhere="void")
    writer = Writer(opened(catalog, wanted, ORDERED), ORDERED)
    writer.write(order(1, "old", 5), order(1, "older", 3), order(2, "bob", 5), order(3, "x"))
    writer.write(order(1, "late", 4), order(2, "gone", 4, void=True), order(3, "y", 1))
    assert found(catalog, "order_id", "customer") == [(1, "old"), (2, "bob"), (3, "y")]
    writer.write(order(1, "same", 5), order(2, "gone", 6, void=True), order(3, "z"))
    assert found(catalog, "order_id", "customer") == [(1, "same"), (3, "y")]
    assert "void" not in loaded(catalog).schema().column_names


def test_keys_of_several_columns_and_kinds(catalog: OpenCatalog) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    schema = pa.schema([("a", pa.string()), ("b", pa.timestamp("us", "UTC")), ("n", pa.int64())])
    wanted = target(mode="upsert", keys=["a", "b"])
    writer = Writer(opened(catalog, wanted, schema), schema)
    writer.write({"a": "x", "b": noon, "n": 1}, {"a": "y", "b": noon, "n": 2})
    writer.write({"a": "x", "b": noon, "n": 3}, {"a": "x", "b": noon.replace(hour=13), "n": 4})
    assert found(catalog, "a", "n") == [("x", 3), ("x", 4), ("y", 2)]


def test_an_upsert_moves_a_row_to_another_partition(catalog: OpenCatalog) -> None:
    writer = Writer(opened(catalog, target(**UPSERT, partitionBy=BY_CUSTOMER)), SCHEMA)
    writer.write(order(1, "ada"), order(2, "ada"))
    writer.write(order(1, "bob"))
    assert found(catalog, "order_id", "customer") == [(1, "bob"), (2, "ada")]


def test_files_without_one_of_the_keys_stay(catalog: OpenCatalog) -> None:
    writer = Writer(opened(catalog, target(**UPSERT)), SCHEMA)
    writer.write(order(1, "ada"), order(5, "ada"))
    writer.write(order(2, "bob"))
    before = {task.file.file_path for task in loaded(catalog).scan().plan_files()}
    writer.write(order(3, "kim"))
    after = {task.file.file_path for task in loaded(catalog).scan().plan_files()}
    assert before < after


def test_a_row_without_its_key_is_refused_alone(catalog: OpenCatalog) -> None:
    sink = opened(catalog, target(**UPSERT))
    nameless = pa.table({"order_id": [1, None], "customer": ["a", "b"]}, schema=SCHEMA).to_batches()
    with pytest.raises(RowsRefused, match="key order_id is null"):
        sink.write(nameless, make_fence(sequence=0))
    assert sink.find_refusal(nameless) == "sink lake: table raw.orders: key order_id is null"
    assert sink.find_refusal(as_rows(1)) is None
    assert sink.last() is None


def test_rows_are_sorted_within_files(catalog: OpenCatalog) -> None:
    wanted = target(sortBy=[{"column": "customer"}, {"column": "order_id", "order": "desc"}])
    Writer(opened(catalog, wanted), SCHEMA).write(
        order(1, "zoe"), order(2, "ada"), order(3, "zoe"), {"order_id": 4, "customer": None}
    )
    (file,) = loaded(catalog).inspect.files().column("file_path").to_pylist()
    rows = pa.parquet.read_table(file.removeprefix("file://")).to_pylist()
    assert [row["order_id"] for row in rows] == [4, 2, 3, 1]
    assert [str(field) for field in loaded(catalog).sort_order().fields] == [
        "2 ASC NULLS FIRST", "1 DESC NULLS LAST",
    ]  # fmt: skip


@pytest.mark.parametrize("mode", [{"mode": "append"}, UPSERT, {"mode": "overwrite"}])
def test_what_a_stranger_did_in_between_is_looked_at_again(
    catalog: OpenCatalog, mode: dict[str, Any]
) -> None:
    writer = Writer(opened(catalog, target(**mode)), SCHEMA)
    writer.write(order(1, "ada"))
    stranger = loaded(catalog)
    stranger.append(pa.Table.from_pylist([order(2, "old"), order(7, "own")], schema=SCHEMA))
    stranger.delete("order_id = 1")
    writer.write(order(1, "new"), order(2, "new"))
    expected = {
        "append": [(1, "new"), (2, "new"), (2, "old"), (7, "own")],
        "upsert": [(1, "new"), (2, "new"), (7, "own")],
        "overwrite": [(1, "new"), (2, "new")],
    }
    assert found(catalog, "order_id", "customer") == expected[mode["mode"]]


def test_what_was_written_for_nothing_is_taken_away(catalog: OpenCatalog, tmp_path: Path) -> None:
    writer = Writer(opened(catalog), SCHEMA)
    writer.write(order(1, "ada"))
    loaded(catalog).append(pa.Table.from_pylist([order(2, "bob")], schema=SCHEMA))
    writer.write(order(3, "kim"))
    files = {*tmp_path.glob("warehouse/raw/orders/data/**/*.parquet")}
    known = loaded(catalog).inspect.all_files().column("file_path").to_pylist()
    assert {f"file://{file}" for file in files} == {*known}


def test_one_snapshot_for_each_batch(catalog: OpenCatalog) -> None:
    writer = Writer(opened(catalog, target(**UPSERT)), SCHEMA)
    versions = [writer.write(order(1, "a")), writer.write(order(1, "b"))]
    assert [str(each.snapshot_id) for each in loaded(catalog).snapshots()] == versions
    assert writer.write() == versions[-1], "a batch that changes no file makes none"
    assert len(loaded(catalog).snapshots()) == len(versions)


def test_what_is_no_number_is_the_greatest(catalog: OpenCatalog) -> None:
    """As in Postgres and in Spark, within a batch and beside what is there."""
    schema = pa.schema([("n", pa.int64()), ("at", pa.float64()), ("x", pa.string())])
    wanted = target(mode="upsert", keys=["n"], orderBy="at")
    writer = Writer(opened(catalog, wanted, schema), schema)
    nan = float("nan")
    writer.write({"n": 1, "at": nan, "x": "a"}, {"n": 1, "at": 5.0, "x": "b"}, {"n": 2, "at": 5.0})
    writer.write({"n": 1, "at": 9.0, "x": "c"}, {"n": 2, "at": nan, "x": "d"})
    assert found(catalog, "n", "x") == [(1, "a"), (2, "d")]
    writer.write({"n": 1, "at": nan, "x": "e"})
    assert found(catalog, "n", "x") == [(1, "e"), (2, "d")]


STRUCTS = pa.list_(pa.struct([("x", pa.int64())]))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (STRUCTS, [{"x": 1}]),
        (pa.map_(pa.string(), pa.struct([("x", pa.int64())])), [("k", {"x": 1})]),
        (pa.struct([("list", STRUCTS)]), {"list": None}),
    ],
    ids=["list", "map", "in a struct"],
)
def test_a_list_that_is_null_stays_null(
    catalog: OpenCatalog, kind: pa.DataType, value: object
) -> None:
    schema = pa.schema([("n", pa.int64()), ("v", kind)])
    writer = Writer(opened(catalog, target(mode="upsert", keys=["n"]), schema), schema)
    rows: list[Any] = [{"n": 1, "v": None}, {"n": 2, "v": value}, {"n": 3, "v": None}]
    writer.write(*rows)
    writer.write({"n": 3, "v": value})
    seen = loaded(catalog).scan().to_arrow().sort_by("n").column("v").to_pylist()
    assert seen == [None, value, value]


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()])
def test_a_time_far_away_is_refused_alone(catalog: OpenCatalog, kind: pa.DataType) -> None:
    numbers = pa.int32() if pa.types.is_date(kind) else pa.int64()
    schema = pa.schema([("n", pa.int64()), ("at", kind)])
    sink = opened(catalog, target(), schema)
    for far, refused in ((2**30 if numbers == pa.int32() else 2**59, True), (0, False)):
        rows = pa.table({"n": [1], "at": pa.array([far], numbers).cast(kind)}, schema=schema)
        why = sink.find_refusal(rows.to_batches())
        assert why == (
            f"sink lake: table {NAME}: at is not in the years 1 to 9999" if refused else None
        )


def test_a_branch_of_a_stranger_is_in_nobodys_way(catalog: OpenCatalog) -> None:
    writer = Writer(opened(catalog), SCHEMA)
    writer.write(order(1, "ada"))
    table = loaded(catalog)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.manage_snapshots().create_branch(snapshot.snapshot_id, "try").commit()
    loaded(catalog).append(pa.Table.from_pylist([order(7, "own")], schema=SCHEMA), branch="try")
    writer.write(order(2, "bob"))
    assert numbers_in(catalog) == [1, 2]


def test_a_batch_that_cannot_be_written_leaves_no_files(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    wanted = target(**UPSERT, partitionBy=BY_CUSTOMER)
    writer = Writer(opened(catalog, wanted), SCHEMA)
    writer.write(order(1, "ada"), order(2, "bob"))
    files = {*tmp_path.glob("warehouse/raw/orders/data/**/*.parquet")}
    aside = [path.rename(path.with_suffix(".aside")) for path in sorted(files)[1:]]
    with pytest.raises(SinkUnreachable):
        writer.write(order(1, "eva"), order(2, "eva"))
    for path in aside:
        path.rename(path.with_suffix(".parquet"))
    assert {*tmp_path.glob("warehouse/raw/orders/data/**/*.parquet")} == files


@pytest.mark.parametrize("end", ["\ud7ff", "\U0010ffff", "\ud7ff\U0010ffff", "a"])
def test_a_text_is_written_whatever_its_statistics_are_cut_to(
    catalog: OpenCatalog, end: str
) -> None:
    """They have sixteen characters, and the last one is taken as the next, if there is one."""
    text = "x" * (16 - len(end)) + end + "yy"
    sink = opened(catalog)
    sink.write(batch([1], [text]), make_fence(sequence=0))
    sink.write(batch([2], ["\U0010ffff" * 17]), make_fence(sequence=1))
    for found in (text, "\U0010ffff" * 17):
        row_filter = EqualTo(term=Reference("customer"), value=literal(found))
        rows = loaded(catalog).scan(row_filter=row_filter).to_arrow()
        assert rows.column("customer").to_pylist() == [found]


@pytest.mark.parametrize(("kind", "bits"), [(pa.int32(), 32), (pa.int64(), 64)])
def test_a_key_is_found_where_truncating_leaves_its_type(
    catalog: OpenCatalog, kind: pa.DataType, bits: int
) -> None:
    """Its partition is at the other end of the type."""
    schema = pa.schema([("order_id", kind), ("customer", pa.string())])
    by = [{"column": "order_id", "transform": "truncate[10]"}]
    sink = opened(catalog, target(**UPSERT, partitionBy=by), schema)
    least = -(1 << (bits - 1))
    for sequence, customer in enumerate(("ada", "bob", "eve")):
        keys = [least, least + 5, least + 9, -1, 0]
        sink.write(batch(keys, [customer] * 5, schema), make_fence(sequence=sequence))
    assert sorted(numbers_in(catalog)) == sorted(keys)
    assert {*loaded(catalog).scan().to_arrow().column("customer").to_pylist()} == {"eve"}


def batch(
    numbers: list[int], customers: list[str], schema: pa.Schema = SCHEMA
) -> list[pa.RecordBatch]:
    told = {"order_id": numbers, "customer": customers}
    return [*pa.table(told, schema=schema).to_batches()]
