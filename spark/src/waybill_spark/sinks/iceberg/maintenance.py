"""Decides which maintenance task of a table is due, and does it.

The table itself keeps when a task was done last. So it is done once, even if several pipelines or
several drivers, one after the other, write there.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from waybill_shared.contract.manifest.maintenance import (
    Compact,
    ExpireSnapshots,
    Maintenance,
    RemoveOrphans,
    TableTask,
    age_ms,
)
from waybill_shared.process.clock import Clock, Clocks
from waybill_spark.sinks.iceberg.ages import store_now_ms
from waybill_spark.sinks.iceberg.tasks import (
    Done,
    compact,
    expire_snapshots,
    remove_orphans,
    rewrite_manifests,
)
from waybill_spark.tracking.sink import SinkUnreachable

DONE_AT: Final = "waybill.maintained."
CONFLICTS_MS: Final = 60_000  # so long others may come in between of one step
NOTES_MAX: Final = 5  # tries to write down when a task was done
AGAIN_MS: Final = 60_000  # after one that failed, or that a commit of others prevented


class DueTasks:
    def __init__(self, maintenance: Maintenance) -> None:
        self._tasks: Mapping[str, TableTask] = maintenance.tasks
        self._not_before: dict[str, int] = {}
        self._failures: Counter[str] = Counter()

    def take_due(self, table: Table, now_ms: int) -> str | None:
        """Return the first task that is due.

        After each failure it is tried again later than before, not at once.
        """
        for name in self._tasks:
            if now_ms >= self._not_before.get(name, 0) and self._is_due(table, name, now_ms):
                self._failures[name] += 1
                later = AGAIN_MS << min(self._failures[name] - 1, 10)
                self._not_before[name] = now_ms + min(later, self._tasks[name].every_ms)
                return name
        return None

    def do(self, table: Table, name: str, clock: Clock) -> Done | None:
        """Do at most a part of a task, so that no batch waits for long; the rest is due at once.

        Return None if another pipeline has done it.
        """
        now_ms = clock.now_ms()
        if not self._is_due(table, name, now_ms):
            return None
        done = run(table, self._tasks[name], clock)
        del self._failures[name]
        if done.is_whole:
            _remember(table, name, now_ms)
        else:
            del self._not_before[name]
        return done

    def _is_due(self, table: Table, name: str, now_ms: int) -> bool:
        text = table.properties.get(DONE_AT + name, "")
        last = int(text) if text.isdigit() else 0
        return last > now_ms or now_ms >= last + self._tasks[name].every_ms


def do_all(
    table: Table, tasks: Mapping[str, TableTask], clock: Clocks, *, dry_run: bool
) -> dict[str, dict[str, int]]:
    """Do all tasks now, each to its end, while others may write to the table.

    Return what was done, in numbers.
    """
    done: dict[str, dict[str, int]] = {}
    for name, task in tasks.items():
        counts: Counter[str] = Counter()
        is_whole = False
        while not is_whole:
            part = _patiently(table, task, clock, dry_run=dry_run)
            counts.update(part.counts)
            is_whole = part.is_whole or dry_run
        if not dry_run:
            _remember(table, name, clock.now_ms())
        done[name] = {count: counts[count] for count in sorted(counts)}
    return done


def _patiently(table: Table, task: TableTask, clock: Clocks, *, dry_run: bool) -> Done:
    until = clock.monotonic_ms() + CONFLICTS_MS
    while True:
        try:
            return run(table, task, clock, dry_run=dry_run)
        except CommitFailedException as error:
            if clock.monotonic_ms() > until:
                hint = "try it again when less is written there"
                raise SinkUnreachable("others change the table all the time", hint=hint) from error
            table.refresh()


def _remember(table: Table, name: str, now_ms: int) -> None:
    """Write down when the task was done.

    If others commit in between each time it is not written, and the task is done again.
    """
    for _ in range(NOTES_MAX):
        table.refresh()
        with suppress(CommitFailedException), table.transaction() as transaction:
            transaction.set_properties({DONE_AT + name: str(now_ms)})
            return


def run(table: Table, task: TableTask, clock: Clock, *, dry_run: bool = False) -> Done:
    """Run one task. Ages are by the clock of the store.

    If that of this host differs, nothing is done.
    """
    now_ms = store_now_ms(table, clock)
    match task:
        case ExpireSnapshots():
            age = age_ms(task.older_than)
            return expire_snapshots(table, now_ms, age, task.keep, dry_run=dry_run)
        case Compact():
            return compact(table, task.target_file_size, dry_run=dry_run)
        case RemoveOrphans():
            return remove_orphans(table, now_ms - age_ms(task.older_than), dry_run=dry_run)
        case _:
            return rewrite_manifests(table, dry_run=dry_run)
