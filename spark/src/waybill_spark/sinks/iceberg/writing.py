"""Rows become data files of a table, which count only when they are in a commit."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import ResolveError
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import (
    _check_pyarrow_schema_compatible,
    _dataframe_to_data_files,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.transforms import IdentityTransform

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.iceberg import SortField
from waybill_spark.sinks.iceberg.connection import Reached
from waybill_spark.sinks.iceberg.keyed import far_away, keyless
from waybill_spark.sinks.iceberg.pyiceberg_fixes import mend
from waybill_spark.sinks.iceberg.tables import NULL_ORDERS

DIRECTIONS: Final = {SortDirection.ASC: "ascending", SortDirection.DESC: "descending"}
NULLS: Final = {NullOrder.NULLS_FIRST: "at_start", NullOrder.NULLS_LAST: "at_end"}
ROWS_HINT: Final = "leave such rows out in the query with a WHERE, or give them another value"
UNABLE: Final = (
    ValueError,
    TypeError,
    KeyError,
    NotImplementedError,
    ResolveError,
    pa.ArrowException,
)
"""Errors of PyIceberg when it cannot write the rows, or cannot read what it must write again."""

mend()


class FileWriter:
    def __init__(
        self,
        metadata: TableMetadata,
        io: FileIO,
        *,
        name: str,
        sort_by: Sequence[SortField] | None = None,
    ) -> None:
        """Create a writer. `name` is part of the name of each file.

        `sort_by`: the order of rows in a file, if it is not the table's.
        """
        self._metadata = metadata
        self._io = io
        self._name: Any = name  # PyIceberg would have a UUID, of which it takes the text
        self._sort_by = sort_by
        self._counter = itertools.count()

    def write(self, rows: pa.Table, *, in_order: bool = True) -> list[DataFile]:
        """Write rows, sorted in the order of the table unless `in_order` is False."""
        if not rows.num_rows:
            return []
        _check_pyarrow_schema_compatible(
            self._metadata.schema(), rows.schema, format_version=self._metadata.format_version
        )
        whole = self._with_sources(self._sort(rows) if in_order else rows)
        return [
            *_dataframe_to_data_files(
                self._metadata, whole, self._io, write_uuid=self._name, counter=self._counter
            )
        ]

    def _with_sources(self, rows: pa.Table) -> pa.Table:
        """Add missing columns as null.

        The query may have lost a column, also one by which the table is partitioned.
        """
        schema = self._metadata.schema()
        for source in self._metadata.spec().fields:
            name = schema.find_column_name(source.source_id) or ""
            column = schema.find_field(name.split(".")[0])
            if column.name not in rows.column_names:
                kind = schema_to_pyarrow(column.field_type)
                rows = rows.append_column(column.name, pa.nulls(rows.num_rows, kind))
        return rows

    def _sort(self, rows: pa.Table) -> pa.Table:
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


def why_refused(reached: Reached, rows: pa.Table, keys: Sequence[str]) -> str | None:
    """Return why the table cannot have these rows, None if it can."""
    key = keyless(rows, keys)
    if key is not None:
        return no_key(reached, key)
    far = far_away(rows)
    return None if far is None else too_far(reached, far)


def no_key(reached: Reached, key: str) -> str:
    return f"{reached.what}: key {key} is null"


def too_far(reached: Reached, column: str) -> str:
    return f"{reached.what}: {column} is not in the years 1 to 9999"


def remove(io: FileIO, paths: Iterable[str]) -> None:
    for path in paths:
        try:
            io.delete(path)
        except OSError:
            continue  # it is in nobody's way, and maintenance finds it


def does_not_take(reached: Reached, error: Exception) -> UserError:
    said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    hint = (
        "give the stage a table whose columns have the types of its query; if old files are at"
        " fault, rewrite them: CALL system.rewrite_data_files(…) in Spark"
    )
    return UserError(
        [Problem(message=f"{reached.what} does not take these rows: {said}", hint=hint)]
    )
