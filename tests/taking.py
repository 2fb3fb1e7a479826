"""How stages of tests take batches, and the rows of one that is here."""

import pyarrow as pa

from waybill_spark.driver.reading.topics import BatchTaking
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.distributed_rows import SpreadRows


def in_pieces_of(bytes_max: int, rows_max: int = 1_000_000) -> BatchTaking:
    return BatchTaking(
        rows_max=rows_max,
        bytes_max=bytes_max,
        spread=lambda frame: BatchRows({}),
        may_spread=lambda: False,
    )


def tables_of(batch: BatchRows) -> dict[str, pa.Table]:
    """Also of what lies with executors, which is not empty."""
    return {
        name: pa.Table.from_batches(rows) if isinstance(rows, SpreadRows) else rows
        for name, rows in batch.by_sink.items()
    }
