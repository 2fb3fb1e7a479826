"""The Iceberg sink: one snapshot per batch, with the fence as a table property in the same commit.

The commit requires the snapshot that was current when the fence was read, and never retries by
itself: a driver that lost its turn is refused instead of doubling rows. Where only a stranger came
in between, all of it is done again, as an upsert must look at what came.
"""

import logging
import random
import time
from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from waybill_shared.contract import codec
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Fence, Problem
from waybill_shared.contract.words import StopReason
from waybill_shared.process.clock import Clocks, SystemClock
from waybill_shared.process.failpoints import reach
from waybill_spark.sinks.contract import (
    RowsRefused,
    SinkLife,
    SinkSuperseded,
    SinkUnreachable,
    Written,
)
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.connection import Reached, told
from waybill_spark.sinks.iceberg.files import CommitFiles
from waybill_spark.sinks.iceberg.fitting import fitting
from waybill_spark.sinks.iceberg.keyed import keyless
from waybill_spark.sinks.iceberg.modes import change_files
from waybill_spark.sinks.iceberg.tables import (
    NOTHING,
    Alteration,
    IcebergTarget,
    find_table,
    make_table,
)
from waybill_spark.stopping import StageStopped

logger = logging.getLogger(__name__)

NO_KEY_HINT: Final = "leave such rows out in the query: WHERE … IS NOT NULL; or coalesce the key"
FENCE_PROPERTY: Final = "waybill.fence."
SEQUENCE_PROPERTY: Final = "waybill.sequence."
RETRIES_PROPERTY: Final = "commit.retry.num-retries"
CONFLICTS_MS: Final = 60_000  # so long others may come in between
PAUSE_S: Final = 0.05  # before the first new try; up to twice as long each time
PAUSE_MAX_S: Final = 2.0


class IcebergSink:
    def __init__(
        self,
        life: SinkLife,
        catalog: OpenCatalog,
        target: IcebergTarget,
        *,
        schema: pa.Schema | None,
        clock: Clocks | None = None,
    ) -> None:
        """Without a schema the sink can only be read: the table is not made if it is missing."""
        self.name = life.name
        self.since = life.since
        self.moved = life.moved
        self._catalog = catalog.tables
        self._reached = Reached(f"sink {life.name}: table {target.name}", catalog.place)
        self._target = target
        self._schema = schema
        self._fence_key = life.fence_key
        self._clock = clock or SystemClock()
        self._table: Table | None = None
        self._alteration: Alteration = NOTHING

    def claim(self) -> None:
        """Nothing to shut out: the commit's own requirement refuses a writer of the past."""
        with told(self._reached):
            self._table = find_table(self._catalog, self._target.name)
        if self._schema is None:
            return
        self._alteration = fitting(self._target, self._table, self._schema)
        if self._table is None:
            with told(self._reached):
                self._table = make_table(self._catalog, self._target, self._schema)
            self._alteration = fitting(self._target, self._table, self._schema)

    def last(self) -> Written | None:
        if self._table is None:
            return None
        fence = self._fence(self._table)
        return None if fence is None else self._written(fence)

    def write(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> Written:
        """An empty batch makes a snapshot too: only a new snapshot refuses a paused driver."""
        if self._table is None and self._schema is None:
            detail = f"sink {self.name}: there is no table {self._target.name}"
            raise StageStopped(StopReason.TABLE_MISSING, detail, "nothing was ever written there")
        table = None if rows is None else self._as_table(rows)
        why = None if table is None else self._why_refused(table)
        if why is not None:
            raise RowsRefused(why, hint=NO_KEY_HINT)
        return self._write(table, fence)

    def refused(self, rows: Iterable[pa.RecordBatch]) -> str | None:
        return self._why_refused(self._as_table(rows))

    def await_visible(self, fence: Fence) -> bool:
        """A snapshot is visible as soon as it is committed."""
        return True

    def close(self) -> None:
        self._table = None

    def _as_table(self, rows: Iterable[pa.RecordBatch]) -> pa.Table:
        assert self._schema is not None, "a sink without a schema is only read"
        batches = [*rows]
        return pa.Table.from_batches(batches) if batches else self._schema.empty_table()

    def _why_refused(self, rows: pa.Table) -> str | None:
        key = keyless(rows, self._target.settings.keys)
        return None if key is None else f"{self._reached.what}: key {key} is null"

    def _write(self, rows: pa.Table | None, fence: Fence) -> Written:
        before = self._fence(self._current())
        until, pause_s = self._clock.monotonic_ms() + CONFLICTS_MS, PAUSE_S
        while not self._is_committed(rows, fence):
            if self._fence(self._current()) != before:
                raise SinkSuperseded(f"{self._reached.what}: another driver has moved its fence")
            if self._schema is not None:
                self._alteration = fitting(self._target, self._current(), self._schema)
            if self._clock.monotonic_ms() > until:
                message = f"{self._reached.what}: others change it all the time"
                hint = "let them come less often, or one after the other; it is tried again"
                raise SinkUnreachable(message, hint=hint)
            time.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(pause_s * 2, PAUSE_MAX_S)
        if rows is not None:
            self._alteration = NOTHING
        return self._written(fence)

    def _is_committed(self, rows: pa.Table | None, fence: Fence) -> bool:
        """False if somebody came in between: then the table is read anew, and nothing was done."""
        table = self._current()
        # In this copy of the metadata only, never in the table: PyIceberg would rebase the commit
        # on whatever came in between, and so double the rows of a batch that another driver wrote.
        table.metadata.properties[RETRIES_PROPERTY] = "0"
        transaction = table.transaction()
        try:
            with told(self._reached):
                if rows is not None:
                    self._alteration.stage(transaction, self._target.settings)
                transaction.set_properties({FENCE_PROPERTY + self._fence_key: codec.to_json(fence)})
                files = CommitFiles(transaction, table.io)
                if rows is not None:
                    change_files(files, rows, self._target.settings)
                summary = {SEQUENCE_PROPERTY + self._fence_key: str(fence.sequence)}
                snapshot_id = files.commit(summary)
                reach(f"{fence.pipeline_uid}.{self.name}.before_commit")
                transaction.commit_transaction()
        except CommitFailedException as error:
            logger.info("others came in between", extra={"sink": self.name, "reason": str(error)})
            self._look_again()
            if self._current().snapshot_by_id(snapshot_id) is not None:
                return True  # it was taken, and the answer said otherwise
            files.discard()
            return False
        except ValueError as error:
            raise _does_not_take(self._reached, error) from error
        return True

    def _look_again(self) -> None:
        with told(self._reached):
            self._table = find_table(self._catalog, self._target.name)
        if self._table is None:
            detail = f"{self._reached.what} is gone"
            raise StageStopped(StopReason.TABLE_MISSING, detail, "put it back with its fence")

    def _current(self) -> Table:
        assert self._table is not None, "claim comes first"
        return self._table

    def _fence(self, table: Table) -> Fence | None:
        text = table.properties.get(FENCE_PROPERTY + self._fence_key)
        return codec.from_json(Fence, text) if text is not None else None

    def _written(self, fence: Fence) -> Written:
        """With the snapshot that the fence's batch made; without one once it has been expired."""
        key, wanted = SEQUENCE_PROPERTY + self._fence_key, str(fence.sequence)
        for snapshot in reversed(self._current().metadata.snapshots):
            summary = snapshot.summary
            if summary and summary.additional_properties.get(key) == wanted:
                return Written(
                    fence=fence, version={"iceberg_snapshot_id": str(snapshot.snapshot_id)}
                )
        return Written(fence=fence, version={})


def _does_not_take(reached: Reached, error: ValueError) -> UserError:
    hint = "give the stage a table whose columns have the types of its query"
    return UserError(
        [Problem(message=f"{reached.what} does not take these rows: {error}", hint=hint)]
    )
