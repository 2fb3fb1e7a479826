"""The Iceberg sink: one commit per batch, which changes files and the fence, a table property.

The commit requires the snapshot that was current when the fence was read, and never retries by
itself. So a driver that was replaced is refused instead of doubling rows.

If only another writer committed in between, all of it is done again, because an upsert must look at
the new rows. A batch that changes no file makes no snapshot; then the commit requires the fence
itself.
"""

import logging
import random
import time
from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from pyiceberg.exceptions import BadRequestError, CommitFailedException, NoSuchTableError
from pyiceberg.table import Table

from waybill_shared.contract.events import Fence
from waybill_shared.contract.words import StopReason
from waybill_shared.process.clock import Clocks, SystemClock
from waybill_shared.process.failpoints import reach
from waybill_spark.sinks.iceberg import tables
from waybill_spark.sinks.iceberg.ages import MaintenanceRefused
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.commit_pause import CommitPause
from waybill_spark.sinks.iceberg.connection import Reached, translate_errors
from waybill_spark.sinks.iceberg.executors import SpreadFiles
from waybill_spark.sinks.iceberg.fences import TableFence
from waybill_spark.sinks.iceberg.files import CommitFiles, NewRows
from waybill_spark.sinks.iceberg.fitting import plan_change
from waybill_spark.sinks.iceberg.maintenance import DueTasks
from waybill_spark.sinks.iceberg.modes import change_files
from waybill_spark.sinks.iceberg.tables import Alteration, IcebergTarget
from waybill_spark.sinks.iceberg.writing import ROWS_HINT, UNABLE, does_not_take, why_refused
from waybill_spark.tracking.distributed_rows import DistributedRows
from waybill_spark.tracking.sink import (
    MaintenanceResult,
    RowsRefused,
    SinkLife,
    SinkSuperseded,
    SinkUnreachable,
    Written,
)
from waybill_spark.tracking.stopping import StageStopped

logger = logging.getLogger(__name__)

RETRIES_PROPERTY: Final = "commit.retry.num-retries"
LOOK_MS: Final = 600_000  # so often it is seen what others have done, where nothing is written
CONFLICTS_MS: Final = 60_000  # so long others may come in between
RETRY_PAUSE_S: Final = 0.05  # at most


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
        """Create the sink. Without a schema it can only be read: the table is not made if it is
        missing.
        """
        self.name = life.name
        self.since = life.since
        self.key = life.key
        self.moved = life.moved
        self._catalog = catalog.tables
        what = f"sink {life.name}: table {target.name}"
        self._reached = Reached(what, catalog.place, was_open=True)
        self._target = target
        self._schema = schema
        self._own = TableFence(life.fence_key)
        self._clock = clock or SystemClock()
        self._table: Table | None = None
        self._seen: Fence | None = None
        """Its own last one: if the table has another one, another driver has moved it."""
        self._pause = CommitPause(self._clock)
        self._alteration: Alteration = tables.NOTHING
        self._due_tasks = DueTasks(target.settings.maintenance)
        self._look_at = self._clock.monotonic_ms() + LOOK_MS

    def claim(self) -> None:
        """Read or make the table. Nobody needs to be fenced: the commit's own requirement refuses
        an earlier driver.
        """
        with translate_errors(self._reached):
            self._table = tables.find_table(self._catalog, self._target.name)
        if self._schema is not None:
            self._alteration = plan_change(self._target, self._table, self._schema)
            if self._table is None:
                with translate_errors(self._reached):
                    self._table = tables.make_table(self._catalog, self._target, self._schema)
                self._alteration = plan_change(self._target, self._table, self._schema)
        self._seen = None if self._table is None else self._own.read(self._table)

    def last(self) -> Written | None:
        if self._table is None:
            return None
        fence = self._own.read(self._table)
        return None if fence is None else self._as_written(fence)

    def write(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> Written:
        if self._table is None and self._schema is None:
            detail = f"sink {self.name}: there is no table {self._target.name}"
            raise StageStopped(StopReason.TABLE_MISSING, detail, "nothing was ever written there")
        if isinstance(rows, DistributedRows):  # executors look at them while they write
            return self._write(SpreadFiles(rows, self._reached, fence), fence)
        table = None if rows is None else self._as_table(rows)
        why = None if table is None else self._why_refused(table)
        if why is not None:
            raise RowsRefused(why, hint=ROWS_HINT)
        return self._write(table, fence)

    def find_refusal(self, rows: Iterable[pa.RecordBatch]) -> str | None:
        parts = (pa.Table.from_batches([part]) for part in rows)
        return next((why for why in map(self._why_refused, parts) if why is not None), None)

    def _why_refused(self, rows: pa.Table) -> str | None:
        return why_refused(self._reached, rows, self._target.settings.keys)

    def await_visible(self, fence: Fence) -> bool:
        """Return True: a snapshot is visible as soon as it is committed."""
        return True

    @property
    def versions_from(self) -> int:
        table = self._table
        fence = None if table is None else self._own.read(table)
        return 0 if table is None or fence is None else self._own.versions_from(table, fence)

    def maintain(self) -> MaintenanceResult | None:
        """Do one task that is due, if there is one; what fails is tried again later."""
        try:
            return self._maintain()
        except Exception:  # a table in disorder is no reason to end the pipeline
            logger.exception("table is not kept in order", extra=self._about())
            return None

    def _maintain(self) -> MaintenanceResult | None:
        table, now_ms = self._table, self._clock.now_ms()
        if table is None:
            return None
        name = self._due_tasks.take_due(table, now_ms)
        if name is None and self._clock.monotonic_ms() < self._look_at:
            return None
        self._look_at = self._clock.monotonic_ms() + LOOK_MS
        with translate_errors(self._reached):
            found = tables.find_table(self._catalog, self._target.name)
        if found is None:
            return None
        try:
            done = None if name is None else self._due_tasks.do(found, name, self._clock)
        except CommitFailedException:
            logger.info("another writer has committed", extra=self._about(task=name))
            return None
        except MaintenanceRefused as refused:
            logger.warning("table is not kept in order", extra=self._about(reason=str(refused)))
            return MaintenanceResult(str(name), {}, f"{refused}; {refused.problems[0].hint}")
        if tables.has_same_layout(table, found) and self._own.read(table) == self._own.read(found):
            self._table = found  # else the next commit must see what was committed in between
        if name is None or done is None:
            return None
        logger.info("table is kept in order", extra=self._about(task=name, **done.counts))
        return MaintenanceResult(name, done.counts) if done.is_something else None

    def _about(self, **more: object) -> dict[str, object]:
        return {"sink": self.name, "table": self._target.name, **more}

    def close(self) -> None:
        self._table = None
        self._catalog.close()

    def _as_table(self, rows: Iterable[pa.RecordBatch]) -> pa.Table:
        assert self._schema is not None, "a sink without a schema is only read"
        batches = [*rows]
        return pa.Table.from_batches(batches) if batches else self._schema.empty_table()

    def _write(self, rows: NewRows | None, fence: Fence) -> Written:
        self._refuse_superseded()
        until, is_shared = 0, self._let_others_go_first()
        started = self._clock.monotonic_ms()
        while not self._is_committed(rows, fence):
            until = until or self._clock.monotonic_ms() + CONFLICTS_MS  # not of the first writing
            self._refit()
            if self._clock.monotonic_ms() > until:
                message = f"{self._reached.what}: others change it all the time"
                hint = "let them come less often, or one after the other; it is tried again"
                raise SinkUnreachable(message, hint=hint)
            time.sleep(random.uniform(0, RETRY_PAUSE_S))
            is_shared, started = True, self._clock.monotonic_ms()
        if rows is not None:
            self._alteration = tables.NOTHING
        self._seen = fence
        self._pause.start(started, is_shared=is_shared)
        return self._as_written(fence)

    def _let_others_go_first(self) -> bool:
        """Pause after the last commit to a shared table. Return True if others have committed."""
        if not self._pause.wait():
            return False
        before = self._current()
        with translate_errors(self._reached):
            self._look_again(before)
        self._refit()
        return self._current().metadata_location != before.metadata_location

    def _refit(self) -> None:
        """Compute the alteration again after others have changed the table."""
        self._refuse_superseded()
        if self._schema is not None:
            self._alteration = plan_change(self._target, self._current(), self._schema)

    def _refuse_superseded(self) -> None:
        if self._own.read(self._current()) != self._seen:
            raise SinkSuperseded(f"{self._reached.what}: another driver has moved its fence")

    def _is_committed(self, rows: NewRows | None, fence: Fence) -> bool:
        """Return False if somebody committed in between: then the table is read again, and nothing
        was done.
        """
        table = self._current()
        # In this copy of the metadata only, never in the table: PyIceberg would rebase the commit
        # on any commit since, and so double the rows of a batch that another driver wrote.
        table.metadata.properties[RETRIES_PROPERTY] = "0"
        files = CommitFiles(table, self._target.settings.sort_by)
        with translate_errors(self._reached):
            self._fill(files, rows, fence)
            reach(f"{fence.pipeline_uid}.{self.name}.before_commit")
            try:
                files.send()
            except (CommitFailedException, NoSuchTableError, BadRequestError, ValueError) as error:
                logger.info("not committed", extra={"sink": self.name, "reason": str(error)})
                return self._is_committed_after_all(files, table, fence, error)
        return True

    def _fill(self, files: CommitFiles, rows: NewRows | None, fence: Fence) -> None:
        try:
            if rows is not None:
                self._alteration.stage(files.transaction, self._target.settings)
            files.begin()
            if rows is not None:
                change_files(files, rows, self._target.settings)
            is_altered = rows is not None and self._alteration != tables.NOTHING
            may_stay = files.are_none and not is_altered and self._may_stay(fence)
            self._own.move(files, self._current(), fence, may_stay=may_stay)
        except Exception as error:
            files.discard()
            if isinstance(error, UNABLE) and not isinstance(error, MemoryError):
                raise does_not_take(self._reached, error) from error
            raise

    def _may_stay(self, fence: Fence) -> bool:
        """Return whether the newest snapshot of this sink can represent this batch, too. The first
        commit of a driver makes one: only that fences drivers of earlier releases, which do not
        require the fence.
        """
        seen = self._seen
        if seen is None or (seen.lifecycle_id, seen.epoch) != (fence.lifecycle_id, fence.epoch):
            return False
        return self._own.snapshot_of(self._current(), seen) is not None

    def _is_committed_after_all(
        self, files: CommitFiles, before: Table, fence: Fence, error: Exception
    ) -> bool:
        self._look_again(before)
        now = self._current()
        if self._own.has(now, files):
            self._seen = fence
            self._refuse_superseded()  # another driver may have come after it
            return True
        changed = now.metadata_location != before.metadata_location
        if changed and self._own.read(now) != fence:
            files.discard()  # else a catalog may have answered with an old state
        conflict = isinstance(error, CommitFailedException)
        if not conflict and not changed:
            raise does_not_take(self._reached, error) from error
        return False

    def _look_again(self, before: Table) -> None:
        self._table = tables.find_table(self._catalog, self._target.name)
        if self._table is None or self._table.metadata.table_uuid != before.metadata.table_uuid:
            what = "was dropped" if self._table is None else "was created again"
            self._table = None
            hint = "put back the table that had the fence of the pipeline"
            raise StageStopped(StopReason.TABLE_MISSING, f"{self._reached.what} {what}", hint)

    def _current(self) -> Table:
        assert self._table is not None, "claim comes first"
        return self._table

    def _as_written(self, fence: Fence) -> Written:
        snapshot = self._own.snapshot_of(self._current(), fence)
        version = {} if snapshot is None else {"iceberg_snapshot_id": str(snapshot.snapshot_id)}
        return Written(fence=fence, version=version)
