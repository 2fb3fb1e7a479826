"""A batch that changes no file makes no snapshot, and its fence shuts out other drivers all the
same; a token of it names the snapshot that has all rows until then."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import CommitFailedException

from builders import make_fence
from integration.spark.iceberg_sinks import (
    LIFE,
    as_rows,
    as_table,
    loaded,
    local,
    numbers_in,
    opened,
    target,
)
from waybill_shared.contract.batches import planned
from waybill_shared.process.clock import SystemClock
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.sinks.iceberg.tasks import expire_snapshots
from waybill_spark.tracking.batch import Batch
from waybill_spark.tracking.commits import Identity
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.sink import SinkSuperseded, Written

LATER_MS = 10**15
UPSERT: dict[str, Any] = {"mode": "upsert", "keys": ["order_id"]}
OVERWRITE: dict[str, Any] = {"mode": "overwrite", "overwrite": "table"}


@pytest.fixture
def catalog(tmp_path: Path) -> OpenCatalog:
    return local(tmp_path)


def write(sink: IcebergSink, sequence: int, *numbers: int, epoch: int = 0) -> Written:
    return sink.write(as_rows(*numbers), replace(make_fence(sequence=sequence), epoch=epoch))


def count(catalog: OpenCatalog) -> int:
    return len(loaded(catalog).snapshots())


def ledger_of(catalog: OpenCatalog, epoch: int) -> Ledger:
    ledger = Ledger(
        opened(catalog),
        stage="load",
        inputs=(),
        identity=Identity(tenant="default", pipeline_uid="uid", generation=1, epoch=epoch),
        emit=lambda commit: None,
        clock=SystemClock(),
    )
    ledger.read()
    return ledger


def snapshot_of(written: Written | None) -> str:
    assert written is not None
    return str(written.version["iceberg_snapshot_id"])


@pytest.mark.parametrize("settings", [{}, UPSERT, OVERWRITE])
def test_a_batch_without_rows_makes_no_snapshot_and_is_not_forgotten(
    catalog: OpenCatalog, settings: dict[str, Any]
) -> None:
    sink = opened(catalog, target(**settings))
    write(sink, 0, 1, 2)
    first = write(sink, 1) if settings is OVERWRITE else write(sink, 1, 3)
    before, rows = count(catalog), numbers_in(catalog)
    for sequence in range(2, 6):
        assert snapshot_of(write(sink, sequence)) == snapshot_of(first)
    assert (count(catalog), numbers_in(catalog)) == (before, rows)
    last = opened(catalog, target(**settings)).last()
    assert last is not None
    assert (last.fence.batch.sequence, snapshot_of(last)) == (5, snapshot_of(first))
    assert sink.versions_from == 0
    write(sink, 6, 9)
    assert (count(catalog), sink.versions_from) == (before + 1, 0)


def test_an_overwrite_without_rows_empties_a_table_that_has_some(catalog: OpenCatalog) -> None:
    sink = opened(catalog, target(**OVERWRITE))
    write(sink, 0, 1, 2)
    before = count(catalog)
    write(sink, 1)
    assert (numbers_in(catalog), count(catalog)) == ([], before + 1)


@pytest.mark.parametrize("rows", [(9,), ()], ids=["rows", "no rows"])
def test_a_driver_that_was_paused_is_shut_out_by_a_batch_without_rows(
    catalog: OpenCatalog, rows: tuple[int, ...]
) -> None:
    write(opened(catalog), 0, 1)
    paused, newer = opened(catalog), opened(catalog)
    before = count(catalog)
    write(newer, 1)
    assert count(catalog) == before
    with pytest.raises(SinkSuperseded):
        write(paused, 1, *rows)
    assert numbers_in(catalog) == [1]
    write(newer, 2, 2)
    assert numbers_in(catalog) == [1, 2]


def test_the_first_commit_of_a_driver_makes_a_snapshot(catalog: OpenCatalog) -> None:
    """Drivers of earlier releases are shut out by nothing else."""
    write(opened(catalog), 0, 1, epoch=1)
    sink = opened(catalog)
    write(sink, 1, epoch=2)
    assert count(catalog) == 2
    write(sink, 2, epoch=2)
    assert count(catalog) == 2


def test_a_claim_that_moves_makes_the_snapshot_of_the_first_commit_and_no_more(
    catalog: OpenCatalog,
) -> None:
    """So a pause costs at most one snapshot in a run, and none after the run's first batch."""
    ledger_of(catalog, epoch=1).move_claim()
    ledger = ledger_of(catalog, epoch=2)
    ledger.move_claim()
    before = count(catalog)
    ledger.move_claim()
    ledger.write(as_table(), Batch(report=planned(0, "7f1a", 0), runs=()))
    assert (before, count(catalog)) == (2, 2)


def test_the_first_batch_makes_a_snapshot_and_so_does_one_whose_snapshot_has_expired(
    catalog: OpenCatalog,
) -> None:
    sink = opened(catalog)
    assert snapshot_of(write(sink, 0))
    assert count(catalog) == 1
    loaded(catalog).append(as_table(7))
    assert expire_snapshots(loaded(catalog), LATER_MS, 0, 1, dry_run=False).is_something
    fresh = opened(catalog)
    last = fresh.last()
    assert last is not None
    assert last.version == {}
    before = count(catalog)
    assert snapshot_of(write(fresh, 1))
    assert count(catalog) == before + 1


def test_versions_end_where_the_snapshot_of_an_empty_batch_has_gone(catalog: OpenCatalog) -> None:
    sink = opened(catalog)
    for sequence, numbers in enumerate([(1,), (), (), (2,), (), (3,)]):
        write(sink, sequence, *numbers)
    assert sink.versions_from == 0
    expire_snapshots(loaded(catalog), LATER_MS, 0, 2, dry_run=False)
    assert opened(catalog).versions_from == 3


def test_a_fence_whose_answer_was_lost_is_found_again(
    catalog: OpenCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(catalog)
    write(sink, 0, 1)
    tables = type(catalog.tables)
    commit = tables.commit_table

    def lose(*given: Any) -> Any:  # noqa: ANN401 - of PyIceberg
        commit(*given)
        monkeypatch.setattr(tables, "commit_table", commit)
        raise CommitFailedException("the answer was lost")

    monkeypatch.setattr(tables, "commit_table", lose)
    write(sink, 1)
    assert count(catalog) == 1
    write(sink, 2, 2)
    assert numbers_in(catalog) == [1, 2]


def test_a_table_of_an_earlier_release_goes_on(catalog: OpenCatalog) -> None:
    """Its snapshots do not say which was the one before, and no property which was the last."""
    sink = opened(catalog)
    for sequence in range(3):
        write(sink, sequence, sequence)
    with loaded(catalog).transaction() as transaction:
        transaction.remove_properties(f"waybill.sequence.{LIFE.fence_key}")
    later = opened(catalog)
    last = later.last()
    assert last is not None
    assert snapshot_of(last) == str(loaded(catalog).snapshots()[-1].snapshot_id)
    assert later.versions_from == 0
    assert snapshot_of(write(later, 3)) == snapshot_of(last)
