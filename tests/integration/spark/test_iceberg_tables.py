"""What an Iceberg table is made like, and what of it changes with a manifest or by others."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    NestedField,
)

from builders import make_fence
from integration.spark.iceberg_sinks import (
    KINDS,
    NAME,
    SCHEMA,
    as_rows,
    as_table,
    loaded,
    local,
    made,
    numbers_in,
    opened,
    refusals,
    target,
)
from waybill_shared.contract.errors import UserError
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.fitting import plan_change
from waybill_spark.sinks.iceberg.tables import NOTHING, IcebergTarget
from waybill_spark.tracking.sink import SinkSuperseded
from waybill_spark.tracking.stopping import StageStopped

WIDER_DECIMAL = "decimal(9, 2), was decimal(4, 2)"
WIDER = pa.schema([*SCHEMA, ("tax", pa.float64())])


@pytest.fixture
def catalog(tmp_path: Path) -> OpenCatalog:
    return local(tmp_path)


def test_a_new_name_of_a_column_is_told_with_the_statement_that_gives_it(
    catalog: OpenCatalog,
) -> None:
    opened(catalog).write(as_rows(1), make_fence(sequence=0))
    first, *rest = SCHEMA
    schema = pa.schema([("renamed", first.type), *rest])
    (said,) = plan_change(target(schemaEvolution="add"), loaded(catalog), schema).describe()
    assert said.startswith("gets a column renamed, ")
    assert said.endswith(f"ALTER TABLE raw.orders RENAME COLUMN {first.name} TO renamed")


def test_a_column_that_came_is_added_with_the_first_rows(catalog: OpenCatalog) -> None:
    opened(catalog).write(as_rows(1), make_fence(sequence=0))
    wanted = target(schemaEvolution="add")
    assert [*plan_change(wanted, loaded(catalog), WIDER).describe()] == [
        "gets a column tax, double"
    ]
    sink = opened(catalog, wanted, WIDER)
    sink.write(None, make_fence(sequence=1))
    assert "tax" not in loaded(catalog).schema().column_names
    rows = as_table(2).append_column("tax", pa.array([0.5]))
    sink.write(rows.to_batches(), make_fence(sequence=2))
    sink.write(rows.to_batches(), make_fence(sequence=3))
    table = loaded(catalog)
    assert table.scan().to_arrow().column("tax").to_pylist().count(None) == 1
    assert len(table.schemas()) == 2
    assert not table.schema().find_field("tax").required


def test_two_drivers_one_of_which_adds_a_column(catalog: OpenCatalog) -> None:
    opened(catalog).write(as_rows(1), make_fence(sequence=0))
    paused = opened(catalog)
    newer = opened(catalog, target(schemaEvolution="add"), WIDER)
    rows = as_table(2).append_column("tax", pa.array([0.5]))
    newer.write(rows.to_batches(), make_fence(sequence=1))
    with pytest.raises(SinkSuperseded):
        paused.write(as_rows(2), make_fence(sequence=1))
    assert numbers_in(catalog) == [1, 2]


def test_a_column_that_the_query_lost_stays_null(catalog: OpenCatalog) -> None:
    opened(catalog).write(as_rows(1), make_fence(sequence=0))
    fewer = pa.schema([SCHEMA.field("order_id")])
    rows = as_table(2).select(["order_id"]).to_batches()
    opened(catalog, target(), fewer).write(rows, make_fence(sequence=1))
    customers = loaded(catalog).scan().to_arrow().column("customer").to_pylist()
    assert sorted(customers, key=str) == [None, "ada"]


@pytest.mark.parametrize(
    ("before", "given", "value", "said"),
    [
        (IntegerType(), pa.int64(), 2**40, "long, was int"),
        (FloatType(), pa.float64(), 0.1, "double, was float"),
        (DecimalType(4, 2), pa.decimal128(9, 2), Decimal("1234.56"), WIDER_DECIMAL),
    ],
)  # fmt: skip
def test_a_type_is_widened_with_the_first_rows(
    catalog: OpenCatalog,
    before: IcebergType,
    given: pa.DataType,
    value: object,
    said: str,
) -> None:
    made(catalog, NestedField(1, "n", before))
    schema, wanted = pa.schema([("n", given)]), target(schemaEvolution="widen")
    assert [*plan_change(wanted, loaded(catalog), schema).describe()] == [
        f"gets a wider column n: {said}"
    ]
    rows = pa.table({"n": [value]}, schema=schema).to_batches()
    opened(catalog, wanted, schema).write(rows, make_fence(sequence=0))
    assert loaded(catalog).scan().to_arrow().column("n").to_pylist() == [value]


def test_a_table_is_made_as_the_manifest_says(catalog: OpenCatalog) -> None:
    wanted = target(
        partitionBy=[
            {"column": "day", "transform": "month"},
            {"column": "n", "transform": "bucket[8]", "as": "shard"},
        ],
        sortBy=[{"column": "n"}],
        properties={"write.target-file-size-bytes": "1000000", "format-version": "2"},
    )  # fmt: skip
    opened(catalog, wanted, KINDS)
    table = loaded(catalog)
    assert [(field.name, str(field.transform)) for field in table.spec().fields] == [
        ("day_month", "month"), ("shard", "bucket[8]"),
    ]  # fmt: skip
    assert table.properties["write.target-file-size-bytes"] == "1000000"
    assert plan_change(wanted, table, KINDS) == NOTHING


def test_what_a_manifest_says_of_itself_and_its_table_is_set_when_it_changes(
    catalog: OpenCatalog,
) -> None:
    opened(catalog).write(as_rows(1), make_fence(sequence=0))
    told = {"comment": "Orders, taxed.", "waybill.tags": "shop, pii"}
    settings = target(properties={"owner": "shop"}).settings
    wanted = IcebergTarget(sink="lake", settings=settings, pipeline_uid="uid", properties=told)
    opened(catalog, wanted).write(as_rows(2), make_fence(sequence=1))
    properties = loaded(catalog).properties
    assert {**told, "owner": "shop"}.items() <= properties.items()


def test_a_table_that_exists_keeps_its_partitions(catalog: OpenCatalog) -> None:
    opened(catalog, target(uid="another", partitionBy=[{"column": "customer"}]))
    (said,) = refusals(target(partitionBy=[{"column": "order_id"}]), catalog, SCHEMA)
    assert said == (
        "it is partitioned by identity(customer) as customer, the manifest says"
        " identity(order_id): leave partitionBy out, or change the table with an Iceberg client"
    )
    for same in ([{"column": "customer", "as": "customer"}], None):
        plan_change(target(partitionBy=same), loaded(catalog), SCHEMA)


def test_who_made_a_table_partitions_it_anew_and_old_files_stay(catalog: OpenCatalog) -> None:
    opened(catalog, target(partitionBy=[{"column": "customer"}])).write(
        as_rows(1, 2), make_fence(sequence=0)
    )
    wanted = target(partitionBy=[{"column": "order_id", "transform": "bucket[2]"}])
    (said,) = plan_change(wanted, loaded(catalog), SCHEMA).describe()
    assert said == "gets new partitions: bucket[2](order_id); files that are there stay as they are"
    opened(catalog, wanted).write(as_rows(3), make_fence(sequence=1))
    table = loaded(catalog)
    assert [field.name for field in table.spec().fields] == ["order_id_bucket_2"]
    assert numbers_in(catalog) == [1, 2, 3]
    assert {task.file.spec_id for task in table.scan().plan_files()} == {0, 1}
    back = target(partitionBy=[{"column": "customer"}])
    opened(catalog, back).write(as_rows(4), make_fence(sequence=2))
    assert [field.name for field in loaded(catalog).spec().fields] == ["customer"]
    assert table.scan(row_filter="customer = 'bob'").to_arrow().num_rows == 1


@pytest.mark.parametrize("strange", [(), (5,)], ids=["no rows", "rows"])
def test_a_column_that_a_stranger_drops_is_noticed_at_once(
    catalog: OpenCatalog, strange: tuple[int, ...]
) -> None:
    """Also where no snapshot tells of it; the hint says a way out."""
    sink = opened(catalog)
    sink.write(as_rows(1), make_fence(sequence=0))
    with loaded(catalog).update_schema() as update:
        update.delete_column("customer")
    if strange:
        loaded(catalog).append(as_table(*strange).select(["order_id"]))
    with pytest.raises(UserError, match="it has no column customer"):
        sink.write(as_rows(2), make_fence(sequence=1))
    assert numbers_in(catalog) == [1, *strange]


def test_a_partitioning_that_a_stranger_changed_is_taken_on(catalog: OpenCatalog) -> None:
    sink = opened(catalog)
    sink.write(as_rows(1), make_fence(sequence=0))
    with loaded(catalog).update_spec() as spec:
        spec.add_field("customer", "identity")
    loaded(catalog).append(as_table(5))
    sink.write(as_rows(2), make_fence(sequence=1))
    assert numbers_in(catalog) == [1, 2, 5]


def test_a_column_that_a_stranger_adds_first_is_taken(catalog: OpenCatalog) -> None:
    opened(catalog).write(as_rows(1), make_fence(sequence=0))
    sink = opened(catalog, target(schemaEvolution="add"), WIDER)
    with loaded(catalog).update_schema() as update:
        update.add_column("tax", DoubleType())
    sink.write(None, make_fence(sequence=1))
    rows = as_table(2).append_column("tax", pa.array([0.5])).to_batches()
    sink.write(rows, make_fence(sequence=2))
    assert numbers_in(catalog) == [1, 2]


def test_a_lost_column_by_which_the_table_is_partitioned_is_null(catalog: OpenCatalog) -> None:
    opened(catalog, target(partitionBy=[{"column": "customer"}])).write(
        as_rows(1), make_fence(sequence=0)
    )
    fewer = pa.schema([SCHEMA.field("order_id")])
    rows = as_table(2).select(["order_id"]).to_batches()
    opened(catalog, target(), fewer).write(rows, make_fence(sequence=1))
    assert numbers_in(catalog) == [1, 2]


def test_one_more_partition_field_beside_those_that_stay(catalog: OpenCatalog) -> None:
    customer = {"column": "customer"}
    opened(catalog, target(partitionBy=[customer])).write(as_rows(1), make_fence(sequence=0))
    bucket = {"column": "order_id", "transform": "bucket[2]"}
    opened(catalog, target(partitionBy=[customer, bucket])).write(
        as_rows(2), make_fence(sequence=1)
    )
    names = [field.name for field in loaded(catalog).spec().fields]
    assert names == ["customer", "order_id_bucket_2"]
    again = target(partitionBy=[{**bucket, "transform": "bucket[3]", "as": "order_id_bucket_2"}])
    (said,) = refusals(again, catalog, SCHEMA)
    assert "a partition order_id_bucket_2 is bucket[2](order_id) in older files" in said


def test_a_table_that_was_made_anew_is_not_the_one_before(catalog: OpenCatalog) -> None:
    sink = opened(catalog)
    sink.write(as_rows(1), make_fence(sequence=0))
    catalog.tables.drop_table(NAME)
    catalog.tables.create_table(NAME, schema=SCHEMA)
    with pytest.raises(StageStopped, match="was created again"):
        sink.write(as_rows(2), make_fence(sequence=1))


def test_rows_are_sorted_as_the_manifest_says_whoever_made_the_table(catalog: OpenCatalog) -> None:
    opened(catalog, target(uid="another"))
    wanted = target(sortBy=[{"column": "order_id"}])
    opened(catalog, wanted).write(as_rows(3, 1, 2), make_fence(sequence=0))
    assert loaded(catalog).scan().to_arrow().column("order_id").to_pylist() == [1, 2, 3]


def test_a_table_of_others_keeps_its_own_description(catalog: OpenCatalog) -> None:
    opened(catalog, target(uid="another")).write(as_rows(1), make_fence(sequence=0))
    settings = target(properties={"owner": "shop"}).settings
    wanted = IcebergTarget(
        sink="lake", settings=settings, pipeline_uid="uid", properties={"comment": "mine"}
    )
    opened(catalog, wanted).write(as_rows(2), make_fence(sequence=1))
    properties = loaded(catalog).properties
    assert ("comment" in properties, properties["owner"]) == (False, "shop")
