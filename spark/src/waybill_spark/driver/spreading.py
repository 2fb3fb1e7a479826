"""Rows of a big batch: computed once and kept by the executors, on their disks where memory ends.

Python runs beside each executor for what is done with them there. On another machine that is a
Python which has this package and what its sinks need.
"""

import logging
import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

import pyarrow as pa
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark import StorageLevel, TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from waybill_shared.contract.errors import ContractError
from waybill_shared.process.failpoints import FOLDER
from waybill_spark.sinks.spread import Share, SpreadRows

logger = logging.getLogger(__name__)

T = TypeVar("T")
ANSWER: Final = pa.schema([pa.field("answer", pa.binary())])
ANSWER_DDL: Final = "answer binary"
TELLING: Final = re.compile(r"Cannot run program|^\w+Error: |version mismatch")
REASON_MAX: Final = 500


class KeptRows:
    """The rows of a view as Spark keeps them, for all sinks of that view."""

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        self._num_rows: int | None = None

    @property
    def num_rows(self) -> int:
        assert self._num_rows is not None, "they are computed first"
        return self._num_rows

    def compute(self) -> JavaObject:
        """The execution in which they were, by which it can be told what it has seen."""
        number = self.frame.agg(F.count(F.lit(1)))
        (self._num_rows,) = number.toArrow().column(0).to_pylist()
        return number._jdf.queryExecution()

    def forget(self) -> None:
        self.frame.unpersist()


class FrameRows(SpreadRows):
    """`columns`: names in the frame, by those that the sink knows."""

    def __init__(self, kept: KeptRows, columns: Mapping[str, str]) -> None:
        self._kept = kept
        frame = kept.frame
        self._frame = frame.select(*(frame[name].alias(to) for to, name in columns.items()))

    @property
    def num_rows(self) -> int:
        return self._kept.num_rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for (found,) in self._frame.mapInArrow(_as_stream, ANSWER_DDL).toLocalIterator():
            yield from pa.ipc.open_stream(bytes(found))

    def answers(self, work: Callable[[Share], Iterable[T]]) -> list[T | ContractError]:
        found = self._frame.mapInArrow(_at_work(work), ANSWER_DDL).toArrow().column("answer")
        return [pickle.loads(each.as_buffer()) for each in found]

    def forget(self) -> None:
        self._kept.forget()


def can_work(spark: SparkSession) -> bool:
    """Whether the Python beside the executors has what it needs: it is not told in any other way.

    Costs a job of Spark.
    """
    try:
        spark.range(1).mapInArrow(_at_work(_nothing), ANSWER_DDL).toArrow()
    except (PySparkException, Py4JError) as error:
        logger.warning(
            "executors cannot write: big batches go through the driver, in pieces",
            extra={"reason": _reason(error)},
        )
        return False
    return True


def _reason(error: Exception) -> str:
    """Of a traceback, or of two, the line that says it."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if TELLING.search(line)]
    return (telling or lines or [type(error).__name__])[0][:REASON_MAX]


def _nothing(share: Share) -> Iterator[None]:
    for _ in share.rows:
        yield None


def _at_work(
    work: Callable[[Share], Iterable[object]],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What is wrong with the world or the rows is an answer; anything else fails the task."""
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
