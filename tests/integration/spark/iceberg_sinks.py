"""Iceberg sinks on a real catalog, and their tables as a reader finds them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import NestedField

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.iceberg import IcebergSinkSettings
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog, open_local
from waybill_spark.sinks.iceberg.fitting import plan_change
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.sinks.iceberg.tables import IcebergTarget, find_table
from waybill_spark.tracking.sink import Sink, SinkLife

NAME: Final = "raw.orders"
LIFE: Final = SinkLife(name="lake", since=1, fence_key="here/waybill/default/uid/load/lake@1")
SCHEMA: Final = pa.schema([("order_id", pa.int64()), ("customer", pa.string())])
KINDS: Final = pa.schema(
    [
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("day", pa.date32()),
        ("name", pa.string()),
        ("list", pa.list_(pa.int64())),
        ("flag", pa.bool_()),
    ]
)
FLAGGED: Final = pa.schema([*SCHEMA, ("void", pa.bool_())])


def local(folder: Path) -> OpenCatalog:
    return open_local(folder, "sink lake")


def target(uid: str = "uid", **settings: Any) -> IcebergTarget:  # noqa: ANN401
    told = IcebergSinkSettings.model_validate({"table": NAME, **settings})
    return IcebergTarget(sink="lake", settings=told, pipeline_uid=uid)


def opened(
    catalog: OpenCatalog, wanted: IcebergTarget | None = None, schema: pa.Schema | None = SCHEMA
) -> IcebergSink:
    sink = IcebergSink(LIFE, catalog, wanted or target(), schema=schema)
    sink.claim()
    sink.last()
    return sink


def as_table(*numbers: int) -> pa.Table:
    customers = ["ada" if number % 2 else "bob" for number in numbers]
    return pa.table({"order_id": list(numbers), "customer": customers}, schema=SCHEMA)


def as_rows(*numbers: int) -> list[pa.RecordBatch]:
    return [*as_table(*numbers).to_batches()]


def loaded(catalog: OpenCatalog) -> Table:
    return catalog.tables.load_table(NAME)


def numbers_in(catalog: OpenCatalog, snapshot_id: int | None = None) -> list[int]:
    found = loaded(catalog).scan(snapshot_id=snapshot_id).to_arrow()
    return sorted(found.column("order_id").to_pylist())


def made(catalog: OpenCatalog, *columns: NestedField, **properties: str) -> None:
    catalog.tables.create_namespace("raw")
    catalog.tables.create_table(NAME, Schema(*columns), properties=properties)


def refusals(wanted: IcebergTarget, catalog: OpenCatalog, schema: pa.Schema) -> list[str]:
    """Each with its hint."""
    with pytest.raises(UserError) as refused:
        plan_change(wanted, find_table(catalog.tables, NAME), schema)
    prefix = f"sink lake: table {NAME}: "
    return [f"{p.message.removeprefix(prefix)}: {p.hint}" for p in refused.value.problems]


@dataclass
class TablePlace:
    """Where rows are only added, or take the place of those with their keys: of each number in the
    contract one row."""

    catalog: OpenCatalog
    settings: dict[str, Any]
    schema: pa.Schema = SCHEMA

    def sink(self, since: int = 1) -> Sink:
        life = replace(LIFE, since=since, fence_key=f"{LIFE.fence_key}@{since}")
        return IcebergSink(life, self.catalog, target(**self.settings), schema=self.schema)

    def rows(self, *numbers: int) -> Iterable[pa.RecordBatch]:
        if self.schema is SCHEMA:
            return as_rows(*numbers)
        flags = pa.array([False] * len(numbers))
        return [*as_table(*numbers).append_column("void", flags).to_batches()]

    def read(self) -> list[int]:
        return numbers_in(self.catalog)


@dataclass
class ErasingPlace(TablePlace):
    """Where a batch erases what was there: what readers have seen is what it is judged by."""

    def read(self) -> list[int]:
        """Of every snapshot what it has that the one before had not."""
        seen: list[int] = []
        before: list[int] = []
        for snapshot in loaded(self.catalog).snapshots() if self._is_made() else ():
            now = numbers_in(self.catalog, snapshot.snapshot_id)
            seen += [number for number in now if number not in before]
            before = now
        return seen

    def _is_made(self) -> bool:
        return self.catalog.tables.table_exists(NAME)
