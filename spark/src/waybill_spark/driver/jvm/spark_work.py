"""What Spark computes for a stage just now, as a value that changes while it goes on."""

from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

NOTHING: Final[frozenset[tuple[int, ...]]] = frozenset()
Work = frozenset[tuple[int, ...]]
"""Of each stage of Spark's running jobs: its id, and what its tasks have done, in numbers."""


class SparkWork:
    """Jobs that a thread of ours starts are in the group of no query: they count for each stage."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._tracker = spark.sparkContext.statusTracker()

    def active_jobs(self) -> frozenset[int]:
        """Return the jobs that run. The JVM must answer for that: whoever asks waits for it."""
        return frozenset(self._tracker.getActiveJobsIds())

    def of(self, group: str | None, active: frozenset[int]) -> Work:
        """Return what the jobs of a group have done, and those of none, as far as they run."""
        mine = {*self._tracker.getJobIdsForGroup(group), *self._tracker.getJobIdsForGroup(None)}
        infos = [self._tracker.getJobInfo(job) for job in active & mine]
        stages = {stage for info in infos if info is not None for stage in info.stageIds}
        return frozenset(found for stage in stages if (found := self._look_at(stage)) is not None)

    def _look_at(self, stage: int) -> tuple[int, ...] | None:
        assert self._context._jsc is not None
        try:
            data = self._context._jsc.sc().statusStore().lastStageAttempt(stage)
        except Py4JError:  # it has not begun, or is forgotten
            return None
        return (
            stage,
            int(data.attemptId()),
            int(data.numCompleteTasks()),
            int(data.inputRecords()),
            int(data.outputRecords()),
            int(data.shuffleReadRecords()),
            int(data.shuffleWriteRecords()),
        )
