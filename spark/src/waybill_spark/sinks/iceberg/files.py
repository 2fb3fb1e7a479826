"""The files of one commit: which it puts into a table, and which it takes out.

Rows are written when they come, so that of a table that is rewritten one file at a time is in
memory. Nothing of it counts before the commit.
"""

import itertools
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import (
    ArrowScan,
    _check_pyarrow_schema_compatible,
    _dataframe_to_data_files,
    _determine_partitions,
)
from pyiceberg.manifest import DataFile
from pyiceberg.table import DataScan, FileScanTask, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.table.update.snapshot import UpdateSnapshot
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

DIRECTIONS: Final = {SortDirection.ASC: "ascending", SortDirection.DESC: "descending"}
NULLS: Final = {NullOrder.NULLS_FIRST: "at_start", NullOrder.NULLS_LAST: "at_end"}


class CommitFiles:
    def __init__(self, transaction: Transaction, io: FileIO) -> None:
        """As the table will be when what the transaction has staged is done."""
        self._transaction = transaction
        self._io = io
        self._metadata: TableMetadata = transaction.table_metadata
        self._uuid = uuid.uuid4()
        self._counter = itertools.count()
        self._added: list[DataFile] = []
        self._removed: list[DataFile] = []

    @property
    def metadata(self) -> TableMetadata:
        return self._metadata

    def add(self, rows: pa.Table, *, in_order: bool = True) -> list[DataFile]:
        """In the order of the table, if they are not in any."""
        if not rows.num_rows:
            return []
        _check_pyarrow_schema_compatible(
            self._metadata.schema(), rows.schema, format_version=self._metadata.format_version
        )
        files = [
            *_dataframe_to_data_files(
                self._metadata,
                self._sorted(rows) if in_order else rows,
                self._io,
                write_uuid=self._uuid,
                counter=self._counter,
            )
        ]
        self._added += files
        return files

    def remove(self, file: DataFile) -> None:
        self._removed.append(file)

    def replace(self, file: DataFile, rest: pa.Table) -> None:
        """`rest`: its rows that stay; they are in the order that they had."""
        self.remove(file)
        self.add(rest, in_order=False)

    def present(self, where: BooleanExpression | None = None) -> Iterable[FileScanTask]:
        """The files that may have such rows."""
        row_filter = AlwaysTrue() if where is None else where
        return DataScan(self._metadata, self._io, row_filter=row_filter).plan_files()

    def read(self, task: FileScanTask, columns: Sequence[str] | None = None) -> pa.Table:
        schema = self._metadata.schema()
        wanted = schema if columns is None else schema.select(*columns)
        return ArrowScan(self._metadata, self._io, wanted, AlwaysTrue()).to_table([task])

    def partitions(self, rows: pa.Table) -> Iterator[tuple[Record, pa.Table]]:
        """The rows of each partition that the table has now."""
        for each in _determine_partitions(self._metadata.spec(), self._metadata.schema(), rows):
            yield each.partition_key.partition, each.arrow_table_partition

    def commit(self, summary: dict[str, str]) -> int:
        """Always one snapshot, though there may be nothing to do: its id."""
        update = self._transaction.update_snapshot(snapshot_properties=summary)
        with self._producer(update) as snapshot:
            for file in self._removed:
                snapshot.delete_data_file(file)
            for file in self._added:
                snapshot.append_data_file(file)
        return int(snapshot.snapshot_id)

    def _producer(self, update: UpdateSnapshot) -> Any:  # noqa: ANN401 - of three classes
        if self._removed:
            overwrite = update.overwrite()
            overwrite.delete_by_predicate(AlwaysTrue())  # look for them in every manifest
            return overwrite
        merged = self._metadata.properties.get(TableProperties.MANIFEST_MERGE_ENABLED, "")
        return update.merge_append() if merged.lower() == "true" else update.fast_append()

    def discard(self) -> None:
        """After a commit that surely was not taken."""
        for file in self._added:
            try:
                self._io.delete(file.file_path)
            except OSError:
                continue  # it is in nobody's way, and maintenance finds it

    def _sorted(self, rows: pa.Table) -> pa.Table:
        keys = []
        order = self._metadata.sort_order_by_id(self._metadata.default_sort_order_id)
        for field in () if order is None else order.fields:
            name = self._metadata.schema().find_column_name(field.source_id)
            if not isinstance(field.transform, IdentityTransform) or name not in rows.column_names:
                break
            keys.append((name, DIRECTIONS[field.direction], NULLS[field.null_order]))
        return rows.take(pc.sort_indices(rows, sort_keys=keys)) if keys else rows
