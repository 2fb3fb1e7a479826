"""Records of a batch that Spark plans once. Fulfils `waybill_spark.tracking.ports.PlannedRecords`.

A search for the records that end a query reads parts of one batch some hundred times. Nearly all of
the time of a reading is its plan. So:

1. `plan_records` makes one frame of the raw records, in which each record is a partition.
2. Each view is planned over it once. The plan is usable if its partitions are still those of the
   records, which is so as long as no row meets a row of another record.
3. A trial is one Spark job over some partitions of that plan.
4. If it fails, Spark's status says which of its tasks have failed and which have not. A record is
   found when a job of this record alone fails: see `failing_tasks`.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from waybill_shared.contract.manifest.model import Step
from waybill_spark.driver.jvm.expected_failures import hide_failed_tasks
from waybill_spark.driver.sql.failing_tasks import find_failing_records
from waybill_spark.driver.sql.value_errors import name_value_errors
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.records import (
    FailingRecord,
    Place,
    QueryFailed,
    Without,
)
from waybill_spark.tracking.pieces import Ranges

ToSinks = Callable[[Mapping[str, pa.Table]], BatchRows]
"""Returns what sinks get of the rows of each view."""
MEETS_OTHERS: Final = "Exchange"  # in the name of a node that moves rows between partitions
TASKS_MAX: Final = 100_000  # of a job, in Spark's status
A_PARTITION_EACH: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.arrow.localRelationThreshold": "0",  # Spark would compute a small one here
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """The planned rows of a view. Record n is in the partitions n, n + records, and so on: there
    are several where a query reads its input several times."""

    jobs: JavaObject  # a JavaRDD of Arrow batches
    copies: int
    schema: pa.Schema


class SparkRecords:
    def __init__(
        self,
        spark: SparkSession,
        places: Sequence[Place],
        views: Mapping[str, _View],
        to_sinks: ToSinks,
        steps: Sequence[Step],
    ) -> None:
        self._spark = spark
        self._places = places
        self._views = views
        self._to_sinks = to_sinks
        self._steps = steps
        self._rows: dict[str, list[list[pa.RecordBatch]]] = {}

    def check(self, ranges: Ranges, without: Without) -> None:
        with hide_failed_tasks(self._spark):
            for view in self._views.values():
                self._run(view, self._tasks(view, self._find(ranges, without)))

    def find_failing(self, ranges: Ranges, without: Without) -> Iterator[FailingRecord]:
        left = self._find(ranges, without)
        with hide_failed_tasks(self._spark):
            for view in self._views.values():
                found: set[int] = set()
                for number, why, not_tried in self._failing_of(view, left):
                    found.add(number)
                    yield FailingRecord(place=self._places[number], why=why, left=not_tried)
                left = [number for number in left if number not in found]

    def _failing_of(
        self, view: _View, wanted: Sequence[int]
    ) -> Iterator[tuple[int, QueryFailed, int]]:
        """Yield the records that end this view, and how many are left to try."""

        def try_alone(number: int) -> QueryFailed | None:
            try:
                self._run(view, self._tasks(view, [number]))
            except QueryFailed as why:
                return why
            return None

        return find_failing_records(
            self._tasks(view, wanted), len(self._places), partial(self._try, view), try_alone
        )

    def _try(self, view: _View, tasks: Sequence[int]) -> tuple[set[int], set[int]]:
        """Run these tasks. Return those that pass, and those that may not."""
        context, tag = self._spark.sparkContext, f"waybill-{uuid.uuid4()}"
        context.addJobTag(tag)
        try:
            self._run(view, tasks)
        except QueryFailed:
            return self._look_at_tasks(tag)
        finally:
            context.removeJobTag(tag)
        return {*tasks}, set()

    def _look_at_tasks(self, tag: str) -> tuple[set[int], set[int]]:
        """Return the tasks of a job that have passed, and those that have failed."""
        context = self._spark.sparkContext._jsc
        assert context is not None
        spark = context.sc()
        spark.listenerBus().waitUntilEmpty()  # the status learns of tasks there
        found: dict[str, set[int]] = {"SUCCESS": set(), "FAILED": set()}
        for job in spark.statusTracker().getJobIdsForTag(tag):
            for stage in spark.statusStore().job(job).stageIds().mkString(",").split(","):
                tasks = spark.statusStore().taskList(int(stage), 0, TASKS_MAX)
                for task in map(tasks.apply, range(tasks.size())):
                    found.setdefault(task.status(), set()).add(task.partitionId())
        return found["SUCCESS"], found["FAILED"]

    def read(self, ranges: Ranges, without: Without) -> BatchRows:
        wanted = self._find(ranges, without)
        tables = {
            name: pa.Table.from_batches(
                (batch for number in wanted for batch in self._rows_of(name)[number]), view.schema
            )
            for name, view in self._views.items()
        }
        return self._to_sinks(tables)

    def _rows_of(self, name: str) -> list[list[pa.RecordBatch]]:
        """Return the rows of a view by record: they are computed the first time only."""
        if name not in self._rows:
            view, everything = self._views[name], range(len(self._places))
            found: list[list[pa.RecordBatch]] = [[] for _ in everything]
            with hide_failed_tasks(self._spark):
                rows = self._run(view, self._tasks(view, everything))
            for number, batches in enumerate(rows):
                found[number % len(found)] += [_batch(each, view.schema) for each in batches]
            self._rows[name] = found
        return self._rows[name]

    def _find(self, ranges: Ranges, without: Without) -> list[int]:
        limits = {(run.topic, run.partition): (run.start, run.end) for run in ranges}
        nowhere, nothing = (0, 0), frozenset[int]()
        return [
            number
            for number, (topic, partition, offset) in enumerate(self._places)
            for start, end in [limits.get((topic, partition), nowhere)]
            if start <= offset < end and offset not in without.get((topic, partition), nothing)
        ]

    def _tasks(self, view: _View, wanted: Sequence[int]) -> list[int]:
        """Return the tasks that compute these records, in ascending order."""
        count = len(self._places)
        return [copy * count + number for copy in range(view.copies) for number in wanted]

    def _run(self, view: _View, tasks: Sequence[int]) -> Iterable[Iterable[bytes]]:
        """Run these tasks. Return the Arrow batches of each."""
        if not tasks:
            return ()
        jvm = self._spark._jvm
        assert jvm is not None
        chosen = None
        for begin, end in _runs(tasks):
            run = jvm.scala.Array.range(begin, end)
            more = jvm.org.apache.commons.lang3.ArrayUtils.addAll
            chosen = run if chosen is None else more(chosen, run)
        with name_value_errors(self._steps):
            found: Iterable[Iterable[bytes]] = view.jobs.collectPartitions(chosen)
        return found


def plan_records(
    raw: DataFrame,
    views: Sequence[str],
    select: Callable[[DataFrame, str], DataFrame],
    to_sinks: ToSinks,
    *,
    steps: Sequence[Step],
    places: Sequence[Place] | None = None,
) -> SparkRecords | None:
    """Read these raw records and plan each view over them; None if records do not stay apart.
    `select` returns the rows of a view over raw records, in the session of their frame. `places`:
    of the records in their order, if not where they say.
    """
    table = raw.toArrow()
    spark = raw.sparkSession.newSession()
    for name, value in A_PARTITION_EACH.items():
        spark.conf.set(name, value)
    if places is None:
        at = table.select(["topic", "partition", "offset"]).to_pydict()
        places = [*zip(at["topic"], at["partition"], at["offset"], strict=True)]
    records = spark.createDataFrame(table)
    planned = {view: _plan(select(records, view), len(places)) for view in views}
    usable = {name: view for name, view in planned.items() if view is not None}
    return (
        SparkRecords(spark, places, usable, to_sinks, steps) if len(usable) == len(views) else None
    )


def _plan(frame: DataFrame, records: int) -> _View | None:
    plan: JavaObject = frame._jdf.queryExecution().executedPlan()
    jobs = frame._jdf.toArrowBatchRdd(plan).toJavaRDD()
    count = jobs.getNumPartitions()
    if records == 0 or count % records or MEETS_OTHERS in plan.toString():
        return None
    return _View(jobs=jobs, copies=count // records, schema=to_arrow_schema(frame.schema))


def _batch(raw: bytes, schema: pa.Schema) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(raw), schema)


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return ascending numbers as runs, each with its begin and its end."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        begin = runs.pop()[0] if runs and runs[-1][1] == number else number
        runs.append((begin, number + 1))
    return runs
