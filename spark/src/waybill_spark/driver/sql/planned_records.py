"""Records of a batch that Spark plans once. Fulfils `waybill_spark.tracking.ports.PlannedRecords`.

A search for the records that end a query reads parts of one batch some hundred times. Nearly all of
the time of a reading is its plan. So:

1. `plan_records` makes one frame of the raw records, in which each record is a partition.
2. Each view is planned over it once. The plan is usable if its partitions are still those of the
   records, which is so as long as no row meets a row of another record.
3. A trial is one Spark job over some partitions of that plan.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import pyarrow as pa
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from waybill_shared.contract.manifest.model import Step
from waybill_spark.driver.jvm.expected_failures import hide_failed_tasks
from waybill_spark.driver.sql.value_errors import name_value_errors
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.records import Without
from waybill_spark.tracking.pieces import Ranges

Place = tuple[str, int, int]
"""Topic, partition and offset of a record."""
ToSinks = Callable[[Mapping[str, pa.Table]], BatchRows]
"""Returns what sinks get of the rows of each view."""
MEETS_OTHERS: Final = "Exchange"  # in the name of a node that moves rows between partitions
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
        for view in self._views.values():
            self._run(view, self._find(ranges, without))

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
            for number, batches in enumerate(self._run(view, everything)):
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

    def _run(self, view: _View, wanted: Sequence[int]) -> Iterable[Iterable[bytes]]:
        """Compute these records. Return the Arrow batches of each partition."""
        if not wanted:
            return ()
        jvm, count = self._spark._jvm, len(self._places)
        assert jvm is not None
        chosen = None
        for begin, end in chain.from_iterable(
            _runs(n + copy * count for n in wanted) for copy in range(view.copies)
        ):
            run = jvm.scala.Array.range(begin, end)
            more = jvm.org.apache.commons.lang3.ArrayUtils.addAll
            chosen = run if chosen is None else more(chosen, run)
        with hide_failed_tasks(self._spark), name_value_errors(self._steps):
            found: Iterable[Iterable[bytes]] = view.jobs.collectPartitions(chosen)
        return found


def plan_records(
    raw: DataFrame,
    views: Sequence[str],
    select: Callable[[DataFrame, str], DataFrame],
    to_sinks: ToSinks,
    steps: Sequence[Step],
) -> SparkRecords | None:
    """Read these raw records and plan each view over them; None if records do not stay apart.
    `select` returns the rows of a view over raw records, in the session of their frame.
    """
    table = raw.toArrow()
    spark = raw.sparkSession.newSession()
    for name, value in A_PARTITION_EACH.items():
        spark.conf.set(name, value)
    positions = table.select(["topic", "partition", "offset"]).to_pydict()
    places = [*zip(positions["topic"], positions["partition"], positions["offset"], strict=True)]
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
