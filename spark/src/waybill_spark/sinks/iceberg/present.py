"""The files that a table has, and their rows."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import DataScan, FileScanTask
from pyiceberg.table.metadata import TableMetadata


class PresentFiles:
    def __init__(self, metadata: TableMetadata, io: FileIO) -> None:
        self._metadata = metadata
        self._io = io

    def find(self, where: BooleanExpression | None = None) -> Iterable[FileScanTask]:
        """Return the files that may have such rows."""
        row_filter = AlwaysTrue() if where is None else where
        return DataScan(self._metadata, self._io, row_filter=row_filter).plan_files()

    def read(self, task: FileScanTask, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the rows in the order that they have in the file."""
        schema = self._metadata.schema()
        wanted = schema if columns is None else schema.select(*columns)
        return ArrowScan(self._metadata, self._io, wanted, AlwaysTrue()).to_table([task])
