"""Tables of many small files, which tasks keep in order."""

from typing import Any

from builders import make_fence
from integration.spark.iceberg_sinks import (
    LIFE,
    SCHEMA,
    as_rows,
    loaded,
    opened,
    target,
)
from integration.spark.table_ages import Hand
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.sink import IcebergSink

LATER_MS = 10**15
SIZE = 10_000_000
BY_CUSTOMER = {"partitionBy": [{"column": "customer"}]}
UPSERT: dict[str, Any] = {"mode": "upsert", "keys": ["order_id"]}


def filled(catalog: OpenCatalog, batches: int, **settings: Any) -> IcebergSink:  # noqa: ANN401
    sink = opened(catalog, target(**settings))
    for sequence in range(batches):
        sink.write(as_rows(2 * sequence, 2 * sequence + 1), make_fence(sequence=sequence))
    return sink


def paths(catalog: OpenCatalog) -> list[str]:
    return [task.file.file_path for task in loaded(catalog).scan().plan_files()]


def read_each(catalog: OpenCatalog) -> dict[int, list[Any]]:
    """Return the rows of each snapshot."""
    table = loaded(catalog)
    return {
        snapshot.snapshot_id: table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()
        for snapshot in table.snapshots()
    }


KEPT: dict[str, Any] = {
    "maintenance": {"compact": {}, "expireSnapshots": {"olderThan": "1 day", "keep": 3}}
}


def kept(catalog: OpenCatalog, clock: Hand) -> IcebergSink:
    sink = IcebergSink(LIFE, catalog, target(**KEPT), schema=SCHEMA, clock=clock)
    sink.claim()
    return sink
