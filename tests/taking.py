"""How stages of tests take batches, and the rows of one that is here."""

import pyarrow as pa

from waybill_spark.driver.topics import BatchTaking
from waybill_spark.sinks.rows import BatchRows


def in_pieces_of(bytes_max: int, rows_max: int = 1_000_000) -> BatchTaking:
    return BatchTaking(
        rows_max=rows_max,
        bytes_max=bytes_max,
        spread=lambda frame: BatchRows({}),
        may_spread=lambda: False,
    )


def tables_of(batch: BatchRows) -> dict[str, pa.Table]:
    tables = {**batch.by_sink}
    assert all(isinstance(table, pa.Table) for table in tables.values()), "executors have them"
    return tables
