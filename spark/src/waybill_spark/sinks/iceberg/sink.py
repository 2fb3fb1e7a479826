"""The Iceberg sink: one snapshot per batch, with the fence as a table property in the same commit.

The commit requires the snapshot that was current when the fence was read, and never retries by
itself: a driver that lost its turn is refused instead of doubling rows.
"""

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
)
from pyiceberg.io.pyarrow import (
    _check_pyarrow_schema_compatible,  # of `append`: the same answer
    _pyarrow_to_schema_without_ids,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from sqlalchemy.exc import SQLAlchemyError

from waybill_shared.contract import codec
from waybill_shared.contract.errors import Retryable, UserError
from waybill_shared.contract.events import Fence, Problem
from waybill_shared.contract.words import StopReason
from waybill_shared.process.failpoints import reach
from waybill_spark.sinks.contract import (
    SinkLife,
    SinkSuperseded,
    SinkUnreachable,
    Written,
)
from waybill_spark.sinks.iceberg.lakehouse import why
from waybill_spark.stopping import StageStopped

FENCE_PROPERTY: Final = "waybill.fence."
SEQUENCE_PROPERTY: Final = "waybill.sequence."
RETRIES_PROPERTY: Final = "commit.retry.num-retries"
CONFLICTS_MAX: Final = 10  # other writers of the same table, e.g. compaction


class IcebergSink:
    def __init__(
        self, life: SinkLife, catalog: Catalog, table: str, *, schema: pa.Schema | None
    ) -> None:
        """Without a schema the sink can only be read: the table is not made if it is missing."""
        self.name = life.name
        self.since = life.since
        self.moved = life.moved
        self._catalog = catalog
        self._identifier = table
        self._schema = schema
        self._fence_key = life.fence_key
        self._table: Table | None = None

    def claim(self) -> None:
        """Nothing to shut out: the commit's own requirement refuses a writer of the past."""
        try:
            self._table = self._load() if self._schema is None else self._load_or_create()
        except (SQLAlchemyError, OSError) as error:
            raise unreachable(self._catalog, self.name, self._identifier, error) from error
        if self._schema is not None:
            refuse_unfit(self.name, self._current(), self._schema)

    def last(self) -> Written | None:
        if self._table is None:
            return None
        table = self._table
        fence = self._fence(table)
        if fence is None:
            return None
        return Written(fence=fence, version=_version(self._snapshot_of(table, fence.sequence)))

    def write(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> Written:
        """An empty batch makes a snapshot too: only a new snapshot refuses a paused driver."""
        if self._table is None and self._schema is None:
            detail = f"sink {self.name}: there is no table {self._identifier}"
            raise StageStopped(StopReason.TABLE_MISSING, detail, "nothing was ever written there")
        before, table = self._fence(self._current()), self._table_of(rows)
        for _ in range(CONFLICTS_MAX):
            try:
                return self._commit(table, fence)
            except CommitFailedException as error:
                self._table = self._catalog.load_table(self._identifier)
                if self._fence(self._table) != before:
                    raise SinkSuperseded(
                        f"sink {self.name}: {self._identifier}: {error}"
                    ) from error
            except ValueError as error:
                raise _does_not_take(self.name, self._current(), error) from error
            except (SQLAlchemyError, OSError) as error:
                raise unreachable(self._catalog, self.name, self._identifier, error) from error
        raise Retryable(
            f"sink {self.name}: others changed {self._identifier} {CONFLICTS_MAX} times meanwhile"
        )

    def _table_of(self, rows: Iterable[pa.RecordBatch] | None) -> pa.Table:
        batches = [] if rows is None else list(rows)
        if batches:
            return pa.Table.from_batches(batches)
        return self._current().schema().as_arrow().empty_table()

    def _commit(self, rows: pa.Table, fence: Fence) -> Written:
        table = self._current()
        # In this copy of the metadata only, never in the table: PyIceberg would rebase the append
        # on whatever came in between, and so double the rows of a batch that another driver wrote.
        table.metadata.properties[RETRIES_PROPERTY] = "0"
        with table.transaction() as transaction:
            transaction.set_properties({FENCE_PROPERTY + self._fence_key: codec.to_json(fence)})
            summary = {SEQUENCE_PROPERTY + self._fence_key: str(fence.sequence)}
            transaction.append(rows, summary)
            reach(f"{fence.pipeline_uid}.{self.name}.before_commit")
        snapshot = table.current_snapshot()
        return Written(fence=fence, version=_version(snapshot.snapshot_id if snapshot else None))

    def refused(self, rows: Iterable[pa.RecordBatch]) -> str | None:
        return None

    def await_visible(self, fence: Fence) -> bool:
        """A snapshot is visible as soon as it is committed."""
        return True

    def close(self) -> None:
        self._table = None

    def _current(self) -> Table:
        assert self._table is not None, "claim comes first"
        return self._table

    def _written_schema(self) -> pa.Schema:
        assert self._schema is not None, "a sink without a schema is only read"
        return self._schema

    def _load(self) -> Table | None:
        try:
            return self._catalog.load_table(self._identifier)
        except NoSuchTableError:
            return None

    def _load_or_create(self) -> Table:
        table = self._load()
        if table is not None:
            return table
        try:
            self._catalog.create_namespace(self._identifier.rsplit(".", 1)[0])
        except NamespaceAlreadyExistsError:
            pass
        return self._catalog.create_table(self._identifier, schema=self._written_schema())

    def _fence(self, table: Table) -> Fence | None:
        text = table.properties.get(FENCE_PROPERTY + self._fence_key)
        return codec.from_json(Fence, text) if text is not None else None

    def _snapshot_of(self, table: Table, sequence: int) -> int | None:
        """The snapshot that the fence's batch made; None once it has been expired."""
        wanted = str(sequence)
        for snapshot in reversed(table.metadata.snapshots):
            summary = snapshot.summary
            if (
                summary
                and summary.additional_properties.get(SEQUENCE_PROPERTY + self._fence_key) == wanted
            ):
                return snapshot.snapshot_id
        return None


def _version(snapshot_id: int | None) -> dict[str, str]:
    return {"iceberg_snapshot_id": str(snapshot_id)} if snapshot_id is not None else {}


def unreachable(
    catalog: Catalog, sink: str, table: str, error: SQLAlchemyError | OSError
) -> SinkUnreachable:
    warehouse = catalog.properties.get("warehouse", "")
    return SinkUnreachable(
        f"sink {sink}: {table} cannot be reached: {why(error)}",
        hint=f"see that {warehouse} has room and may be written to; it is tried again",
    )


def refuse_unfit(sink: str, table: Table, schema: pa.Schema) -> None:
    """Rows that the table can never take."""
    present = table.schema().column_names
    missing = [field.name for field in schema if field.name not in present]
    if missing:
        names = ", ".join(missing)
        message = f"sink {sink}: table {_name(table)} has no column {names}"
        hint = (
            f"add {names} to the table with an Iceberg client, or leave it out of the query;"
            f" columns of the table: {', '.join(present)}"
        )
        raise UserError([Problem(message=message, hint=hint)])
    absent = {c.name for c in table.schema().fields if c.required} - set(schema.names)
    others = [f"the query gives no {name}, which the table requires" for name in sorted(absent)]
    others += [told for field in schema if (told := _other_type(table, field)) is not None]
    if others:
        message = f"sink {sink}: table {_name(table)} does not take these rows: {'; '.join(others)}"
        hint = "cast the columns in the query, or change the table with an Iceberg client"
        raise UserError([Problem(message=message, hint=hint)])


def _other_type(table: Table, field: pa.Field) -> str | None:
    column, given = table.schema().find_field(field.name), pa.schema([field])
    try:
        _check_pyarrow_schema_compatible(Schema(column), given)
    except ValueError:
        kind = _pyarrow_to_schema_without_ids(given).fields[0].field_type
        if kind == column.field_type:
            return f"{field.name} may be null, and the table requires a value"
        return f"{field.name} is {column.field_type}, the query gives {kind}"
    return None


def _does_not_take(sink: str, table: Table, error: ValueError) -> UserError:
    hint = "give the stage a table whose columns have the types of its query"
    message = f"sink {sink}: {_name(table)} does not take these rows: {error}"
    return UserError([Problem(message=message, hint=hint)])


def _name(table: Table) -> str:
    return ".".join(table.name())
