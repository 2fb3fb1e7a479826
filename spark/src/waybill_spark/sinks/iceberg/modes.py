"""How the rows of a batch change a table: one function for each mode, which decides about files."""

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from waybill_shared.contract.manifest.iceberg import IcebergSinkSettings
from waybill_spark.sinks.iceberg.executors import SpreadFiles
from waybill_spark.sinks.iceberg.files import CommitFiles, NewRows
from waybill_spark.sinks.iceberg.keyed import KeyedRows, without


def change_files(files: CommitFiles, rows: NewRows, settings: IcebergSinkSettings) -> None:
    _MODES["partitions" if settings.by_partition else settings.mode](files, rows, settings)


def _append(files: CommitFiles, rows: NewRows, _: IcebergSinkSettings) -> None:
    files.add(rows)


def _overwrite(files: CommitFiles, rows: NewRows, _: IcebergSinkSettings) -> None:
    for task in files.present():
        files.remove(task.file)
    files.add(rows)


def _overwrite_partitions(files: CommitFiles, rows: NewRows, _: IcebergSinkSettings) -> None:
    """Replace the partitions of these rows.

    A file with another partitioning may have rows of these partitions and of others.
    """
    present = [*files.present()]
    replaced = {file.partition for file in files.add(rows)}
    for task in present if replaced else ():
        if task.file.spec_id == files.metadata.default_spec_id:
            if task.file.partition in replaced:
                files.remove(task.file)
            continue
        old = files.read(task)
        kept = [part for partition, part in files.partitions(old) if partition not in replaced]
        rest = pa.concat_tables([old.schema.empty_table(), *kept])
        if rest.num_rows < old.num_rows:
            files.replace(task.file, rest)


def _upsert(files: CommitFiles, rows: NewRows, settings: IcebergSinkSettings) -> None:
    """Copy on write: of each file that has one of the keys, the other rows are written again."""
    if not rows.num_rows:
        return
    if isinstance(rows, SpreadFiles):
        files.upsert(rows, settings)
        return
    new = KeyedRows(rows, settings, files.metadata)
    losers: list[int] = []
    for task in [*files.present(new.where())]:
        if not new.are_in(files.read(task, settings.keys)):
            continue
        old = files.read(task)
        found = new.matches(old)
        losers += found.losers.to_pylist()
        if len(found.replaced):
            files.replace(task.file, without(old, found.replaced))
    files.add(new.to_write(losers))


_MODES: Final[Mapping[str, Callable[[CommitFiles, NewRows, IcebergSinkSettings], None]]] = {
    "append": _append,
    "overwrite": _overwrite,
    "partitions": _overwrite_partitions,
    "upsert": _upsert,
}
