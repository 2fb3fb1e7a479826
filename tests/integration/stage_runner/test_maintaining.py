"""A table that is kept in order at once, by a driver that does not run its pipeline."""

from pathlib import Path

import pytest

from builders import make_fence
from integration.stage_runner.iceberg_sinks import NAME, as_rows, loaded, local, numbers_in, opened
from waybill_shared.contract.driver import MaintainOrder, SinkPlaces
from waybill_spark.driver.maintaining import Upkeep, maintain
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


def keep(folder: Path, *, dry_run: bool = False, table: str = NAME) -> Upkeep:
    problems, done = maintain(order(dry_run=dry_run, table=table), places(folder))
    assert problems == ()
    return done


def order(*, dry_run: bool = False, table: str = NAME) -> MaintainOrder:
    return MaintainOrder(
        check_id="m1",
        pipeline_uid="uid",
        manifest=MANIFEST.replace("TABLE", table),
        sink="lake",
        dry_run=dry_run,
    )


def places(folder: Path) -> SinkPlaces:
    return SinkPlaces(lakehouse_folder=folder)


def test_all_that_is_named_is_done_and_who_writes_there_goes_on(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    sink = opened(catalog)
    for sequence in range(BATCHES):
        sink.write(as_rows(sequence), make_fence(sequence=sequence))

    would = {"compact": {"files": BATCHES, "into": 1}, "rewriteManifests": {"manifests": BATCHES}}
    assert keep(tmp_path, dry_run=True) == would
    assert len(loaded(catalog).inspect.files()) == BATCHES

    assert keep(tmp_path)["compact"] == {"files": BATCHES, "into": 1}
    assert len(loaded(catalog).inspect.files()) == 1
    assert "waybill.maintained.rewriteManifests" in loaded(catalog).properties

    sink.write(as_rows(BATCHES), make_fence(sequence=BATCHES))
    assert numbers_in(catalog) == [*range(BATCHES + 1)]
    assert keep(tmp_path) == {
        "compact": {"files": 0, "into": 0}, "rewriteManifests": {"manifests": 0},
    }  # fmt: skip


def test_a_table_that_is_not_there_is_told(catalog: OpenCatalog, tmp_path: Path) -> None:
    problems, done = maintain(order(), places(tmp_path))
    assert [each.message for each in problems] == [f"there is no table {NAME} yet"]
    assert done == {}
    problems, _ = maintain(order(), places(tmp_path / "elsewhere"))
    assert [each.message for each in problems] == [f"there is no table {NAME} yet"]
    assert not (tmp_path / "elsewhere").exists()


def test_what_cannot_be_reached_is_told(tmp_path: Path) -> None:
    local(tmp_path)
    (tmp_path / "catalog.db").write_text("no database")
    problems, done = maintain(order(), places(tmp_path))
    assert done == {}
    assert len(problems) == 1
