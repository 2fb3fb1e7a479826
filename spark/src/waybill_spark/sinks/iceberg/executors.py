"""What executors do for a table: they write files of the rows that they have. In an upsert they
find the rows of the table that stay, and copy them."""

import json
import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_shared.contract.events import Fence
from waybill_shared.contract.manifest.iceberg import IcebergSinkSettings, SortField
from waybill_shared.process.failpoints import reach
from waybill_spark.sinks.iceberg import writing
from waybill_spark.sinks.iceberg.connection import Reached, translate_errors
from waybill_spark.sinks.iceberg.keyed import KeyedRows, far_away, keyless, without
from waybill_spark.sinks.iceberg.present import PresentFiles
from waybill_spark.sinks.iceberg.writing import FileWriter
from waybill_spark.tracking.distributed_rows import DistributedRows, Share
from waybill_spark.tracking.sink import RowsRefused

AT_ONCE: Final = 128 << 20  # bytes of rows that become a file together, or one for each partition
HISTORY: Final = ("snapshot-log", "metadata-log", "statistics", "partition-statistics")
ITEM: Final = "item"  # a file that loses rows, as a pickle
ROW_NUMBER: Final = "__waybill_row_number"  # the number of a row in its batch


class SpreadFiles:
    """The files of one batch. Their names include the owner of the rows."""

    def __init__(self, rows: DistributedRows, reached: Reached, fence: Fence) -> None:
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
        """Write the files, once for a table that is unchanged, even if others have written there in
        between. They are written again if they were removed as orphans meanwhile.
        """
        there = self._there(metadata, io, sort_by, with_snapshot=False)
        before = self._written.get(there.table)
        if before is None or not all(io.new_input(file.file_path).exists() for file in before):
            files = self._rows.carry_out(_Writing(there), _undo_with(io))
            self._refuse_fewer(sum(file.record_count for file in files))
            self._refuse_elsewhere(files, io)
            self._written[there.table] = files
        return self._written[there.table]

    def upsert(
        self, metadata: TableMetadata, io: FileIO, settings: IcebergSinkSettings
    ) -> "Upserted":
        """Upsert the rows. Each share has all rows of its keys: it writes those that count, and
        reports which rows of which files they replace. Then each of these files is written
        without the replaced rows.
        """
        there = self._there(metadata, io, settings.sort_by, with_snapshot=True)
        rows, undo = self._rows.by_keys(settings.keys, ROW_NUMBER), _undo_with(io)
        shares = rows.carry_out(_Matching(there, settings), lambda done: undo(_files_of(done)))
        added = _files_of(shares)
        replaced: dict[str, tuple[FileScanTask, list[pa.ChunkedArray]]] = {}
        for each in (found for share in shares for found in share.found):
            replaced.setdefault(each.task.file.file_path, (each.task, []))[1].append(each.replaced)
        files = [_Replaced(task, _unite(parts)) for task, parts in replaced.values()]
        try:
            self._refuse_fewer(sum(share.rows for share in shares))
            tasks = pa.table({ITEM: pa.array(map(pickle.dumps, files), pa.binary())})
            added += self._rows.others(tasks).carry_out(_Copying(there), undo)
            self._refuse_elsewhere(added, io)
        except Exception:
            undo(added)
            raise
        return Upserted([task.file for task, _ in replaced.values()], added)

    def _refuse_fewer(self, count: int) -> None:
        """Raise Retryable if the executors had another number of rows than those that were
        judged.
        """
        if count != self.num_rows:
            text = f"{self._reached.what}: executors had {count} rows of {self.num_rows}"
            raise Retryable(f"{text}: records went meanwhile")

    def _refuse_elsewhere(self, files: Iterable[DataFile], io: FileIO) -> None:
        for file in files:
            here = urlsplit(file.file_path).scheme in ("", "file")
            if here and not io.new_input(file.file_path).exists():
                message = f"{self._reached.what}: {file.file_path} is on a worker, and not here"
                hint = "let workers share the folder of the warehouse, or keep tables in a store"
                raise UserError([Problem(message=message, hint=hint)])

    def _there(
        self,
        metadata: TableMetadata,
        io: FileIO,
        sort_by: Sequence[SortField] | None,
        *,
        with_snapshot: bool,
    ) -> "_There":
        return _There(
            table=_without_history(metadata, with_snapshot=with_snapshot),
            properties=dict(io.properties),
            uid=self._fence.pipeline_uid,
            sink=self._fence.sink,
            sequence=self._fence.batch.sequence,
            sort_by=tuple(sort_by or ()),
            reached=self._reached,
        )


@dataclass(frozen=True, slots=True)
class Upserted:
    removed: list[DataFile]
    added: list[DataFile]


@dataclass(frozen=True, slots=True)
class _Replaced:
    """Rows of a file, by their numbers."""

    task: FileScanTask
    replaced: pa.ChunkedArray


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matched:
    """The result of one share: how many rows it had, what they replace, and the files made."""

    rows: int
    found: list[_Replaced]
    files: list[DataFile]


@dataclass(frozen=True, slots=True, kw_only=True)
class _There:
    """A table as executors get it, and the owner of the rows that they write."""

    table: str
    properties: Mapping[str, Any] = field(repr=False)
    """Its properties, with the keys of a store."""
    uid: str
    sink: str
    sequence: int
    sort_by: tuple[SortField, ...]
    reached: Reached

    def open(self) -> tuple[TableMetadata, FileIO]:
        metadata = TableMetadataUtil.parse_raw(self.table)
        return metadata, load_file_io(dict(self.properties), metadata.location)

    def writer(self, metadata: TableMetadata, io: FileIO, share: Share) -> FileWriter:
        writer = f"{self.uid}-{self.sink}-{self.sequence}-{share.task}-{share.attempt}"
        return FileWriter(metadata, io, name=f"{writer}-{uuid.uuid4()}", sort_by=self.sort_by)

    def write(self, writer: FileWriter, rows: pa.Table) -> list[DataFile]:
        far = far_away(rows)
        if far is not None:
            raise RowsRefused(writing.too_far(self.reached, far), hint=writing.ROWS_HINT)
        files = writer.write(rows)
        reach(f"{self.uid}.{self.sink}.in_share")
        return files


@dataclass(frozen=True, slots=True)
class _Writing:
    there: _There

    def __call__(self, share: Share) -> Iterator[DataFile]:
        there = self.there
        with translate_errors(there.reached), _translate_errors(there.reached):
            writer = there.writer(*there.open(), share)
            for rows in _in_parts(share.rows):
                yield from there.write(writer, rows)


@dataclass(frozen=True, slots=True)
class _Matching:
    there: _There
    settings: IcebergSinkSettings

    def __call__(self, share: Share) -> Iterator[_Matched]:
        there, settings = self.there, self.settings
        batches = [*share.rows]
        if not batches:
            return
        rows = pa.Table.from_batches(batches).sort_by(ROW_NUMBER).drop_columns([ROW_NUMBER])
        key = keyless(rows, settings.keys)
        if key is not None:
            raise RowsRefused(writing.no_key(there.reached, key), hint=writing.ROWS_HINT)
        with translate_errors(there.reached), _translate_errors(there.reached):
            metadata, io = there.open()
            present, new = PresentFiles(metadata, io), KeyedRows(rows, settings, metadata)
            found: list[_Replaced] = []
            losers: list[int] = []
            looked_at = (*settings.keys, *((settings.order_by,) if settings.order_by else ()))
            for task in [*present.find(new.where())]:
                old = present.read(task, looked_at)
                if not new.are_in(old):
                    continue
                matches = new.matches(old)
                losers += matches.losers.to_pylist()
                if len(matches.replaced):  # without the filter that it was found by
                    plain = FileScanTask(task.file, task.delete_files)
                    found.append(_Replaced(plain, matches.replaced))
            files = there.write(there.writer(metadata, io, share), new.to_write(losers))
            yield _Matched(rows=rows.num_rows, found=found, files=files)


@dataclass(frozen=True, slots=True)
class _Copying:
    """Rows of a file that stay, in the order that they had."""

    there: _There

    def __call__(self, share: Share) -> Iterator[DataFile]:
        there = self.there
        with translate_errors(there.reached), _translate_errors(there.reached):
            metadata, io = there.open()
            present, writer = PresentFiles(metadata, io), there.writer(metadata, io, share)
            for item in (each for batch in share.rows for each in batch.column(ITEM)):
                file: _Replaced = pickle.loads(item.as_buffer())
                rest = without(present.read(file.task), file.replaced)
                yield from writer.write(rest, in_order=False)


def _in_parts(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    part: list[pa.RecordBatch] = []
    for batch in rows:
        part.append(batch)
        if sum(each.nbytes for each in part) >= AT_ONCE:
            yield pa.Table.from_batches(part)
            part = []
    if part:
        yield pa.Table.from_batches(part)


def _unite(parts: Iterable[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks])


@contextmanager
def _translate_errors(reached: Reached) -> Iterator[None]:
    """Convert errors as where the driver writes."""
    try:
        yield
    except MemoryError:
        raise
    except writing.UNABLE as error:
        raise writing.does_not_take(reached, error) from error


def _files_of(shares: Iterable[_Matched]) -> list[DataFile]:
    return [file for share in shares for file in share.files]


def _undo_with(io: FileIO) -> Callable[[Iterable[DataFile]], None]:
    return lambda files: writing.remove(io, [each.file_path for each in files])


def _without_history(metadata: TableMetadata, *, with_snapshot: bool) -> str:
    """Return the metadata that executors need, which does not grow with the age of the table."""
    document = json.loads(metadata.model_dump_json(by_alias=True))
    for name in HISTORY:
        document.pop(name, None)
    current = document.get("current-snapshot-id")
    document["refs"] = {}
    if with_snapshot:
        document["snapshots"] = [
            each for each in document.get("snapshots", ()) if each["snapshot-id"] == current
        ]
    else:  # it is the same for a writer
        for name in ("snapshots", "current-snapshot-id"):
            document.pop(name, None)
        document |= {"last-sequence-number": 0, "last-updated-ms": 0}
    own = {key: value for key, value in document["properties"].items() if "waybill." not in key}
    return json.dumps({**document, "properties": own})
