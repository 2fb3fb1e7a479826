"""What a driver reports of its batches: how long they run, and since when nothing has moved."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from waybill_shared.contract.driver_news import SinkWait, StageActivity
from waybill_spark.driver import progress_reports
from waybill_spark.driver.jvm.spark_work import Work
from waybill_spark.driver.progress_reports import LOOK_AFTER_MS, ProgressReports, join_by_stage
from waybill_spark.driver.reading.backlogs import Backlog, Backlogs
from waybill_spark.tracking.batch_progress import BatchProgress

WITHIN_S = 60.0


@dataclass
class Now:
    s: float = 100.0

    def __call__(self) -> float:
        return self.s


class Broken(Exception):
    """What ends a batch."""


def fail(progress: BatchProgress, now: Now, *, after_s: float) -> None:
    with progress.batch():
        now.s += after_s
        raise Broken


def test_a_batch_is_quiet_since_it_has_last_moved() -> None:
    now = Now()
    progress = BatchProgress(now)
    assert progress.report("load") == StageActivity(stage="load")
    with progress.batch():
        now.s += 3
        progress.note()
        now.s += 2
        found = progress.report("load")
        assert (found.batch_ms, found.quiet_ms) == (5_000, 2_000)
    assert progress.report("load").batch_ms is None


def test_what_is_usual_is_the_middle_of_batches_that_ended_well() -> None:
    now = Now()
    progress = BatchProgress(now)
    for length in (1, 2, 30):
        now.s += 10
        with progress.batch():
            now.s += length
    with pytest.raises(Broken):
        fail(progress, now, after_s=500)
    found = progress.report("load")
    assert (found.usual_ms, found.usual_pause_ms) == (2_000, 26_000)
    assert found.batch_ms is None


@dataclass
class Stage:
    progress: BatchProgress
    name: str = "load"
    job_group: str | None = "g"
    waiting: tuple[SinkWait, ...] = ()

    def waits(self) -> tuple[SinkWait, ...]:
        return self.waiting


@dataclass
class Jobs:
    work: Work = frozenset()
    asked: int = 0

    def active_jobs(self) -> frozenset[int]:
        return frozenset({1} if self.work else ())

    def of(self, group: str | None, active: frozenset[int]) -> Work:
        assert group == "g"
        self.asked += 1
        return self.work


@dataclass
class Reported:
    """What comes of one stage."""

    now: Now = field(default_factory=Now)
    jobs: Jobs = field(default_factory=Jobs)
    backlogs: Mapping[str, Backlog] = field(default_factory=dict)
    interval_ms: int = 0

    def __post_init__(self) -> None:
        self.stage = Stage(BatchProgress(self.now))
        self._reports: list[tuple[StageActivity, ...]] = []
        self._all = ProgressReports(
            [self.stage],
            self.jobs,
            lambda: self.backlogs,
            self._reports.append,
            intervals_ms={"load": self.interval_ms},
        )

    def next(self, after_s: float = 0.0) -> StageActivity:
        self.now.s += after_s
        self._all.report_once()
        (found,) = self._reports.pop()
        return found


def test_reports_come_while_a_run_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_reports, "INTERVAL_S", 0.001)
    came = threading.Event()
    stage = Stage(BatchProgress())
    reports = ProgressReports([stage], Jobs(), dict, lambda found: came.set(), intervals_ms={})
    with reports:
        assert came.wait(WITHIN_S)
    assert "progress" not in {thread.name for thread in threading.enumerate()}


def test_a_run_is_reported_even_if_spark_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoJobs(Jobs):
        def active_jobs(self) -> frozenset[int]:
            raise Broken

    monkeypatch.setattr(progress_reports, "INTERVAL_S", 0.001)
    came = threading.Event()
    stage = Stage(BatchProgress())
    with ProgressReports([stage], NoJobs(), dict, lambda found: came.set(), intervals_ms={}):
        assert came.wait(WITHIN_S)


def test_what_tasks_do_is_progress_of_the_batch() -> None:
    it = Reported()
    with it.stage.progress.batch():
        it.jobs.work = frozenset({(1, 0, 0, 500)})
        assert it.next(5).quiet_ms == 0
        assert it.next(60).quiet_ms == 60_000
        it.jobs.work = frozenset({(1, 0, 0, 501)})
        assert it.next(5).quiet_ms == 0
        it.jobs.work = frozenset()
        assert it.next(5).quiet_ms == 0, "the job has ended"
        assert it.next(5).quiet_ms == 5_000


def test_a_batch_that_has_just_moved_and_a_stage_without_one_are_not_looked_at() -> None:
    it = Reported()
    it.jobs.work = frozenset({(1, 0, 0, 0)})
    it.next(600)
    with it.stage.progress.batch():
        it.next((LOOK_AFTER_MS - 1) / 1000)
    assert it.jobs.asked == 0


@pytest.mark.parametrize(
    ("work", "sink"), [(frozenset(), "lake"), (frozenset({(1, 0, 0, 0)}), None)]
)
def test_a_sink_is_what_a_batch_waits_for_if_spark_computes_nothing(
    work: Work, sink: str | None
) -> None:
    it = Reported()
    it.stage.waiting = (SinkWait(stage="load", sink="lake", blocked_by="batch_running"),)
    with it.stage.progress.batch():
        it.jobs.work = work
        assert it.next(5).sink == sink


@pytest.mark.parametrize(("interval_ms", "usual_ms"), [(0, 7_000), (9_000, 9_000)])
def test_a_pause_is_never_shorter_than_the_trigger(interval_ms: int, usual_ms: int) -> None:
    it = Reported(interval_ms=interval_ms, backlogs={"load": Backlog(70_000, grows=True)})
    for _ in range(2):
        it.now.s += 7
        with it.stage.progress.batch():
            pass
    found = it.next()
    assert found.usual_pause_ms == usual_ms
    assert (found.waiting_ms, found.lag_grows) == (70_000, True)


def test_a_backlog_is_as_old_as_the_first_record_that_was_seen_to_wait() -> None:
    now = Now()
    backlogs = Backlogs(now)

    def seen(lag: int, after_s: float = 5) -> Backlog | None:
        backlogs.note({"load": lag} if lag else {}, ["load"])
        now.s += after_s
        return backlogs.now().get("load")

    assert seen(0) is None
    assert seen(3) == (5_000, False)
    assert seen(3) == (10_000, False)
    assert seen(4) == (15_000, True)
    assert seen(0) is None, "something was committed"
    assert seen(9) == (5_000, False)


def test_a_stage_that_was_started_again_is_reported_once() -> None:
    before = StageActivity(stage="load", batches=3, rows=30, usual_ms=9_000)
    now = StageActivity(stage="load", batches=1, rows=10, usual_ms=500)
    other = StageActivity(stage="enrich", batches=2, rows=20)
    (load, enrich) = join_by_stage([before, other, now])
    assert load == replace(now, batches=4, rows=40)
    assert enrich == other
