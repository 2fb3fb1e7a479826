"""Rows of a big batch: computed once and stored by the executors, on their disks where memory ends.

What is done with them there runs in a Python process at each executor. On another machine that
Python must have this package and what its sinks need.
"""

import logging
import os
import pickle
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Final, TypeVar

import pyarrow as pa
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark import StorageLevel, TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn

from waybill_shared.contract.errors import ContractError, Retryable
from waybill_shared.contract.manifest.sinks import KINDS
from waybill_shared.process.failpoints import FOLDER
from waybill_spark.sinks.rows import column_of
from waybill_spark.tracking.distributed_rows import DistributedRows, Share

logger = logging.getLogger(__name__)

T = TypeVar("T")
ANSWER: Final = pa.schema([pa.field("answer", pa.binary())])
ANSWER_DDL: Final = "answer binary"
ERROR_LINE: Final = re.compile(r"Cannot run program|^\w+Error: |version mismatch")
REASON_MAX: Final = 500
ANSWER_COUNT: Final = "count bigint"
ADAPTIVE: Final = "spark.sql.adaptive.enabled"
TASK_BYTES: Final = 16 << 20  # of what is sent with a task
ROWS_OF_KEYS: Final = 250_000  # of an upsert, in one share


class ExecutorRows:
    """The rows of a view as Spark keeps them, for all sinks of that view."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        self._num_rows = 0

    def compute(self) -> JavaObject:
        """Compute the rows, and return the execution, which knows what it has seen.

        Raise Retryable if a part was computed twice, because then it would be reported twice.
        """
        # One small column goes to Python: an aggregate would need a shuffle, and so two stages.
        number = self._frame.select(F.lit(1)).mapInArrow(_count, ANSWER_COUNT)
        execution = number._jdf.queryExecution()
        with _in_one_step(self._frame.sparkSession), _without_failures(self._frame.sparkSession):
            self._num_rows = sum(number.toArrow().column(0).to_pylist())
        return execution

    def rows(self, columns: Mapping[str, str]) -> "FrameRows":
        """Return rows with these columns: names in the view, by the names that the sink knows."""
        named = (column_of(name).alias(to) for to, name in columns.items())
        return FrameRows(self._frame.select(*named), self._num_rows, self.forget)

    def forget(self) -> None:
        self._frame.unpersist()


class FrameRows(DistributedRows):
    def __init__(self, frame: DataFrame, num_rows: int, forget: Callable[[], None]) -> None:
        self._frame = frame
        self._num_rows = num_rows
        self._forget = forget

    @property
    def num_rows(self) -> int:
        return self._num_rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for (found,) in self._frame.mapInArrow(_as_stream, ANSWER_DDL).toLocalIterator():
            yield from pa.ipc.open_stream(bytes(found))

    def answers(self, work: Callable[[Share], Iterable[T]]) -> list[T | ContractError]:
        found = self._frame.mapInArrow(_at_work(work), ANSWER_DDL).toArrow().column("answer")
        return [pickle.loads(each.as_buffer()) for each in found]

    def by_keys(self, keys: Sequence[str], number: str) -> DistributedRows:
        cores = self._frame.sparkSession.sparkContext.defaultParallelism
        shares = max(cores, self._num_rows // ROWS_OF_KEYS + 1)
        numbered = self._frame.withColumn(number, _places(self._frame.sparkSession))
        by_keys = numbered.repartition(shares, *map(column_of, keys))
        return FrameRows(by_keys, self._num_rows, self._forget)

    def others(self, rows: pa.Table) -> DistributedRows:
        """Distribute other rows in as many tasks as there are cores, and small ones."""
        spark = self._frame.sparkSession
        tasks = max(spark.sparkContext.defaultParallelism, rows.nbytes // TASK_BYTES + 1)
        items = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        schema = ", ".join(f"{name} binary" for name in rows.column_names)
        frame = spark.createDataFrame(spark.sparkContext.parallelize(items, tasks), schema)
        return FrameRows(frame, rows.num_rows, self._forget)

    def forget(self) -> None:
        self._forget()


def _places(spark: SparkSession) -> Column:
    """Return the number of each row, which consists of its part and its place in the part.

    The function is removed from the registry.
    """
    jvm = spark._jvm
    assert jvm is not None
    number = jvm.org.apache.spark.sql.catalyst.expressions.MonotonicallyIncreasingID()
    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(number))


@contextmanager
def _in_one_step(spark: SparkSession) -> Iterator[None]:
    """Turn adaptive execution off.

    With it Spark would first store the rows, and then count them: a part that is lost in between
    would be computed again, and reported twice.
    """
    before = spark.conf.get(ADAPTIVE)
    spark.conf.set(ADAPTIVE, "false")
    try:
        yield
    finally:
        spark.conf.set(ADAPTIVE, str(before))


@contextmanager
def _without_failures(spark: SparkSession) -> Iterator[None]:
    context, tag = spark.sparkContext, f"waybill-{uuid.uuid4()}"
    context.addJobTag(tag)
    try:
        yield
    finally:
        context.removeJobTag(tag)
    tracker = context.statusTracker()
    assert context._jsc is not None
    context._jsc.sc().listenerBus().waitUntilEmpty()  # the tracker learns of it there
    for job in context._jsc.sc().statusTracker().getJobIdsForTag(tag):
        info = tracker.getJobInfo(job)
        for each in () if info is None else info.stageIds:
            stage = tracker.getStageInfo(each)
            if stage is not None and (stage.numFailedTasks or stage.currentAttemptId):
                raise Retryable("an executor was lost while it read a batch, which is read again")


def can_work(spark: SparkSession) -> bool:
    """Return True if the Python at the executors has what it needs.

    There is no other way to know it. Costs a job of Spark.
    """
    try:
        spark.range(1).mapInArrow(_at_work(_nothing), ANSWER_DDL).toArrow()
    except (PySparkException, Py4JError) as error:
        logger.warning(
            "executors cannot write: big batches go through the driver",
            extra={"reason": _reason(error)},
        )
        return False
    return True


def _reason(error: Exception) -> str:
    """Return the line of a traceback, or of two, that names the error."""
    lines = [line.strip() for line in str(error).splitlines()]
    named = [line for line in lines if ERROR_LINE.search(line)]
    return (named or lines or [type(error).__name__])[0][:REASON_MAX]


def _nothing(share: Share) -> Iterator[None]:
    """Import what work needs, and do nothing."""
    for kind in KINDS.values():
        import_module(kind.loader)
    for _ in share.rows:
        yield None


def _count(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"count": [sum(batch.num_rows for batch in rows)]})


def _at_work(
    work: Callable[[Share], Iterable[object]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return `work` as a function of Arrow batches.

    An error of ours becomes an answer; any other error fails the task.
    """
    points = os.environ.get(FOLDER)  # Spark's own processes have nothing of our environment

    def run(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        if points is not None:
            os.environ[FOLDER] = points
        share = Share(task=context.partitionId(), attempt=context.taskAttemptId(), rows=rows)
        try:
            yield from map(_answer, map(pickle.dumps, work(share)))
        except ContractError as error:
            yield _answer(pickle.dumps(error))

    return run


def _as_stream(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, batch.schema) as stream:
            stream.write_batch(batch)
        yield _answer(out.getvalue().to_pybytes())


def _answer(content: bytes) -> pa.RecordBatch:
    return pa.record_batch([pa.array([content], pa.binary())], schema=ANSWER)
