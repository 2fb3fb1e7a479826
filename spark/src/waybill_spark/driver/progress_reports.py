"""Reports every two seconds how the batches of a run go on.

A thread of its own does it, which waits for the JVM and for nothing else of the run: if the JVM or
this process hangs, the reports stop, and that says it.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Final, Protocol, Self

from waybill_shared.contract.driver_news import SinkWait, StageActivity
from waybill_spark.driver.jvm.spark_work import NOTHING, Work
from waybill_spark.driver.reading.backlogs import Backlog
from waybill_spark.tracking.batch_progress import BatchProgress

logger = logging.getLogger(__name__)

INTERVAL_S: Final = 2.0
LOOK_AFTER_MS: Final = 2_000  # a batch that has just moved is asked nothing about
END_TIMEOUT_S: Final = 5.0  # a JVM that answers no more is not waited for


class WatchedStage(Protocol):
    name: str
    progress: BatchProgress

    job_group: str | None

    def waits(self) -> tuple[SinkWait, ...]: ...


class Jobs(Protocol):
    def active_jobs(self) -> frozenset[int]: ...

    def of(self, group: str | None, active: frozenset[int]) -> Work: ...


def join_by_stage(reports: Iterable[StageActivity]) -> tuple[StageActivity, ...]:
    """Return one report for each stage: that of its newest start, with what it has done in all."""
    joined: dict[str, StageActivity] = {}
    for each in reports:
        before = joined.get(each.stage, StageActivity(stage=each.stage))
        batches, rows = before.batches + each.batches, before.rows + each.rows
        joined[each.stage] = replace(each, batches=batches, rows=rows)
    return tuple(joined.values())


def report_plainly(stages: Iterable[WatchedStage]) -> tuple[StageActivity, ...]:
    """Return what is known of stages without asking Spark."""
    return join_by_stage(each.progress.report(each.name) for each in tuple(stages))


class ProgressReports:
    """Reports while it is entered."""

    def __init__(
        self,
        stages: Sequence[WatchedStage],
        jobs: Jobs,
        backlogs: Callable[[], Mapping[str, Backlog]],
        report: Callable[[tuple[StageActivity, ...]], None],
        *,
        intervals_ms: Mapping[str, int],
    ) -> None:
        """`backlogs`: by stage, the records that wait, where there are any. `intervals_ms`: by
        stage, how often it may begin a batch at most.
        """
        self._intervals_ms = intervals_ms
        self._stages = stages
        self._jobs = jobs
        self._backlogs = backlogs
        self._report = report
        self._work: dict[str, Work] = {}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ends.set()
        self._thread.join(END_TIMEOUT_S)

    def report_once(self) -> None:
        active, backlogs = self._jobs.active_jobs(), self._backlogs()
        found = [self._look_at(each, active, backlogs) for each in tuple(self._stages)]
        self._report(join_by_stage(found))

    def _run(self) -> None:
        while not self._ends.wait(INTERVAL_S):
            try:
                self.report_once()
            except Exception:  # the thread's boundary: without reports the run would be stopped
                logger.exception("progress of Spark is not known")
                self._report(report_plainly(self._stages))

    def _look_at(
        self, stage: WatchedStage, active: frozenset[int], backlogs: Mapping[str, Backlog]
    ) -> StageActivity:
        found = stage.progress.report(stage.name)
        if found.batch_ms is not None and found.quiet_ms >= LOOK_AFTER_MS:
            found = self._with_work(stage, active)
        pause_ms = max(found.usual_pause_ms, self._intervals_ms.get(stage.name, 0))
        found = replace(found, usual_pause_ms=pause_ms)
        backlog = backlogs.get(stage.name)
        if backlog is None:
            return found
        return replace(found, waiting_ms=backlog.waiting_ms, lag_grows=backlog.grows)

    def _with_work(self, stage: WatchedStage, active: frozenset[int]) -> StageActivity:
        """Note what Spark has done for the batch, and return what is known after that."""
        work = self._jobs.of(stage.job_group, active) if active else NOTHING
        if work != self._work.get(stage.name, NOTHING):
            self._work[stage.name] = work
            stage.progress.note()
        sinks = [wait.sink for wait in stage.waits()]
        found = stage.progress.report(stage.name)
        return replace(found, sink=sinks[0]) if sinks and not work else found
