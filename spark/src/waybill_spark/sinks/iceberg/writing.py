"""Rows become data files of a table: here, or beside the executors that have them."""

import itertools
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.io.pyarrow import (
    _check_pyarrow_schema_compatible,
    _dataframe_to_data_files,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.transforms import IdentityTransform

from waybill_shared.contract.events import Fence
from waybill_shared.contract.manifest.iceberg import SortField
from waybill_shared.process.failpoints import reach
from waybill_spark.sinks.contract import RowsRefused
from waybill_spark.sinks.iceberg.connection import Reached, told
from waybill_spark.sinks.iceberg.keyed import far_away
from waybill_spark.sinks.iceberg.nulls import keep_nulls
from waybill_spark.sinks.iceberg.tables import NULL_ORDERS
from waybill_spark.sinks.spread import Share, SpreadRows

DIRECTIONS: Final = {SortDirection.ASC: "ascending", SortDirection.DESC: "descending"}
NULLS: Final = {NullOrder.NULLS_FIRST: "at_start", NullOrder.NULLS_LAST: "at_end"}
AT_ONCE: Final = 128 << 20  # bytes of rows that become a file together, or one for each partition
ROWS_HINT: Final = "leave such rows out in the query with a WHERE, or give them another value"
HISTORY: Final = ("snapshots", "snapshot-log", "metadata-log", "statistics", "partition-statistics")

keep_nulls()


class FileWriter:
    """Writes what counts only when it is in a commit."""

    def __init__(
        self,
        metadata: TableMetadata,
        io: FileIO,
        *,
        name: str,
        sort_by: Sequence[SortField] | None = None,
    ) -> None:
        """`name` is in that of each file. `sort_by`: the order of rows in a file, if it is not the
        table's."""
        self._metadata = metadata
        self._io = io
        self._name: Any = name  # PyIceberg would have a UUID, of which it takes the text
        self._sort_by = sort_by
        self._counter = itertools.count()

    def write(self, rows: pa.Table, *, in_order: bool = True) -> list[DataFile]:
        """In the order of the table, if they are not in any."""
        if not rows.num_rows:
            return []
        _check_pyarrow_schema_compatible(
            self._metadata.schema(), rows.schema, format_version=self._metadata.format_version
        )
        whole = self._with_sources(self._sorted(rows) if in_order else rows)
        return [
            *_dataframe_to_data_files(
                self._metadata, whole, self._io, write_uuid=self._name, counter=self._counter
            )
        ]

    def _with_sources(self, rows: pa.Table) -> pa.Table:
        """A column that the query has lost is null, also where the table is partitioned by it."""
        schema = self._metadata.schema()
        for source in self._metadata.spec().fields:
            name = schema.find_column_name(source.source_id) or ""
            column = schema.find_field(name.split(".")[0])
            if column.name not in rows.column_names:
                kind = schema_to_pyarrow(column.field_type)
                rows = rows.append_column(column.name, pa.nulls(rows.num_rows, kind))
        return rows

    def _sorted(self, rows: pa.Table) -> pa.Table:
        keys = [
            (each.column, f"{each.order}ending", NULLS[NULL_ORDERS[each.order]])
            for each in self._sort_by or ()
        ] or self._order_of_table(rows)
        return rows.take(pc.sort_indices(rows, sort_keys=keys)) if keys else rows

    def _order_of_table(self, rows: pa.Table) -> list[tuple[str, str, str]]:
        keys = []
        order = self._metadata.sort_order_by_id(self._metadata.default_sort_order_id)
        for field in () if order is None else order.fields:
            name = self._metadata.schema().find_column_name(field.source_id)
            if not isinstance(field.transform, IdentityTransform):
                break
            if name is None or name not in rows.column_names:
                break
            keys.append((name, DIRECTIONS[field.direction], NULLS[field.null_order]))
        return keys


class SpreadFiles:
    """The files of rows that lie with the executors, which write them once for a table that is
    the same. Their names say whose rows they are."""

    def __init__(self, rows: SpreadRows, reached: Reached, fence: Fence) -> None:
        self._rows = rows
        self._reached = reached
        self._fence = fence
        self._written: dict[str, list[DataFile]] = {}

    @property
    def num_rows(self) -> int:
        return self._rows.num_rows

    def write(
        self, metadata: TableMetadata, io: FileIO, sort_by: Sequence[SortField] | None
    ) -> list[DataFile]:
        table = _without_history(metadata)
        if table not in self._written:
            work = _Work(
                table=table,
                properties=dict(io.properties),
                uid=self._fence.pipeline_uid,
                sink=self._fence.sink,
                sequence=self._fence.sequence,
                sort_by=tuple(sort_by or ()),
                reached=self._reached,
            )
            self._written[table] = self._rows.carry_out(
                work, lambda files: remove(io, [each.file_path for each in files])
            )
        return self._written[table]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    table: str
    properties: Mapping[str, Any]
    uid: str
    sink: str
    sequence: int
    sort_by: tuple[SortField, ...]
    reached: Reached

    def __call__(self, share: Share) -> Iterator[DataFile]:
        metadata = TableMetadataUtil.parse_raw(self.table)
        whose = f"{self.uid}-{self.sink}-{self.sequence}"
        name = f"{whose}-{share.task}-{share.attempt}-{uuid.uuid4()}"
        with told(self.reached):
            io = load_file_io(dict(self.properties), metadata.location)
            writer = FileWriter(metadata, io, name=name, sort_by=self.sort_by)
            for rows in _in_parts(share.rows):
                far = far_away(rows)
                if far is not None:
                    raise RowsRefused(too_far(self.reached, far), hint=ROWS_HINT)
                yield from writer.write(rows)
                reach(f"{self.uid}.{self.sink}.in_share")


def too_far(reached: Reached, column: str) -> str:
    return f"{reached.what}: {column} is not in the years 1 to 9999"


def remove(io: FileIO, paths: Iterable[str]) -> None:
    for path in paths:
        try:
            io.delete(path)
        except OSError:
            continue  # it is in nobody's way, and maintenance finds it


def _in_parts(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    part: list[pa.RecordBatch] = []
    for batch in rows:
        part.append(batch)
        if sum(each.nbytes for each in part) >= AT_ONCE:
            yield pa.Table.from_batches(part)
            part = []
    if part:
        yield pa.Table.from_batches(part)


def _without_history(metadata: TableMetadata) -> str:
    """What a writer of files asks of a table, however old that is."""
    told_of = json.loads(metadata.model_dump_json(by_alias=True))
    for name in HISTORY:
        told_of.pop(name, None)
    for name in ("current-snapshot-id", "refs", "last-sequence-number", "last-updated-ms"):
        told_of.pop(name, None)
    own = {key: value for key, value in told_of["properties"].items() if "waybill." not in key}
    return json.dumps(
        {**told_of, "properties": own, "last-sequence-number": 0, "last-updated-ms": 0}
    )
