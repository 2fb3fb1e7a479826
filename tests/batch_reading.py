"""How stages of tests take batches, and the rows of one that is here."""

import pyarrow as pa

from waybill_spark.driver.reading.topics import BatchLimits
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.distributed_rows import DistributedRows


def in_pieces_of(bytes_max: int, rows_max: int = 1_000_000) -> BatchLimits:
    return BatchLimits(
        rows_max=rows_max,
        bytes_max=bytes_max,
        distribute=lambda frame: BatchRows({}),
        may_distribute=lambda: False,
    )


def tables_of(batch: BatchRows) -> dict[str, pa.Table]:
    """Also of what lies with executors, which is not empty."""
    return {
        name: pa.Table.from_batches(rows) if isinstance(rows, DistributedRows) else rows
        for name, rows in batch.by_sink.items()
    }
