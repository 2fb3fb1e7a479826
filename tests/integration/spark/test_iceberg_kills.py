"""Processes that are killed at every step of a commit, and of each task of a table: whoever comes
next finds all of it or nothing, and does the rest once."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO

from builders import make_fence
from integration.spark.iceberg_sinks import (
    FLAGGED,
    SCHEMA,
    as_table,
    loaded,
    local,
    numbers_in,
    opened,
    target,
)
from waybill_shared.process.clock import SystemClock
from waybill_spark.sinks.iceberg import maintenance, tasks
from waybill_spark.sinks.iceberg.catalogs import OpenCatalog
from waybill_spark.sinks.iceberg.fences import SEQUENCE

PROCESSES: Final = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["waybill_spark.sinks.iceberg.loader", "pytest"])
WITHIN_S: Final = 120.0
STEPS_MIN: Final = 6  # data, manifest, list of manifests, asking, metadata, and the catalog has it
STEPS_OF_TASK_MIN: Final = 3
LATER_MS: Final = 100 * 86_400_000  # all of it is old by then
UPSERT: Final[dict[str, Any]] = {"mode": "upsert", "keys": ["order_id"]}
BY_CUSTOMER: Final = {"partitionBy": [{"column": "customer"}]}


@dataclass(frozen=True, kw_only=True)
class Mode:
    settings: dict[str, Any] = field(default_factory=dict)
    schema: pa.Schema = SCHEMA
    reach: int = 1
    """So many numbers a batch has, with its own as the last."""
    kept: Callable[[int], list[int]]
    """The numbers that are in the table behind a batch."""

    def rows(self, sequence: int) -> list[pa.RecordBatch]:
        numbers = [*range(max(0, sequence + 1 - self.reach), sequence + 1)]
        rows = as_table(*numbers)
        if self.schema is FLAGGED:
            rows = rows.append_column("void", pa.array([n < sequence for n in numbers]))
        return [*rows.to_batches()]


def all_of(last: int) -> list[int]:
    return [*range(last + 1)]


MODES: Final = {
    "append": Mode(kept=all_of),
    "append to partitions": Mode(settings=BY_CUSTOMER, kept=all_of),
    "overwrite": Mode(settings={"mode": "overwrite"}, kept=lambda last: [last]),
    "overwrite partitions": Mode(
        settings={"mode": "overwrite", "overwrite": "partitions", **BY_CUSTOMER},
        kept=lambda last: [max(0, last - 1), last] if last else [0],
    ),
    "upsert": Mode(settings=UPSERT, reach=2, kept=all_of),
    "upsert and delete": Mode(
        settings={**UPSERT, "deleteWhere": "void"},
        schema=FLAGGED,
        reach=2,
        kept=lambda last: [last],
    ),
}
TASKS: Final = ("expireSnapshots", "compact", "rewriteManifests", "removeOrphans")
BATCHES: Final = 6  # of which each task has something to do


def die_at(step: int) -> None:
    """In this process: before it makes or deletes its file number `step`, or asks the catalog, or
    when that has answered."""
    steps = count(1)

    def come_to_one() -> None:
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(owner: type | ModuleType, name: str, *, behind: bool = False) -> None:
        real = getattr(owner, name)

        def does(*args: Any, **more: Any) -> Any:  # noqa: ANN401 - of any function
            come_to_one()
            answer = real(*args, **more)
            if behind:
                come_to_one()
            return answer

        setattr(owner, name, does)

    counted(PyArrowFileIO, "new_output")
    counted(PyArrowFileIO, "delete")
    counted(tasks, "_is_deleted")
    counted(SqlCatalog, "commit_table", behind=True)


def write(folder: Path, mode: str, sequence: int) -> None:
    catalog, how = local(folder), MODES[mode]
    sink = opened(catalog, target(**how.settings), how.schema)
    last = sink.last()
    if last is None or last.fence.batch.sequence < sequence:
        sink.write(how.rows(sequence), make_fence(sequence=sequence))
    sink.close()


def write_and_die(folder: Path, mode: str, sequence: int, step: int) -> None:
    die_at(step)
    write(folder, mode, sequence)


def keep_and_die(folder: Path, name: str, step: int) -> None:
    die_at(step)
    keep(local(folder), name)


def keep(catalog: OpenCatalog, name: str) -> None:
    task = target(maintenance={name: {}}).settings.maintenance.tasks[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "FEW_MANIFESTS", BATCHES - 1)
        patch.setattr(maintenance, "store_now_ms", lambda _, clock: clock.now_ms() + LATER_MS)
        maintenance.run(loaded(catalog), task, SystemClock())


def was_killed(does: Callable[..., None], *args: object) -> bool:
    process = PROCESSES.Process(target=does, args=args)
    process.start()
    process.join(WITHIN_S)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def sequences(catalog: OpenCatalog) -> list[int]:
    """Of all snapshots: which batches made them."""
    return [
        int(value)
        for snapshot in loaded(catalog).snapshots()
        if snapshot.summary is not None
        for key, value in snapshot.summary.additional_properties.items()
        if key.startswith(SEQUENCE)
    ]


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_is_written_once_by_whoever_comes_behind_a_killed_driver(
    tmp_path: Path, mode: str
) -> None:
    catalog = local(tmp_path)
    write(tmp_path, mode, 0)
    for sequence in count(1):
        is_killed = was_killed(write_and_die, tmp_path, mode, sequence, sequence)
        write(tmp_path, mode, sequence)
        assert numbers_in(catalog) == MODES[mode].kept(sequence)
        assert sequences(catalog) == all_of(sequence)
        if not is_killed:
            break
    assert sequence > STEPS_MIN


@pytest.mark.parametrize("name", TASKS)
def test_a_task_that_is_killed_loses_nothing_and_is_done_by_the_next(
    tmp_path: Path, name: str
) -> None:
    for step in count(1):
        folder = tmp_path / f"{step}"
        catalog = untidy(folder)
        rows, batches = numbers_in(catalog), sequences(catalog)
        is_killed = was_killed(keep_and_die, folder, name, step)
        assert is_readable(catalog, rows, batches)
        keep(catalog, name)
        assert is_readable(catalog, rows, batches)
        write(folder, "append", len(batches))
        assert numbers_in(catalog) == all_of(len(batches))
        if not is_killed:
            break
    assert step > STEPS_OF_TASK_MIN


def untidy(folder: Path) -> OpenCatalog:
    """With small files, many manifests, old snapshots and a file that nobody knows."""
    folder.mkdir()
    catalog = local(folder)
    sink = opened(catalog)
    for sequence in range(BATCHES):
        sink.write(as_table(sequence).to_batches(), make_fence(sequence=sequence))
    data = Path(loaded(catalog).location().removeprefix("file://")) / "data"
    for number in range(3):
        lost = data / f"lost-{number}.parquet"
        lost.touch()
        os.utime(lost, (1, 1))
    return catalog


def is_readable(catalog: OpenCatalog, rows: list[int], batches: list[int]) -> bool:
    """Every snapshot that is left, and the fence."""
    table = loaded(catalog)
    last = opened(catalog).last()
    for snapshot in table.snapshots():
        assert {*numbers_in(catalog, snapshot.snapshot_id)} <= {*rows}
    assert last is not None
    return numbers_in(catalog) == rows and last.fence.batch.sequence == batches[-1]
