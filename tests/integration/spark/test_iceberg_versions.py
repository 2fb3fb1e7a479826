"""Which batches have snapshots that are gone, as tokens are told."""

from pathlib import Path

import pytest

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
from integration.spark.table_ages import Hand
from integration.spark.table_tasks import LATER_MS, filled
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.sink import LOOK_MS, IcebergSink
from waybill_spark.sinks.iceberg.tasks import expire_snapshots


@pytest.fixture
def catalog(tmp_path: Path) -> OpenCatalog:
    return local(tmp_path)


def test_whose_snapshots_are_gone_is_told(catalog: OpenCatalog) -> None:
    sink = filled(catalog, 4)
    assert sink.versions_from == 0
    loaded(catalog).append(as_table(100))
    expire_snapshots(loaded(catalog), LATER_MS, 0, 2, dry_run=False)
    sink.write(as_rows(50), make_fence(sequence=4))
    assert sink.versions_from == 3
    loaded(catalog).append(as_table(101))
    expire_snapshots(loaded(catalog), LATER_MS, 0, 1, dry_run=False)
    again = opened(catalog)
    assert again.versions_from == 5, "a stranger's is the only one"


def test_a_snapshot_with_a_tag_says_nothing_of_those_behind_it(catalog: OpenCatalog) -> None:
    sink = filled(catalog, 2)
    kept = loaded(catalog)
    first = kept.snapshots()[0].snapshot_id
    kept.manage_snapshots().create_tag(first, "end of the year").commit()
    sink = opened(catalog)
    sink.write(as_rows(2), make_fence(sequence=2))
    expire_snapshots(loaded(catalog), LATER_MS, 0, 1, dry_run=False)
    again = opened(catalog)
    assert loaded(catalog).snapshot_by_id(first) is not None
    assert again.versions_from == 2


def test_what_others_expired_is_seen_where_nothing_is_written(catalog: OpenCatalog) -> None:
    hand = Hand()
    sink = IcebergSink(LIFE, catalog, target(), schema=SCHEMA, clock=hand)
    sink.claim()
    for sequence in range(3):
        sink.write(as_rows(sequence), make_fence(sequence=sequence))
    expire_snapshots(loaded(catalog), LATER_MS, 0, 1, dry_run=False)
    sink.maintain()
    assert sink.versions_from == 0
    hand.ahead_ms += LOOK_MS
    sink.maintain()
    assert sink.versions_from == 2
    sink.write(as_rows(3), make_fence(sequence=3))
    assert numbers_in(catalog) == [0, 1, 2, 3]
