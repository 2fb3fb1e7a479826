"""The maintenance tasks of an Iceberg table: delete old snapshots, unite small files and manifests,
and remove files that no snapshot knows.

Each task is a commit of its own, which requires the snapshot that it has looked at. If somebody
committed in between, nothing is done, and the next round repeats it. No task moves a fence.
"""

import logging
import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

import pyarrow as pa
from pyarrow import fs
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import ManifestContent
from pyiceberg.table import FileScanTask, Table, TableProperties, Transaction
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AssertRefSnapshotId, RemoveSnapshotsUpdate

from waybill_shared.process.failpoints import reach
from waybill_spark.sinks.iceberg.ages import MaintenanceRefused, files_from_before, read_modified_ms
from waybill_spark.sinks.iceberg.files import CommitFiles
from waybill_spark.sinks.iceberg.folders import is_local, place_of, refuse_other_tables, spell

logger = logging.getLogger(__name__)

SMALL: Final = 0.75  # of the wanted size: a smaller file is united with others
FEW_FILES: Final = 5  # that are left as they are
FEW_MANIFESTS: Final = 20
ONE_FILE_BYTES: Final = 1 << 50  # of rows in memory, by which PyIceberg would cut
ORPHANS_AT_ONCE: Final = 1_000
VERSION_HINT: Final = "version-hint.text"
AT_ONCE: Final = 4  # files that are made before other batches have their turn


@dataclass(frozen=True, slots=True)
class Done:
    """The work that a task has done, or would do; by what is counted."""

    counts: Mapping[str, int] = field(default_factory=dict)
    is_whole: bool = True
    """True if nothing is left to do now."""

    @property
    def is_something(self) -> bool:
        return any(self.counts.values())


def expire_snapshots(
    table: Table, now_ms: int, older_than_ms: int, keep: int, *, dry_run: bool
) -> Done:
    """Remove those that were made so long ago, but the newest `keep`, and what a branch or a tag
    names. `now_ms`: by the clock of the store."""
    refs = table.metadata.refs
    heads = {ref.snapshot_id for ref in refs.values()}
    snapshots = sorted(table.metadata.snapshots, key=lambda each: each.sequence_number or 0)
    made = _find_made_ms(table, snapshots, now_ms, now_ms - older_than_ms)
    expired = [
        each.snapshot_id
        for each, at in zip(snapshots[:-keep], made, strict=False)
        if at < now_ms - older_than_ms and each.snapshot_id not in heads
    ]
    if expired and not dry_run:
        transaction = _find_single(table)
        removal = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": expired})
        transaction._stage((removal,))
        # A catalog removes branches and tags with their snapshots; PyIceberg asks for nothing.
        transaction._requirements = tuple(
            AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": ref.snapshot_id})
            for name, ref in refs.items()
        )
        _reach(table, "expire")
        transaction.commit_transaction()
    return Done({"snapshots": len(expired)})


def compact(table: Table, target_bytes: int, *, dry_run: bool) -> Done:
    """Unite small files of one partition into one.

    Files of an older partitioning stay. At once as many are united as fill some files; only one of
    them at a time is in memory.
    """
    bins = [*_bins(table, target_bytes)]
    now = bins if dry_run else bins[:AT_ONCE]
    before, into = sum(map(len, now)), len(now)
    if now and not dry_run:
        into = _unite(table, now)
    return Done({"files": before, "into": into}, is_whole=len(now) == len(bins) or into >= before)


def rewrite_manifests(table: Table, *, dry_run: bool) -> Done:
    """Unite manifests: each batch leaves one, and a reader opens all of them."""
    small: Counter[int] = Counter()
    snapshot = table.current_snapshot()
    for manifest in () if snapshot is None else snapshot.manifests(table.io):
        is_small = (
            manifest.manifest_length < TableProperties.MANIFEST_TARGET_SIZE_BYTES_DEFAULT // 2
        )
        if is_small and manifest.content is ManifestContent.DATA:
            small[manifest.partition_spec_id] += 1
    number = sum(count for count in small.values() if count > FEW_MANIFESTS)
    if number and not dry_run:
        transaction = _find_single(table)
        table.metadata.properties[TableProperties.MANIFEST_MERGE_ENABLED] = "true"
        table.metadata.properties[TableProperties.MANIFEST_MIN_MERGE_COUNT] = "2"
        with transaction.update_snapshot().merge_append():
            pass
        transaction._snapshot_producers.clear()  # as `CommitFiles.send`
        _reach(table, "rewrite")
        transaction.commit_transaction()
    return Done({"manifests": number})


def remove_orphans(table: Table, older_than_ms: int, *, dry_run: bool) -> Done:
    """Remove files in the folder of the table that no snapshot knows, and that nobody is writing
    any more. Raise MaintenanceRefused if their owner is not certain.
    """
    refuse_other_tables(table)
    system, listed = files_from_before(table, older_than_ms)
    here = is_local(table.location())
    found = {
        spell(each.path, is_local=here): int(each.size or 0)
        for each in listed
        if each.base_name != VERSION_HINT
    }
    table.refresh()  # what is known is read after what is there
    known = _list_known(table)
    orphans = {path: size for path, size in found.items() if path not in known}
    _refuse_other_names(table, known, orphans)
    now = [*orphans] if dry_run else [*orphans][:ORPHANS_AT_ONCE]
    deleted = now if dry_run else [path for path in now if _is_deleted(system, path)]
    counts = {"files": len(deleted), "bytes": sum(orphans[path] for path in deleted)}
    return Done(counts, is_whole=len(now) == len(orphans) or not deleted)


def _find_made_ms(
    table: Table, snapshots: Sequence[Snapshot], now_ms: int, before_ms: int
) -> Iterable[int]:
    """Return when each was made, at the latest; they are in the order of their commits.

    A snapshot has the time of its writer's clock. Where that says too long ago, or not yet, the
    store decides, which knows when it got the manifest list. None is older than one before it.
    """
    doubtful = [s.manifest_list for s in snapshots if not before_ms <= s.timestamp_ms <= now_ms]
    in_store = read_modified_ms(table.io, doubtful)
    times = (in_store.get(each.manifest_list, each.timestamp_ms) for each in snapshots)
    return accumulate((min(at, now_ms) for at in times), max)


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


def _unite(table: Table, bins: Iterable[list[FileScanTask]]) -> int:
    """Unite the files and return how many there are afterwards."""
    properties = table.metadata.properties  # in this copy only
    properties[TableProperties.COMMIT_NUM_RETRIES] = "0"
    properties[TableProperties.WRITE_TARGET_FILE_SIZE_BYTES] = str(ONE_FILE_BYTES)
    files, added = CommitFiles(table), 0
    try:
        for packed in bins:
            for task in packed:
                files.remove(task.file)
            rows = pa.concat_tables(map(files.read, packed), promote_options="permissive")
            added += len(files.add(rows))
        files.stage({}, same_rows=True)
    except Exception:
        files.discard()
        raise
    _reach(table, "compact")
    try:
        files.send()
    except CommitFailedException:
        before = table.metadata_location
        table.refresh()
        if before != table.metadata_location and not files.is_in(table):
            files.discard()
        raise
    return added


def _reach(table: Table, task: str) -> None:
    """Mark the point at which all is written, and nothing of it counts yet."""
    reach(f"{'.'.join(table.name())}.{task}")


def _find_single(table: Table) -> Transaction:
    """Return a transaction without retries, because what it would do may be wrong later."""
    table.metadata.properties[TableProperties.COMMIT_NUM_RETRIES] = "0"
    return table.transaction()


def _list_known(table: Table) -> set[str]:
    metadata = table.metadata
    known = {place_of(table.metadata_location)}
    known |= {place_of(each.metadata_file) for each in metadata.metadata_log}
    known |= {place_of(each.statistics_path) for each in metadata.statistics}
    known |= {place_of(each.statistics_path) for each in metadata.partition_statistics}
    seen: set[str] = set()
    for snapshot in metadata.snapshots:
        known.add(place_of(snapshot.manifest_list))
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path not in seen:
                seen.add(manifest.manifest_path)
                known.add(place_of(manifest.manifest_path))
                entries = manifest.fetch_manifest_entry(table.io)
                known |= {place_of(entry.data_file.file_path) for entry in entries}
    return known


def _refuse_other_names(table: Table, known: Iterable[str], orphans: Iterable[str]) -> None:
    """Refuse if an orphan has the name of a known file: it may be that file under another path."""
    names = {posixpath.basename(path) for path in known}
    for path in orphans:
        if posixpath.basename(path) in names:
            message = f"{path} may be a file of {'.'.join(table.name())} by another name"
            raise MaintenanceRefused(message, "move it away if it is none, and try it again")


def _is_deleted(system: fs.FileSystem, path: str) -> bool:
    try:
        system.delete_file(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        logger.warning("file is not deleted", extra={"path": path, "reason": str(error)})
        return False
    return True
