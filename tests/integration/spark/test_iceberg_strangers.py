"""Iceberg tables that others write at the same time: rows are there once, and nobody starves."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import StringType

from builders import make_fence
from integration.spark.iceberg_sinks import LIFE, SCHEMA, as_table, loaded, local, opened, target
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.sink import IcebergSink
from waybill_spark.sinks.iceberg.tasks import compact, rewrite_manifests

WRITERS = 4
BATCHES = 12
KEYS = 10
VALUES = pa.schema([("order_id", pa.int64()), ("value", pa.int64())])
UPSERT: dict[str, Any] = {"mode": "upsert", "keys": ["order_id"], "orderBy": "value"}
SIZE = 10_000_000
ROUNDS = 3
STRANGE = 1_000_000  # rows of strangers have greater numbers
PAUSE_S = 0.2  # of strangers: who never stops leaves room for nobody


def test_several_pipelines_upsert_the_same_keys_and_each_has_its_turn(tmp_path: Path) -> None:
    opened(local(tmp_path), target(**UPSERT), VALUES)
    turns, at_first_end = Counter[int](), list[int]()

    def write(number: int) -> dict[int, int]:
        life = replace(LIFE, fence_key=f"pipeline {number}")
        sink = IcebergSink(life, local(tmp_path), target(**UPSERT), schema=VALUES)
        sink.claim()
        dice, written = random.Random(number), dict[int, int]()
        for sequence in range(BATCHES):
            keys = dice.sample(range(KEYS), KEYS // 2)
            values = [sequence * WRITERS + number] * len(keys)
            rows = pa.table({"order_id": keys, "value": values}, schema=VALUES)
            sink.write(rows.to_batches(), make_fence(sequence=sequence))
            written |= dict.fromkeys(keys, values[0])
            turns[number] += 1
        at_first_end.append(min(turns[each] for each in range(WRITERS)))
        sink.close()
        return written

    with ThreadPoolExecutor(WRITERS) as pool:
        each = [*pool.map(write, range(WRITERS))]

    catalog = local(tmp_path)
    rows = loaded(catalog).scan().to_arrow().to_pylist()
    expected = {key: max(written.get(key, -1) for written in each) for key in range(KEYS)}
    assert sorted((row["order_id"], row["value"]) for row in rows) == sorted(expected.items())
    assert len(loaded(catalog).snapshots()) <= WRITERS * BATCHES, "some changed no row"
    assert at_first_end[0] >= BATCHES // 3


Deed = Callable[[OpenCatalog, int], object]


def add_rows(catalog: OpenCatalog, number: int) -> None:
    loaded(catalog).append(as_table(STRANGE + number))


def take_rows_away(catalog: OpenCatalog, number: int) -> None:
    loaded(catalog).delete(f"order_id = {STRANGE + number - 3}")


def add_a_column(catalog: OpenCatalog, number: int) -> None:
    with loaded(catalog).update_schema() as update:
        update.add_column(f"more_{number}", StringType())


def partition_anew(catalog: OpenCatalog, number: int) -> None:
    table = loaded(catalog)
    with table.update_spec() as spec:
        if table.spec().is_unpartitioned():
            spec.add_identity("customer")
        else:
            spec.remove_field("customer")


def unite_files(catalog: OpenCatalog, _: int) -> None:
    compact(loaded(catalog), SIZE, dry_run=False)


def unite_manifests(catalog: OpenCatalog, _: int) -> None:
    rewrite_manifests(loaded(catalog), dry_run=False)


def forget_snapshots(catalog: OpenCatalog, _: int) -> None:
    table = loaded(catalog)
    old = [snapshot.snapshot_id for snapshot in table.snapshots()[:-3]]
    table.maintenance.expire_snapshots().by_ids(old).commit()


DEEDS: tuple[Deed, ...] = (
    add_rows,
    take_rows_away,
    add_a_column,
    partition_anew,
    unite_files,
    unite_manifests,
    forget_snapshots,
)


@pytest.mark.filterwarnings("ignore:Delete operation did not match")
@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_rows_are_there_once_whatever_strangers_do(tmp_path: Path, mode: str) -> None:
    settings: dict[str, Any] = {"mode": mode, "keys": ["order_id"] if mode == "upsert" else []}
    sink = opened(local(tmp_path), target(**settings), SCHEMA)
    sink.write(as_table(0).to_batches(), make_fence(sequence=0))
    done = threading.Event()

    def strangers() -> None:
        catalog, deeds = local(tmp_path), [*DEEDS] * ROUNDS
        random.Random(mode).shuffle(deeds)
        for number, deed in enumerate(deeds):
            if done.wait(PAUSE_S):
                break
            with suppress(CommitFailedException):  # theirs, too, may come too late
                deed(catalog, number)
        catalog.tables.close()

    sequence = 0
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(strangers)
        try:
            while not busy.done():
                sequence += 1
                sink.write(as_table(sequence).to_batches(), make_fence(sequence=sequence))
        finally:
            done.set()
        busy.result()
    numbers = loaded(local(tmp_path)).scan().to_arrow().column("order_id").to_pylist()
    assert sorted(number for number in numbers if number < STRANGE) == [*range(sequence + 1)]
    last = opened(local(tmp_path), target(**settings), SCHEMA).last()
    assert last is not None
    assert last.fence.batch.sequence == sequence


@pytest.mark.parametrize("settings", [{}, UPSERT])
def test_a_table_that_a_stranger_partitions_twice_by_one_column_is_written(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    catalog = local(tmp_path)
    sink = opened(catalog, target(**settings), VALUES)

    def write(sequence: int) -> None:
        rows = {"order_id": range(10), "value": [sequence] * 10}
        sink.write(pa.table(rows, schema=VALUES).to_batches(), make_fence(sequence=sequence))

    write(0)
    with loaded(catalog).update_spec() as update:
        update.add_field("order_id", BucketTransform(3), "third")
        update.add_field("order_id", BucketTransform(4), "fourth")
    write(1)
    write(2)
    found = Counter(loaded(catalog).scan().to_arrow().column("value").to_pylist())
    assert found == ({2: 10} if settings else {0: 10, 1: 10, 2: 10})
    one = loaded(catalog).scan(row_filter="order_id = 7").to_arrow().column("value").to_pylist()
    assert sorted(one) == ([2] if settings else [0, 1, 2])
