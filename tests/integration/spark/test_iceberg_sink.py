"""The Iceberg sink on a real catalog: rows and fence in one commit, and nobody writes twice."""

from pathlib import Path

import pytest

from builders import make_fence
from integration.spark.iceberg_sinks import (
    LIFE,
    NAME,
    SCHEMA,
    as_rows,
    as_table,
    local,
    numbers_in,
    opened,
    target,
)
from waybill_shared.process.clock import SystemClock
from waybill_spark.driver.failures import describe
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.tracking.commits import Identity
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.sink import SinkSuperseded, SinkUnreachable
from waybill_spark.tracking.stopping import StageStopped


@pytest.fixture
def catalog(tmp_path: Path) -> OpenCatalog:
    return local(tmp_path)


def test_the_fence_is_read_back_with_the_snapshot_that_it_came_with(catalog: OpenCatalog) -> None:
    written = opened(catalog).write(as_rows(1, 2), make_fence(sequence=0))
    opened(catalog).write(as_rows(3), make_fence(sequence=1))

    assert numbers_in(catalog, int(written.version["iceberg_snapshot_id"])) == [1, 2]
    last = opened(catalog).last()
    assert last is not None
    assert last.fence == make_fence(sequence=1)
    assert last.version["iceberg_snapshot_id"] != written.version["iceberg_snapshot_id"]


def test_a_paused_driver_is_refused_on_a_table_that_somebody_else_made(
    catalog: OpenCatalog,
) -> None:
    catalog.tables.create_namespace("raw")
    catalog.tables.create_table(NAME, schema=SCHEMA, properties={"commit.retry.num-retries": "9"})
    paused, newer = opened(catalog), opened(catalog)

    newer.write(as_rows(1), make_fence(sequence=0))
    with pytest.raises(SinkSuperseded):
        paused.write(as_rows(1), make_fence(sequence=0))

    assert numbers_in(catalog) == [1]
    assert catalog.tables.load_table(NAME).properties["commit.retry.num-retries"] == "9"


def closing(catalog: OpenCatalog) -> Ledger:
    """As `driver.closing` opens a sink: it knows no columns."""
    sink = IcebergSink(LIFE, catalog, target(), schema=None)
    identity = Identity(tenant="default", pipeline_uid="uid", generation=1, epoch=2)
    sink.claim()
    return Ledger(
        sink, stage="load", inputs=(), identity=identity, emit=lambda commit: None,
        clock=SystemClock(),
    )  # fmt: skip


def test_a_deletion_shuts_out_a_driver_that_has_written_nothing_yet(catalog: OpenCatalog) -> None:
    paused, ledger = opened(catalog), closing(catalog)
    ledger.read()
    assert ledger.fence is None

    ledger.close_for_good()

    with pytest.raises(SinkSuperseded):
        paused.write(as_rows(1), make_fence(sequence=0))
    assert numbers_in(catalog) == []


def test_a_deletion_makes_no_table(catalog: OpenCatalog) -> None:
    with pytest.raises(StageStopped, match="there is no table"):
        closing(catalog).close_for_good()


def test_another_writer_of_the_table_only_makes_us_try_again(catalog: OpenCatalog) -> None:
    sink = opened(catalog)
    sink.write(as_rows(1), make_fence(sequence=0))

    catalog.tables.load_table(NAME).append(as_table(100))
    written = sink.write(as_rows(2), make_fence(sequence=1))

    assert numbers_in(catalog) == [1, 2, 100]
    assert numbers_in(catalog, int(written.version["iceberg_snapshot_id"])) == [1, 2, 100]


def test_a_fence_outlives_its_snapshot(catalog: OpenCatalog) -> None:
    opened(catalog).write(as_rows(1), make_fence(sequence=0))
    first = catalog.tables.load_table(NAME).current_snapshot()
    catalog.tables.load_table(NAME).append(as_table(100))
    assert first is not None
    catalog.tables.load_table(NAME).maintenance.expire_snapshots().by_id(first.snapshot_id).commit()

    last = opened(catalog).last()

    assert last is not None
    assert last.fence.batch.sequence == 0
    assert last.version == {}


def test_a_sink_that_cannot_be_reached_is_named_with_its_place(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    sink = opened(catalog)
    (tmp_path / "warehouse").rename(tmp_path / "moved")
    (tmp_path / "warehouse").touch()
    with pytest.raises(SinkUnreachable) as raised:
        sink.write(as_rows(1), make_fence(sequence=0))
    told = describe(raised.value, "load")
    assert (told.domain, told.retryable) == ("external", True)
    assert told.message.startswith("sink lake: table raw.orders cannot be reached: ")
    assert str(tmp_path / "warehouse") in told.hint


def test_a_catalog_that_cannot_be_reached_is_told_without_its_statements(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    (tmp_path / "catalog.db").unlink()
    with pytest.raises(SinkUnreachable, match=r"cannot be reached: [a-z ]+$"):
        opened(catalog)


def test_a_lakehouse_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "warehouse").touch()
    with pytest.raises(SinkUnreachable, match=r"the lakehouse in .* cannot be reached") as raised:
        local(tmp_path)
    assert str(tmp_path) in raised.value.hint
