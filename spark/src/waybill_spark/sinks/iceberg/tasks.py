"""What keeps an Iceberg table in order: old snapshots go, small files and manifests are united, and
files that nobody knows are removed.

Each task is a commit of its own, which asks for the snapshot that it has looked at: when somebody
came in between, nothing is done, and the next round does it. None moves a fence.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table, TableProperties

from waybill_spark.sinks.iceberg.files import CommitFiles

logger = logging.getLogger(__name__)

SMALL: Final = 0.75  # of the wanted size: a smaller file is united with others
FEW_FILES: Final = 5  # that are left as they are
FEW_MANIFESTS: Final = 20
AT_ONCE: Final = 4  # files that are made before other batches have their turn


@dataclass(frozen=True, slots=True)
class Done:
    """What a task has done, or would do; by what is counted."""

    counts: Mapping[str, int] = field(default_factory=dict)
    is_whole: bool = True
    """Whether nothing is left to do now."""

    @property
    def is_something(self) -> bool:
        return any(self.counts.values())


def expire_snapshots(table: Table, older_than_ms: int, keep: int, *, dry_run: bool) -> Done:
    """Those from before, but the newest `keep`, and what a branch or a tag names."""
    heads = {ref.snapshot_id for ref in table.metadata.refs.values()}
    newest = sorted(table.metadata.snapshots, key=lambda each: each.timestamp_ms, reverse=True)
    gone = [
        each.snapshot_id
        for each in newest[keep:]
        if each.timestamp_ms < older_than_ms and each.snapshot_id not in heads
    ]
    if gone and not dry_run:
        table.maintenance.expire_snapshots().by_ids(gone).commit()
    return Done({"snapshots": len(gone)})


def compact(table: Table, target_bytes: int, *, dry_run: bool) -> Done:
    """Small files of one partition become one. Files of an older partitioning stay.

    So many at once as fill some files; in memory is one of them at a time.
    """
    bins = [*_bins(table, target_bytes)]
    now = bins if dry_run else bins[:AT_ONCE]
    if not dry_run and now and not _unite(table, now):
        return Done(is_whole=False)
    counts = {"files": sum(map(len, now)), "into": len(now)}
    return Done(counts, is_whole=len(now) == len(bins))


def rewrite_manifests(table: Table, *, dry_run: bool) -> Done:
    """Each batch leaves one, and a reader opens all of them."""
    snapshot = table.current_snapshot()
    number = 0 if snapshot is None else len(snapshot.manifests(table.io))
    if number <= FEW_MANIFESTS:
        return Done({"manifests": 0})
    if not dry_run:
        table.metadata.properties["commit.retry.num-retries"] = "0"
        table.metadata.properties[TableProperties.MANIFEST_MERGE_ENABLED] = "true"
        table.metadata.properties[TableProperties.MANIFEST_MIN_MERGE_COUNT] = "2"
        transaction = table.transaction()
        with transaction.update_snapshot().merge_append():
            pass
        transaction.commit_transaction()
    return Done({"manifests": number})


def remove_orphans(table: Table, older_than_ms: int, *, dry_run: bool) -> Done:
    """Files in the folder of the table that no snapshot knows, and nobody is writing any more."""
    known = _known(table)
    found = [
        (system, path, size)
        for system, path, size in _files_from_before(table, older_than_ms)
        if path not in known
    ]
    for system, path, _ in () if dry_run else found:
        system.delete_file(path)
    return Done({"files": len(found), "bytes": sum(size for *_, size in found)})


def _bins(table: Table, target_bytes: int) -> Iterator[list[FileScanTask]]:
    groups: dict[object, list[FileScanTask]] = defaultdict(list)
    for task in table.scan().plan_files():
        small = task.file.file_size_in_bytes < target_bytes * SMALL
        if small and task.file.spec_id == table.metadata.default_spec_id:
            groups[task.file.partition].append(task)
    for tasks in groups.values():
        if len(tasks) <= FEW_FILES:
            continue
        room, packed = target_bytes, list[FileScanTask]()
        for task in sorted(tasks, key=lambda each: each.file.file_size_in_bytes):
            if packed and task.file.file_size_in_bytes > room:
                if len(packed) > 1:
                    yield packed
                room, packed = target_bytes, []
            packed.append(task)
            room -= task.file.file_size_in_bytes
        if len(packed) > 1:
            yield packed


def _unite(table: Table, bins: Iterable[list[FileScanTask]]) -> bool:
    """False if somebody came in between."""
    table.metadata.properties["commit.retry.num-retries"] = "0"
    files = CommitFiles(table)
    try:
        for packed in bins:
            for task in packed:
                files.remove(task.file)
            files.add(pa.concat_tables(map(files.read, packed), promote_options="permissive"))
        files.stage({}, same_rows=True)
        files.send()
    except CommitFailedException as error:
        logger.info("not compacted", extra={"reason": str(error)})
        return False
    return True


def _known(table: Table) -> set[str]:
    known = {_plain(table.metadata_location)}
    known |= {_plain(each.metadata_file) for each in table.metadata.metadata_log}
    known |= {_plain(each.statistics_path) for each in table.metadata.statistics}
    seen: set[str] = set()
    for snapshot in table.metadata.snapshots:
        known.add(_plain(snapshot.manifest_list))
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            known.add(_plain(manifest.manifest_path))
            for entry in manifest.fetch_manifest_entry(table.io):
                known.add(_plain(_path_of(entry.data_file)))
    return known


def _path_of(file: DataFile) -> str:
    return str(file.file_path)


def _files_from_before(
    table: Table, older_than_ms: int
) -> Iterator[tuple[fs.FileSystem, str, int]]:
    io = table.io
    assert isinstance(io, PyArrowFileIO)
    before = datetime.fromtimestamp(older_than_ms / 1000, UTC)
    scheme, netloc, path = PyArrowFileIO.parse_location(table.location())
    system = io.fs_by_scheme(scheme, netloc)
    for info in system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True)):
        if info.is_file and info.mtime is not None and info.mtime < before:
            yield system, info.path, int(info.size or 0)


def _plain(location: str) -> str:
    """As the file system has it: without scheme."""
    parts = urlsplit(location)
    return f"{parts.netloc}{parts.path}"
