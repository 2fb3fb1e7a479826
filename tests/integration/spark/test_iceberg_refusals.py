"""What an Iceberg table does not take, and what a manifest cannot ask of one."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import (
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)

from builders import make_fence
from integration.spark.iceberg_sinks import (
    KINDS,
    NAME,
    SCHEMA,
    as_rows,
    loaded,
    local,
    made,
    opened,
    refusals,
    target,
)
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.fitting import plan_change

UNPARTITIONED = "which cannot be partitioned by"
UPSERT: dict[str, Any] = {"mode": "upsert", "keys": ["n"]}


@pytest.fixture
def catalog(tmp_path: Path) -> OpenCatalog:
    return local(tmp_path)


def test_what_a_table_does_not_take_is_told_by_column(catalog: OpenCatalog) -> None:
    made(
        catalog,
        NestedField(1, "n", IntegerType()),
        NestedField(2, "note", StringType()),
        NestedField(3, "day", DateType(), required=True),
        NestedField(4, "city", StringType(), required=True),
    )
    rows = {"n": pa.int64(), "note": pa.binary(), "day": pa.date32(), "more": pa.int64()}
    missing, number, note, day, city = refusals(target(), catalog, pa.schema([*rows.items()]))
    assert missing == (
        "it has no column more: add more to the table with an Iceberg client, write"
        " schemaEvolution: add, or leave it out of the query; columns of the table: n, note, day,"
        " city"
    )
    assert number == (
        "its column n is int, the query gives long: write schemaEvolution: widen, or"
        " ALTER TABLE raw.orders ALTER COLUMN n TYPE bigint"
    )
    assert note == (
        "its column note is string, the query gives binary: cast it in the query:"
        " CAST(note AS string), or give it another name"
    )
    assert day == (
        "its column day requires a value, and the query's may be null:"
        " ALTER TABLE raw.orders ALTER COLUMN day DROP NOT NULL"
    )
    assert city == (
        "its column city requires a value, and the query gives none: add it to the query, or"
        " ALTER TABLE raw.orders ALTER COLUMN city DROP NOT NULL"
    )


def test_a_narrower_type_is_taken(catalog: OpenCatalog) -> None:
    made(catalog, NestedField(1, "n", LongType()))
    plan_change(target(), loaded(catalog), pa.schema([("n", pa.int32())]))


@pytest.mark.parametrize(
    ("before", "given"),
    [
        (StringType(), pa.binary()),
        (IntegerType(), pa.float64()),
        (DecimalType(9, 2), pa.decimal128(9, 3)),
    ],
)
def test_other_types_are_refused_whatever_may_change(
    catalog: OpenCatalog,
    before: IcebergType,
    given: pa.DataType,
) -> None:
    made(catalog, NestedField(1, "n", before))
    (said,) = refusals(target(schemaEvolution="widen"), catalog, pa.schema([("n", given)]))
    assert "give it another name" in said


def test_a_column_of_another_spelling_is_not_added(catalog: OpenCatalog) -> None:
    made(catalog, NestedField(1, "Tax", LongType()))
    (said,) = refusals(target(schemaEvolution="add"), catalog, pa.schema([("tax", pa.int64())]))
    assert (
        said
        == "it has a column Tax, and the query gives tax: Spark takes them for one: spell it alike"
    )


def by(column: str, transform: str) -> dict[str, Any]:
    return {"partitionBy": [{"column": column, "transform": transform}]}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (by("x", "bucket[4]"), f"x is double, {UNPARTITIONED} bucket[4]"),
        (by("name", "day"), f"name is string, {UNPARTITIONED} day"),
        (by("x", "identity"), f"x is double, {UNPARTITIONED} identity"),
        (by("list", "identity"), f"{UNPARTITIONED} identity"),
        ({"sortBy": [{"column": "list"}]}, "it has no order"),
        ({"mode": "upsert", "keys": ["list"]}, "key list is list<long>"),
        ({"mode": "upsert", "keys": ["x"]}, "key x is double"),
        ({**UPSERT, "orderBy": "list"}, "it has no order"),
        ({**UPSERT, "deleteWhere": "name"}, "deleteWhere name is string, not boolean"),
        ({"create": False}, "there is no such table"),
    ],
)
def test_what_cannot_be_asked_of_a_column_is_refused(
    catalog: OpenCatalog, settings: dict[str, Any], said: str
) -> None:
    (told,) = refusals(target(**settings), catalog, KINDS)
    assert said in told


def test_deletes_need_format_version_2(catalog: OpenCatalog) -> None:
    made(catalog, NestedField(1, "n", LongType()), **{"format-version": "1"})
    schema = pa.schema([("n", pa.int64())])
    plan_change(target(), loaded(catalog), schema)
    (said,) = refusals(target(mode="upsert", keys=["n"]), catalog, schema)
    assert "ALTER TABLE raw.orders SET TBLPROPERTIES ('format-version'='2')" in said


def test_a_key_is_not_added_to_rows_that_have_none(catalog: OpenCatalog) -> None:
    opened(catalog).write(as_rows(1), make_fence(sequence=0))
    wanted = target(mode="upsert", keys=["number"], schemaEvolution="add")
    (said,) = refusals(wanted, catalog, pa.schema([*SCHEMA, ("number", pa.int64())]))
    assert said.startswith("it has no column number, which is a key: no row has one")


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (pa.schema([("d", pa.duration("us"))]), "Iceberg has no type for d, duration[us]"),
        (
            pa.schema([("a", pa.struct([("b", pa.int64())])), ("a.b", pa.int64())]),
            "column a.b has the name of a field of a",
        ),
    ],
)
def test_what_no_table_can_have_is_refused(
    catalog: OpenCatalog, schema: pa.Schema, said: str
) -> None:
    (told,) = refusals(target(), catalog, schema)
    assert told.startswith(said)


@pytest.mark.parametrize("wrap", [pa.list_, lambda kind: pa.struct([("f", kind)])])
def test_nested_types_are_taken_as_strictly(catalog: OpenCatalog, wrap: Any) -> None:  # noqa: ANN401
    catalog.tables.create_namespace("raw")
    schema = pa.schema([("n", wrap(pa.decimal128(10, 2)))])
    catalog.tables.create_table(NAME, schema=schema)
    plan_change(target(), loaded(catalog), pa.schema([("n", wrap(pa.decimal128(9, 2)))]))
    (said,) = refusals(target(), catalog, pa.schema([("n", wrap(pa.decimal128(10, 4)))]))
    assert said.startswith("its column n is ")


def test_a_table_partitioned_by_numbers_with_fractions_is_refused(catalog: OpenCatalog) -> None:
    catalog.tables.create_namespace("raw")
    catalog.tables.create_table(NAME, schema=pa.schema([("x", pa.float64())]))
    with loaded(catalog).update_spec() as spec:
        spec.add_identity("x")
    (said,) = refusals(target(), catalog, pa.schema([("x", pa.float64())]))
    assert said.startswith("it is partitioned by x, double")


def test_a_wider_type_may_still_lack_a_value(catalog: OpenCatalog) -> None:
    made(catalog, NestedField(1, "n", IntegerType(), required=True))
    wanted = target(schemaEvolution="widen")
    (said,) = refusals(wanted, catalog, pa.schema([("n", pa.int64())]))
    assert said.startswith("its column n requires a value")


def test_partitions_are_not_overwritten_where_there_will_be_none(catalog: OpenCatalog) -> None:
    (said,) = refusals(target(mode="overwrite", overwrite="partitions"), catalog, SCHEMA)
    assert said.startswith("it has no partitions to overwrite")
