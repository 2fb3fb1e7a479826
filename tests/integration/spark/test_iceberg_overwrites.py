"""What a batch that replaces takes away: the table, or the partitions of its rows."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from builders import make_fence
from integration.spark.iceberg_sinks import (
    SCHEMA,
    as_rows,
    loaded,
    local,
    numbers_in,
    opened,
    target,
)
from integration.spark.test_iceberg_modes import BY_CUSTOMER, Writer, order
from waybill_shared.contract.errors import UserError
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog


@pytest.fixture
def catalog(tmp_path: Path) -> OpenCatalog:
    return local(tmp_path)


def test_each_batch_replaces_the_table(catalog: OpenCatalog) -> None:
    writer = Writer(opened(catalog, target(mode="overwrite")), SCHEMA)
    first = writer.write(order(1, "ada"), order(2, "bob"))
    writer.write(order(3, "kim"))
    assert numbers_in(catalog) == [3]
    assert numbers_in(catalog, int(first)) == [1, 2]
    writer.write()
    assert numbers_in(catalog) == []


DATED = pa.schema([("order_id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])


def on(order_id: int, day: int) -> Any:  # noqa: ANN401
    return {"order_id": order_id, "at": datetime(2026, 1, day, order_id % 24, tzinfo=UTC)}


@pytest.mark.parametrize("transform", ["day", "month"])
def test_each_batch_replaces_the_partitions_that_its_rows_lie_in(
    catalog: OpenCatalog, transform: str
) -> None:
    parts = [{"column": "at", "transform": transform}]
    wanted = target(mode="overwrite", overwrite="partitions", partitionBy=parts)
    writer = Writer(opened(catalog, wanted, DATED), DATED)
    writer.write(on(1, 1), on(2, 1), on(3, 2))
    writer.write(on(4, 2))
    assert numbers_in(catalog) == ([1, 2, 4] if transform == "day" else [4])
    writer.write()
    assert numbers_in(catalog) == ([1, 2, 4] if transform == "day" else [4])


def test_files_of_an_older_partitioning_lose_only_rows_of_these_partitions(
    catalog: OpenCatalog,
) -> None:
    Writer(opened(catalog, target(), DATED), DATED).write(on(1, 1), on(2, 2), on(3, 3))
    with loaded(catalog).update_spec() as spec:
        spec.add_field("at", "day")
    wanted = target(mode="overwrite", overwrite="partitions")
    sink = opened(catalog, wanted, DATED)
    rows = pa.Table.from_pylist([on(4, 2)], schema=DATED).to_batches()
    sink.write(rows, make_fence(sequence=1))
    assert numbers_in(catalog) == [1, 3, 4]


def test_a_table_without_partitions_has_none_to_overwrite(catalog: OpenCatalog) -> None:
    opened(catalog).write(as_rows(1), make_fence(sequence=0))
    with pytest.raises(UserError, match="no partitions to overwrite"):
        opened(catalog, target(mode="overwrite", overwrite="partitions"))


def test_partitions_that_a_stranger_takes_away_do_not_take_the_table(
    catalog: OpenCatalog,
) -> None:
    wanted = target(mode="overwrite", overwrite="partitions", partitionBy=BY_CUSTOMER)
    writer = Writer(opened(catalog, wanted), SCHEMA)
    writer.write(order(1, "ada"))
    made_by = {"waybill.made-by": "somebody"}
    with loaded(catalog).transaction() as transaction:
        transaction.set_properties(made_by)
        with transaction.update_spec() as spec:
            spec.remove_field("customer")
    with pytest.raises(UserError, match="it is partitioned by nothing"):
        writer.write(order(2, "bob"))
    assert numbers_in(catalog) == [1]
