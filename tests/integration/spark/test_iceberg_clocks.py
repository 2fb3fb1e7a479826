"""Tables are kept in order by the clock of their store, whatever the clocks of hosts show."""

import os
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from builders import make_fence
from integration.spark.iceberg_sinks import (
    LIFE,
    SCHEMA,
    as_rows,
    as_table,
    loaded,
    local,
    numbers_in,
    opened,
    target,
)
from integration.spark.table_ages import DAY_MS, HOUR_MS, Hand, age, files, writer_with_clock
from waybill_shared.contract.manifest.maintenance import TableTask
from waybill_shared.process.clock import SystemClock
from waybill_spark.sinks.iceberg.ages import MaintenanceRefused, store_now_ms
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.maintenance import do_all
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.sinks.iceberg.tasks import expire_snapshots, remove_orphans
from waybill_spark.tracking.sink import SinkUnreachable

BATCHES = 22  # so many manifests are too many
ALL: dict[str, Any] = {
    "compact": {},
    "rewriteManifests": {},
    "expireSnapshots": {"olderThan": "1 hour"},
    "removeOrphans": {"olderThan": "1 day"},
}


@pytest.fixture
def catalog(tmp_path: Path) -> OpenCatalog:
    return local(tmp_path)


def tasks(*names: str) -> dict[str, TableTask]:
    wanted = {name: ALL[name] for name in names or ALL}
    return target(maintenance=wanted).settings.maintenance.tasks


def write(sink: IcebergSink, *sequences: int, clock_ms: int = 0) -> None:
    """As a driver whose clock shows so much more than the true time."""
    with writer_with_clock(clock_ms):
        for sequence in sequences:
            sink.write(as_rows(sequence), make_fence(sequence=sequence))


def sequences_left(catalog: OpenCatalog) -> list[int]:
    """Of the snapshots that are still there."""
    key = f"waybill.sequence.{LIFE.fence_key}"
    return [
        int(str(each.summary.additional_properties.get(key)))
        for each in loaded(catalog).snapshots()
        if each.summary is not None
    ]


def expire(catalog: OpenCatalog, *, older_than_ms: int = HOUR_MS, keep: int = 1) -> list[int]:
    now = store_now_ms(loaded(catalog), SystemClock())
    expire_snapshots(loaded(catalog), now, older_than_ms, keep, dry_run=False)
    return sequences_left(catalog)


@pytest.mark.parametrize(
    ("ahead_ms", "said"), [(DAY_MS, "24 hours ahead of"), (-DAY_MS, "24 hours behind")]
)
def test_nothing_is_done_by_a_host_whose_clock_differs_from_that_of_the_store(
    catalog: OpenCatalog, tmp_path: Path, ahead_ms: int, said: str
) -> None:
    write(opened(catalog), *range(BATCHES))
    written = tmp_path / "warehouse/raw/orders/data/of-a-running-batch.parquet"
    written.write_bytes(b"not committed yet")
    before = files(tmp_path)

    for name, settings in ALL.items():
        with pytest.raises(MaintenanceRefused, match=said):
            do_all(loaded(catalog), tasks(name), Hand(ahead_ms), dry_run=False)
        wanted = target(maintenance={name: settings})
        scheduled = IcebergSink(LIFE, catalog, wanted, schema=SCHEMA, clock=Hand(ahead_ms))
        scheduled.claim()
        kept = scheduled.maintain()
        assert kept is not None
        assert (kept.task, kept.done) == (name, {})
        assert kept.problem is not None
        assert said in kept.problem
        assert "set the clock" in kept.problem
    assert files(tmp_path) == before
    assert len(loaded(catalog).snapshots()) == BATCHES


@pytest.mark.parametrize("ahead_ms", [60_000, -60_000])
def test_a_host_whose_clock_differs_by_a_minute_makes_nothing_older_or_younger(
    catalog: OpenCatalog, tmp_path: Path, ahead_ms: int
) -> None:
    write(opened(catalog), *range(8))
    data = tmp_path / "warehouse/raw/orders/data"
    young, old = data / "young.parquet", data / "old.parquet"
    for path, least_ms in ((young, -30_000), (old, 30_000)):
        path.write_bytes(b"nobody knows it")
        at = path.stat().st_mtime - (DAY_MS + least_ms) / 1_000
        os.utime(path, (at, at))
    do_all(loaded(catalog), tasks(), Hand(ahead_ms), dry_run=False)
    assert young.exists()
    assert not old.exists()


def test_a_fresh_snapshot_of_a_writer_whose_clock_is_behind_stays_as_long_as_others(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    write(opened(catalog), 0, 1, 2, clock_ms=-DAY_MS)
    assert expire(catalog) == [0, 1, 2]
    age(tmp_path, 2 * HOUR_MS)
    assert expire(catalog) == [2]


def test_a_snapshot_of_a_writer_whose_clock_is_ahead_goes_with_others(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    write(opened(catalog), 0, 1, 2, clock_ms=DAY_MS)
    age(tmp_path, 2 * HOUR_MS)
    assert expire(catalog) == [2]


def test_the_newest_are_those_that_were_committed_last_whatever_their_times(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    sink = opened(catalog)
    write(sink, 0, 1, clock_ms=DAY_MS)
    write(sink, 2, 3, clock_ms=-DAY_MS)
    age(tmp_path, 2 * HOUR_MS)
    assert expire(catalog, keep=2) == [2, 3]


def test_no_snapshot_is_older_than_the_one_before_it(catalog: OpenCatalog, tmp_path: Path) -> None:
    """As where the clock of the store was set back in between."""
    sink = opened(catalog)
    write(sink, 0)
    first = files(tmp_path)
    write(sink, 1, 2, clock_ms=-DAY_MS)
    for path in files(tmp_path) - first:
        at = path.stat().st_mtime - DAY_MS / 1_000
        os.utime(path, (at, at))
    assert expire(catalog) == [0, 1, 2]


def test_a_batch_whose_files_were_deleted_before_its_commit_is_not_committed_and_comes_again(
    catalog: OpenCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(catalog)
    write(sink, 0)
    before = files(tmp_path)

    def delete(kind: str) -> None:
        gone = next(path for path in files(tmp_path) - before if path.suffix == kind)
        gone.unlink()

    for kind in (".parquet", ".avro"):
        monkeypatch.setattr(
            "waybill_spark.sinks.iceberg.sink.reach", lambda _, kind=kind: delete(kind)
        )
        with pytest.raises(SinkUnreachable, match=f"{kind} is deleted"):
            sink.write(as_rows(1), make_fence(sequence=1))
        assert files(tmp_path) == before
    monkeypatch.undo()
    write(sink, 1)
    assert numbers_in(catalog) == [0, 1]


def test_a_compaction_whose_files_were_deleted_is_not_committed(
    catalog: OpenCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(opened(catalog), *range(8))
    before = files(tmp_path)

    def delete(_: str) -> None:
        next(path for path in files(tmp_path) - before if path.suffix == ".parquet").unlink()

    monkeypatch.setattr("waybill_spark.sinks.iceberg.tasks.reach", delete)
    with pytest.raises(SinkUnreachable, match="is deleted"):
        do_all(loaded(catalog), tasks("compact"), SystemClock(), dry_run=False)
    assert numbers_in(catalog) == [*range(8)]
    assert files(tmp_path) == before


FOLDERS = {
    "write.data.path": "raw/orders/other",
    "write.metadata.path": "raw/orders/other",
    "write.object-storage.path": "raw/orders/other",
    "write.folder-storage.path": "raw/orders/other",
    "around": "raw",
}


@pytest.mark.parametrize("name", FOLDERS)
def test_files_of_another_table_that_its_properties_put_here_stay(
    catalog: OpenCatalog, tmp_path: Path, name: str
) -> None:
    write(opened(catalog), 0)
    key = "write.data.path" if name == "around" else name
    folder = f"file://{tmp_path}/warehouse/{FOLDERS[name]}"
    other = make_other(catalog.tables, {key: folder})
    other.append(as_table(1))
    age(tmp_path, 2 * DAY_MS)
    before = files(tmp_path)
    with pytest.raises(MaintenanceRefused, match=r"elsewhere\.other has files in"):
        do_all(loaded(catalog), tasks("removeOrphans"), SystemClock(), dry_run=False)
    assert files(tmp_path) == before
    assert catalog.tables.load_table("elsewhere.other").scan().to_arrow().num_rows == 1


def test_tables_with_folders_of_their_own_are_kept_in_order(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    write(opened(catalog), 0)
    make_other(catalog.tables, {"write.data.path": f"file://{tmp_path}/warehouse/raw/orders_2"})
    left = tmp_path / "warehouse/raw/orders/data/left.parquet"
    left.write_bytes(b"left behind")
    age(tmp_path, 2 * DAY_MS)
    now = store_now_ms(loaded(catalog), SystemClock())
    assert remove_orphans(loaded(catalog), now - DAY_MS, dry_run=False).counts["files"] == 1
    assert not left.exists()
    assert numbers_in(catalog) == [0]


def make_other(catalog: Any, properties: dict[str, str]) -> Any:  # noqa: ANN401 - PyIceberg's
    assert isinstance(catalog, SqlCatalog)
    catalog.create_namespace("elsewhere")
    return catalog.create_table("elsewhere.other", SCHEMA, properties=properties)
