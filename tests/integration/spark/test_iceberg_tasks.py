"""What keeps a table in order: rows, fence and what a token names stay; nothing else does."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

from builders import make_fence
from integration.spark.iceberg_sinks import (
    LIFE,
    NAME,
    SCHEMA,
    as_rows,
    loaded,
    local,
    made,
    numbers_in,
    opened,
    target,
)
from integration.spark.table_ages import Hand, files
from integration.spark.table_tasks import (
    BY_CUSTOMER,
    KEPT,
    LATER_MS,
    SIZE,
    UPSERT,
    filled,
    paths,
    read_each,
)
from waybill_shared.process.clock import SystemClock
from waybill_spark.sinks.iceberg.ages import MaintenanceRefused
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.sinks.iceberg.tasks import (
    compact,
    expire_snapshots,
    remove_orphans,
    rewrite_manifests,
)
from waybill_spark.tracking.sink import SinkSuperseded


@pytest.fixture
def catalog(tmp_path: Path) -> OpenCatalog:
    return local(tmp_path)


@pytest.mark.parametrize("settings", [{}, BY_CUSTOMER, UPSERT, UPSERT | BY_CUSTOMER])
def test_small_files_become_few_and_rows_and_fence_stay(
    catalog: OpenCatalog, settings: dict[str, Any]
) -> None:
    sink = filled(catalog, 8, **settings)
    before = numbers_in(catalog)
    assert compact(loaded(catalog), SIZE, dry_run=True).is_something
    assert len(paths(catalog)) >= 8
    snapshots = read_each(catalog)
    assert len(snapshots) == 8
    done = compact(loaded(catalog), SIZE, dry_run=False)
    assert done.is_whole
    assert done.counts["files"] == (16 if "partitionBy" in settings else 8)
    assert len(paths(catalog)) == done.counts["into"] <= 2
    assert numbers_in(catalog) == before
    assert snapshots.items() <= read_each(catalog).items()
    snapshot = loaded(catalog).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary.operation.value == "replace"
    last = opened(catalog, target(**settings)).last()
    assert last is not None
    assert last.fence.batch.sequence == 7
    sink.write(as_rows(100), make_fence(sequence=8))
    assert numbers_in(catalog) == [*before, 100]


def test_few_files_and_large_ones_stay(catalog: OpenCatalog) -> None:
    filled(catalog, 3)
    assert not compact(loaded(catalog), SIZE, dry_run=False).is_something
    filled_up = paths(catalog)
    assert not compact(loaded(catalog), 10, dry_run=False).is_something
    assert paths(catalog) == filled_up


def test_who_came_in_between_wins(catalog: OpenCatalog, tmp_path: Path) -> None:
    sink = filled(catalog, 8)
    stale = loaded(catalog)
    sink.write(as_rows(100), make_fence(sequence=8))
    with pytest.raises(CommitFailedException):
        compact(stale, SIZE, dry_run=False)
    assert numbers_in(catalog) == [*range(16), 100]
    known = loaded(catalog).inspect.all_files().column("file_path").to_pylist()
    data = [path for path in files(tmp_path) if path.suffix == ".parquet"]
    assert len(data) == len(known)


def test_a_paused_driver_is_refused_behind_a_task(catalog: OpenCatalog) -> None:
    paused = filled(catalog, 8)
    newer = opened(catalog)
    newer.write(as_rows(100), make_fence(sequence=8))
    compact(loaded(catalog), SIZE, dry_run=False)
    with pytest.raises(SinkSuperseded):
        paused.write(as_rows(100), make_fence(sequence=8))
    assert numbers_in(catalog) == [*range(16), 100]


def test_old_snapshots_go_but_the_newest_and_what_has_a_name(catalog: OpenCatalog) -> None:
    filled(catalog, 6)
    table = loaded(catalog)
    first = table.snapshots()[0].snapshot_id
    table.manage_snapshots().create_tag(first, "kept").commit()
    assert expire_snapshots(loaded(catalog), LATER_MS, 0, 2, dry_run=True).counts == {
        "snapshots": 3
    }
    assert len(loaded(catalog).snapshots()) == 6
    assert expire_snapshots(loaded(catalog), LATER_MS, LATER_MS, 2, dry_run=False).counts == {
        "snapshots": 0
    }
    expire_snapshots(loaded(catalog), LATER_MS, 0, 2, dry_run=False)
    left = [snapshot.snapshot_id for snapshot in loaded(catalog).snapshots()]
    assert (len(left), first in left) == (3, True)
    assert numbers_in(catalog) == [*range(12)]
    last = opened(catalog).last()
    assert last is not None
    assert last.fence.batch.sequence == 5


def test_manifests_are_united(catalog: OpenCatalog) -> None:
    sink = filled(catalog, 25)
    assert rewrite_manifests(loaded(catalog), dry_run=True).counts == {"manifests": 25}
    rewrite_manifests(loaded(catalog), dry_run=False)
    snapshot = loaded(catalog).current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(loaded(catalog).io)) == 1
    assert not rewrite_manifests(loaded(catalog), dry_run=False).is_something
    sink.write(as_rows(100), make_fence(sequence=25))
    assert numbers_in(catalog) == [*range(50), 100]


def test_files_that_nobody_knows_go_when_they_are_old(catalog: OpenCatalog, tmp_path: Path) -> None:
    filled(catalog, 8)
    before = files(tmp_path)
    place = tmp_path / "warehouse/raw/orders/data"
    for name in ("old.parquet", "new.parquet"):
        (place / name).write_bytes(b"left behind")
    now = SystemClock().now_ms()
    os.utime(place / "old.parquet", (now / 1_000 - 3_600,) * 2)
    until = now - 60_000
    assert remove_orphans(loaded(catalog), until, dry_run=True).counts == {"files": 1, "bytes": 11}
    assert files(tmp_path) == {*before, place / "old.parquet", place / "new.parquet"}
    remove_orphans(loaded(catalog), until, dry_run=False)
    assert files(tmp_path) == {*before, place / "new.parquet"}


def test_what_expired_and_was_compacted_is_removed_and_all_else_is_read(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    filled(catalog, 8, **UPSERT)
    compact(loaded(catalog), SIZE, dry_run=False)
    expire_snapshots(loaded(catalog), LATER_MS, 0, 1, dry_run=False)
    done = remove_orphans(loaded(catalog), LATER_MS // 10, dry_run=False)
    assert done.is_something
    data = [path for path in files(tmp_path) if path.suffix == ".parquet"]
    assert len(data) == len(paths(catalog)) == 1
    assert numbers_in(catalog) == [*range(16)]
    opened(catalog, target(**UPSERT)).write(as_rows(3), make_fence(sequence=8))
    assert numbers_in(catalog) == [*range(16)]


def test_a_snapshot_that_gets_a_name_meanwhile_stays(catalog: OpenCatalog) -> None:
    filled(catalog, 3)
    stale = loaded(catalog)
    first = stale.snapshots()[0].snapshot_id
    loaded(catalog).manage_snapshots().rollback_to_snapshot(first).commit()
    with pytest.raises(CommitFailedException):
        expire_snapshots(stale, LATER_MS, 0, 1, dry_run=False)
    assert numbers_in(catalog) == [0, 1]


@pytest.mark.parametrize("way", ["link", "slashes"])
def test_files_that_are_known_by_another_way_stay(
    catalog: OpenCatalog, tmp_path: Path, way: str
) -> None:
    place = tmp_path / "warehouse/raw/orders"
    link = tmp_path / "link"
    link.symlink_to(place)
    data = f"file://{link}/data" if way == "link" else f"file://{place}//data"
    columns = [("order_id", LongType()), ("customer", StringType())]
    fields = [NestedField(number, *each) for number, each in enumerate(columns, 1)]
    made(catalog, *fields, **{"write.data.path": data})
    filled(catalog, 3)
    assert not remove_orphans(loaded(catalog), LATER_MS // 10, dry_run=False).counts["bytes"]
    assert numbers_in(catalog) == [*range(6)]


@pytest.mark.parametrize("name", ["raw.older", "archive.of.older"])
def test_the_folder_of_a_table_that_was_renamed_is_left_alone(
    catalog: OpenCatalog, name: str
) -> None:
    filled(catalog, 3)
    catalog.tables.create_namespace_if_not_exists(name.rpartition(".")[0])
    catalog.tables.rename_table(NAME, name)
    filled(catalog, 1)
    with pytest.raises(MaintenanceRefused, match=f"table {name} has files in"):
        remove_orphans(loaded(catalog), LATER_MS // 10, dry_run=False)
    assert catalog.tables.load_table(name).scan().to_arrow().num_rows == 6


def test_a_file_that_is_committed_while_others_are_looked_for_stays(
    catalog: OpenCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = filled(catalog, 2)
    stale = loaded(catalog)
    monkeypatch.setattr(
        "waybill_spark.sinks.iceberg.tasks.refuse_other_tables",
        lambda _: sink.write(as_rows(9), make_fence(sequence=2)),
    )
    remove_orphans(stale, LATER_MS // 10, dry_run=False)
    assert numbers_in(catalog) == [0, 1, 2, 3, 9]


def test_files_that_would_not_become_fewer_are_not_written_again_and_again(
    catalog: OpenCatalog,
) -> None:
    filled(catalog, 8, properties={"write.target-file-size-bytes": "100"})
    assert compact(loaded(catalog), SIZE, dry_run=False).counts == {"files": 8, "into": 1}
    assert not compact(loaded(catalog), SIZE, dry_run=False).is_something


def test_a_column_that_somebody_adds_before_a_task_is_met_by_the_next_commit(
    catalog: OpenCatalog,
) -> None:
    filled(catalog, 8)
    wider = pa.schema([*SCHEMA, ("tax", pa.float64())])
    wanted = target(**KEPT, schemaEvolution="add")
    sink = IcebergSink(LIFE, catalog, wanted, schema=wider, clock=Hand())
    sink.claim()
    with loaded(catalog).update_schema() as update:
        update.add_column("tax", DoubleType())
    sink.maintain()
    rows = pa.table({"order_id": [9], "customer": ["a"], "tax": [0.5]}, schema=wider)
    sink.write(rows.to_batches(), make_fence(sequence=8))
    assert loaded(catalog).scan().to_arrow().num_rows == 17
