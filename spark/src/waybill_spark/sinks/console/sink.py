"""The console sink: the first rows of each batch as a table in the driver's log.

They are printed before the fence moves, so a batch that comes again is printed again.
"""

import logging
from collections.abc import Iterable

import pyarrow as pa

from waybill_shared.contract.events import Fence
from waybill_spark.kafka.fence_topic.moving import FenceTransactions
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.sinks.console.table import draw
from waybill_spark.tracking.sink import SinkLife, Written

logger = logging.getLogger(__name__)


class ConsoleSink:
    def __init__(self, life: SinkLife, fences: Fences, *, rows_max: int) -> None:
        self.name = life.name
        self.since = life.since
        self.key = life.key
        self.moved = life.moved
        self._transactions = FenceTransactions(f"sink {life.name}", life.fence_key, fences)
        self._rows_max = rows_max

    def claim(self) -> None:
        self._transactions.claim()

    def last(self) -> Written | None:
        fence = self._transactions.last()
        return None if fence is None else Written(fence=fence, version={})

    def write(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> Written:
        batches = [batch for batch in rows or () if batch.num_rows]
        if batches:
            table = draw(pa.Table.from_batches(batches), self._rows_max)
            logger.info("sink %s, batch %d\n%s", self.name, fence.batch.batch_id, table)
        moved = self._transactions.move(lambda producer: fence)
        return Written(fence=moved, version={})

    def find_refusal(self, rows: Iterable[pa.RecordBatch]) -> str | None:
        return None

    def await_visible(self, fence: Fence) -> bool:
        """Return True: a log has no readers that wait for anything."""
        return True

    def close(self) -> None:
        self._transactions.close()
