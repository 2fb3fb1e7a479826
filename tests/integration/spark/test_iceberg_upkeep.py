"""Which task of a table is due, and for whom: one of those who write there does it, and says so."""

from pathlib import Path

import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate

from builders import make_fence
from integration.spark.iceberg_sinks import (
    LIFE,
    NAME,
    SCHEMA,
    as_rows,
    loaded,
    local,
    numbers_in,
    target,
)
from integration.spark.table_ages import DAY_MS, HOUR_MS, Hand, age, writer_with_clock
from integration.spark.table_tasks import LATER_MS, filled, kept, paths
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.maintenance import DONE_AT, do_all
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.tracking.sink import MaintenanceResult, SinkSuperseded


@pytest.fixture
def catalog(tmp_path: Path) -> OpenCatalog:
    return local(tmp_path)


def test_each_task_is_done_when_it_is_due_by_one_of_those_who_write_there(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    with writer_with_clock(-2 * DAY_MS):
        filled(catalog, 8)
    age(tmp_path, 2 * DAY_MS)
    clock = Hand()
    sink, other = kept(catalog, clock), kept(catalog, clock)
    assert sink.maintain() == MaintenanceResult("compact", {"files": 8, "into": 1})
    assert (len(paths(catalog)), len(loaded(catalog).snapshots())) == (1, 9)
    sink.maintain()
    assert len(loaded(catalog).snapshots()) == 3
    for each in (sink, other, kept(catalog, clock)):
        assert each.maintain() is None
    assert len(loaded(catalog).snapshots()) == 3
    for number in range(8):
        sink.write(as_rows(100 + number), make_fence(sequence=8 + number))
    sink.maintain()
    assert len(paths(catalog)) == 9
    with loaded(catalog).transaction() as transaction:
        transaction.set_properties({f"{DONE_AT}compact": str(clock.now_ms() - HOUR_MS)})
    sink.write(as_rows(108), make_fence(sequence=16))
    clock.ahead_ms += 60_000
    sink.maintain()
    assert len(paths(catalog)) == 1
    assert numbers_in(catalog) == [*range(16), *range(100, 109)]


def test_who_keeps_a_table_in_order_after_it_was_overtaken_still_may_not_write(
    catalog: OpenCatalog,
) -> None:
    filled(catalog, 8)
    clock = Hand()
    paused, newer = kept(catalog, clock), kept(catalog, clock)
    newer.write(as_rows(100), make_fence(sequence=8))
    paused.maintain()
    assert len(paths(catalog)) == 1
    with pytest.raises(SinkSuperseded):
        paused.write(as_rows(100), make_fence(sequence=8))


def test_a_task_that_fails_ends_nothing_and_is_tried_again_later(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    filled(catalog, 8)
    clock = Hand()
    sink = kept(catalog, clock)
    aside = tmp_path / "aside"
    (tmp_path / "warehouse").rename(aside)
    sink.maintain()
    aside.rename(tmp_path / "warehouse")
    sink.maintain()
    assert len(paths(catalog)) == 8
    clock.ahead_ms += 60_000
    sink.maintain()
    assert len(paths(catalog)) == 1


def test_what_stands_in_the_table_of_times_is_believed_if_it_can_be(catalog: OpenCatalog) -> None:
    filled(catalog, 8)
    clock = Hand()
    for text in ("never", str(10 * LATER_MS)):
        with loaded(catalog).transaction() as transaction:
            transaction.set_properties({"waybill.maintained.compact": text})
        before = len(loaded(catalog).snapshots())
        kept(catalog, clock).maintain()
        noted = int(loaded(catalog).properties["waybill.maintained.compact"])
        assert abs(clock.now_ms() - noted) < HOUR_MS
        assert len(loaded(catalog).snapshots()) >= before


def test_why_a_table_is_not_kept_in_order_is_logged(
    catalog: OpenCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    filled(catalog, 1)
    catalog.tables.rename_table(NAME, "raw.older")
    wanted = target(maintenance={"removeOrphans": {}})
    sink = IcebergSink(LIFE, catalog, wanted, schema=SCHEMA, clock=Hand())
    sink.claim()
    kept = sink.maintain()
    assert kept is not None
    assert kept.problem is not None
    assert "table raw.older has files in" in kept.problem
    assert "table is not kept in order" in caplog.text


def test_a_note_of_what_was_done_is_written_though_somebody_comes_in_between(
    catalog: OpenCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(catalog, 8)
    table = loaded(catalog)
    commit = table.catalog.commit_table

    def deny(
        of: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        if DONE_AT not in str(updates):
            return commit(of, requirements, updates)
        monkeypatch.setattr(table.catalog, "commit_table", commit)
        raise CommitFailedException("somebody was faster")

    monkeypatch.setattr(table.catalog, "commit_table", deny)
    tasks = target(maintenance={"compact": {}}).settings.maintenance.tasks
    assert do_all(table, tasks, Hand(), dry_run=False)["compact"]["into"] == 1
    assert f"{DONE_AT}compact" in loaded(catalog).properties
