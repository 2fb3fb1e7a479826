"""A table that is kept in order at once, by a driver that does not run its pipeline."""

from functools import partial
from pathlib import Path

import pytest

from builders import applied, make_fence
from integration.spark.iceberg_sinks import NAME, as_rows, loaded, local, numbers_in, opened
from integration.spark.table_ages import HOUR_MS, Hand
from waybill_shared.contract.driver import MaintainOrder, RunSpec, SinkPlaces
from waybill_spark.driver.maintenance import TaskCounts, maintain
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog

BATCHES = 22
MANIFEST = """
version: 1
name: orders
inputs: [{name: orders, kafka: {topic: orders.in}, schema: "order_id BIGINT, customer STRING"}]
stages:
  - name: load
    inputs: [orders]
    sinks:
      - name: lake
        iceberg: {table: TABLE, maintenance: {compact: {}, rewriteManifests: {}}}
"""


@pytest.fixture
def catalog(tmp_path: Path) -> OpenCatalog:
    return local(tmp_path)


@pytest.fixture
def reported() -> list[str]:
    """Of which sinks it was said again what they hold."""
    return []


def order(folder: Path, *, dry_run: bool = False) -> MaintainOrder:
    spec = RunSpec(
        tenant="default",
        pipeline_uid="uid",
        pipeline="orders",
        generation=1,
        epoch=0,
        lifecycle_id="",
        run_id="r1",
        manifest=applied(MANIFEST.replace("TABLE", NAME)),
        stages=(),
        topic_prefix="waybill",
        checkpoint_folder=folder / "checkpoints",
        places=SinkPlaces(lakehouse_folder=folder),
        log_file=folder / "driver.log",
        batch_rows_max=1,
        batch_bytes_max=1,
        loads_max=1,
        topic_absent_s=1,
        replication=1,
    )
    return MaintainOrder(check_id="m1", spec=spec, sink="lake", dry_run=dry_run)


def test_all_that_is_named_is_done_and_who_writes_there_goes_on(
    catalog: OpenCatalog, tmp_path: Path, reported: list[str]
) -> None:
    def keep(*, dry_run: bool = False) -> TaskCounts:
        problems, done = maintain(order(tmp_path, dry_run=dry_run), reported.append)
        assert problems == ()
        return done

    sink = opened(catalog)
    for sequence in range(BATCHES):
        sink.write(as_rows(sequence), make_fence(sequence=sequence))

    would = {"compact": {"files": BATCHES, "into": 1}, "rewriteManifests": {"manifests": BATCHES}}
    assert keep(dry_run=True) == would
    assert (len(loaded(catalog).inspect.files()), reported) == (BATCHES, [])

    assert keep()["compact"] == {"files": BATCHES, "into": 1}
    assert reported == ["lake"]
    assert len(loaded(catalog).inspect.files()) == 1
    assert "waybill.maintained.rewriteManifests" in loaded(catalog).properties

    sink.write(as_rows(BATCHES), make_fence(sequence=BATCHES))
    assert numbers_in(catalog) == [*range(BATCHES + 1)]
    assert keep() == {
        "compact": {"files": 0, "into": 0}, "rewriteManifests": {"manifests": 0},
    }  # fmt: skip


def test_a_table_that_is_not_there_is_told(
    catalog: OpenCatalog, tmp_path: Path, reported: list[str]
) -> None:
    problems, done = maintain(order(tmp_path), reported.append)
    assert [each.message for each in problems] == [f"there is no table {NAME} yet"]
    assert (done, reported) == ({}, [])
    problems, _ = maintain(order(tmp_path / "elsewhere"), reported.append)
    assert [each.message for each in problems] == [f"there is no table {NAME} yet"]
    assert not (tmp_path / "elsewhere").exists()


def test_what_cannot_be_reached_is_told(tmp_path: Path, reported: list[str]) -> None:
    local(tmp_path)
    (tmp_path / "catalog.db").write_text("no database")
    problems, done = maintain(order(tmp_path), reported.append)
    assert (done, reported) == ({}, [])
    assert len(problems) == 1


def test_why_a_host_with_a_wrong_clock_does_nothing_is_answered(
    catalog: OpenCatalog, tmp_path: Path, reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(catalog).write(as_rows(1), make_fence(sequence=0))
    monkeypatch.setattr("waybill_spark.sinks.iceberg.loader.SystemClock", partial(Hand, -HOUR_MS))
    problems, done = maintain(order(tmp_path), reported.append)
    assert (done, reported) == ({}, [])
    (problem,) = problems
    assert "60 minutes behind that of the store" in problem.message
    assert problem.hint == "set the clock of the host, or that of the store"
