"""One pipeline in one generation, from its sessions to its sinks. Nothing of it outlives it."""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import SparkSession

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.driver import DriverEvent, RunSpec, SparkPlace
from waybill_shared.contract.driver_news import (
    IgnoredFields,
    SinkWait,
    StageActivity,
    TableMaintenance,
)
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.words import Obstacle
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_producer
from waybill_shared.kafka.cluster import Kafka
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.failpoints import reach
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.closing import report_last
from waybill_spark.driver.dead_letter_journals import budget_of, make_topics, open_journal
from waybill_spark.driver.draining import Drain
from waybill_spark.driver.ending import Ending
from waybill_spark.driver.explaining import explain
from waybill_spark.driver.going import RunStages
from waybill_spark.driver.jvm.cluster import is_cluster
from waybill_spark.driver.jvm.executors import Executors, SparkApplication
from waybill_spark.driver.jvm.spark_work import SparkWork
from waybill_spark.driver.pausing import Pausing
from waybill_spark.driver.progress_reports import ProgressReports, report_plainly
from waybill_spark.driver.reading.blocking import OpenTransactions
from waybill_spark.driver.reading.executor_rows import can_work
from waybill_spark.driver.reading.pace import interval_ms
from waybill_spark.driver.reporting import Reporter, commits_topic
from waybill_spark.driver.run_control import PauseState, RunControl
from waybill_spark.driver.sinks import open_sinks
from waybill_spark.driver.sql.compile import CompiledStage
from waybill_spark.driver.sql.planned import join
from waybill_spark.driver.stages import open_stages, put_dead_letters, start_stages
from waybill_spark.driver.starting import StageStarting
from waybill_spark.driver.surroundings import DeadLetterRules, Surroundings
from waybill_spark.driver.watching import KafkaWaits, Watcher
from waybill_spark.kafka.commit_emitter import CommitEmitter
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.tracking.commits import Identity
from waybill_spark.tracking.loads import ParallelLoads

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The Spark of a driver, and where it computes."""

    session: SparkSession
    place: SparkPlace


Compile = Callable[[], Sequence[CompiledStage]]
"""Compiles all stages of the manifest. Raises UserError."""


class PipelineRun:
    """A run of a pipeline. `report` passes events on to the runner."""

    def __init__(self, spec: RunSpec, kafka: Kafka, report: Callable[[DriverEvent], None]) -> None:
        self._spec = spec
        self._kafka = kafka
        self._report = report
        self._admin = make_admin(kafka)
        self._producer = make_producer(kafka)
        self._clock = SystemClock()
        self._not_put: dict[str, Problem] = {}
        """The reasons why dead letters that a person asks for were not written. Each report of a
        pause repeats them: the runner ignores some of these, and answers a command once.
        """
        self._identity = Identity(
            tenant=spec.tenant,
            pipeline_uid=spec.pipeline_uid,
            generation=spec.generation,
            epoch=spec.epoch,
            lifecycle_id=spec.lifecycle_id,
        )

    def close_sinks(self) -> None:
        """Close the sinks that are removed, without Spark, and report what they contain."""
        report_last(self._spec, self._reporter())

    def report_again(self, sink: str) -> None:
        """Report what a table contains now, without Spark, even if another driver runs the
        pipeline.
        """
        self._reporter().report_again(sink)

    def run(
        self, engine: Engine, compiled: Sequence[CompiledStage], control: RunControl, again: Compile
    ) -> None:
        """Run until it is to stop, the run fails, or all that there was is read. Then stop all of
        it in good order. `again`: compiles the manifest for a stage that starts once more.
        """
        with ExitStack() as stack:
            emitter = CommitEmitter(
                self._producer, commits_topic(self._spec), self._identity, self._clock
            )
            loads = stack.enter_context(closing(ParallelLoads(self._spec.loads_max)))
            around = self._surroundings(engine, stack.enter_context(emitter), loads)
            stages = self._stages(compiled, again, around, stack)
            executors = _executors(engine, stack)
            if executors is not None:
                executors.await_first(control, self._report_blocked)
            if control.is_set():
                return
            first, going = PauseState(self._spec.paused, self._spec.pause_order), stages.going
            for stage in going:
                stage.set_paused(paused=(control.pause or first).paused)
            self._open(stages)
            ending = Ending(stages, emitter) if self._spec.manifest.model.ends else None
            if ending is None:
                start_stages(stages)
            pausing = Pausing(going, control, first, self._report_pause)
            waits = KafkaWaits(emitter, OpenTransactions(self._admin))
            report = (self._report_blocked, self._report_ignored)
            watcher = Watcher(going, waits, *report, executors, fail=stages.fail)
            watcher.follow(pausing)
            stack.enter_context(self._progress(engine, stages.all, compiled, waits.transactions))
            if ending is None:
                starting = StageStarting(stages, control, pausing, self._report_started)
                watcher.run(control, starting, pausing)
            elif ending.run(watcher, control, pausing):
                self._report_finished()
                return
            self._drain(stages, watcher, control)

    def _drain(self, stages: RunStages, watcher: Watcher, control: RunControl) -> None:
        """Drain the stages that go on, if the run is to stop so."""
        drain = Drain(stages.going, self._admin, is_whole=stages.is_whole)
        if control.mode is StopMode.DRAIN and drain.run(watcher, control):
            self._report(DriverEvent(kind="drained", run_id=self._spec.run_id))

    def _open(self, stages: RunStages) -> None:
        """Open all stages, write the dead letters that a person asks for, and let them replay."""
        open_stages(stages)
        stopped = [each for each in self._spec.stages if each.name in stages.stopped]
        self._not_put = put_dead_letters(stages.going, self._spec.dead_letters, stopped)
        reach(f"{self._spec.pipeline_uid}.after_put")
        for stage in stages.going:
            stage.start_replays()

    def _report_finished(self) -> None:
        """Report that all that there was is read. The driver ends after that."""
        self._report(DriverEvent(kind="finished", run_id=self._spec.run_id))
        reach(f"{self._spec.pipeline_uid}.after_finished")

    def _reporter(self) -> Reporter:
        return Reporter(self._spec, self._admin, self._producer, self._identity, self._clock)

    def _surroundings(
        self, engine: Engine, emitter: CommitEmitter, loads: ParallelLoads
    ) -> Surroundings:
        return Surroundings(
            spark=engine.session,
            kafka=self._kafka,
            admin=self._admin,
            emitter=emitter,
            identity=self._identity,
            clock=self._clock,
            checkpoint_folder=self._spec.checkpoint_folder,
            batch_rows_max=self._spec.batch_rows_max,
            batch_bytes_max=self._spec.batch_bytes_max,
            can_work=_can_work(engine),
            topic_absent_s=self._spec.topic_absent_s,
            loads=loads,
            report_maintenance=self._report_maintenance,
            rewinds=self._spec.rewinds,
            dead_letters=self._spec.dead_letters,
            replays_topic=f"{self._spec.topic_prefix}.replays",
        )

    def _stages(
        self,
        compiled: Sequence[CompiledStage],
        again: Compile,
        around: Surroundings,
        stack: ExitStack,
    ) -> RunStages:
        """Make the stages that are to go on. Each of `compiled` serves once."""
        manifest = self._spec.manifest.model
        planned = {each.stage.name: each for each in join(manifest, self._spec.stages)}
        fences = Fences(self._admin, self._spec.topic_prefix)
        unused = {each.stage.name: each for each in compiled}

        def make(name: str) -> RunningStage:
            if name not in unused:
                unused.update({each.stage.name: each for each in again()})
            each, going = unused.pop(name), planned[name]
            sinks = open_sinks(self._spec, fences, going, each.schemas)
            dead_letters = DeadLetterRules(
                journal=open_journal(self._spec, manifest, fences, going.definition),
                budget=budget_of(manifest.dead_letter),
            )
            return RunningStage(each, going.definition, sinks, dead_letters, around)

        stopped = frozenset(self._spec.stopped)
        stages = RunStages(make, self._report_stopped, left_out=stopped)
        stack.callback(self._report_last, stages.all)  # when all of them are stopped
        stack.callback(stages.close)
        make_topics(self._spec, manifest, fences)
        stages.add(name for each in compiled for name in [each.stage.name] if name not in stopped)
        return stages

    def _progress(
        self,
        engine: Engine,
        stages: Sequence[RunningStage],
        compiled: Sequence[CompiledStage],
        transactions: OpenTransactions,
    ) -> ProgressReports:
        """Return what reports how batches go on. A run that ends by itself leaves later records
        unread, so that it has no backlog.
        """
        ends = self._spec.manifest.model.ends
        return ProgressReports(
            stages,
            SparkWork(engine.session),
            dict if ends else transactions.backlogs.now,
            self._report_progress,
            intervals_ms={
                each.stage.name: interval_ms(each.stage.effective_trigger) for each in compiled
            },
        )

    def _report_progress(self, stages: tuple[StageActivity, ...]) -> None:
        self._report(DriverEvent(kind="progress", run_id=self._spec.run_id, progress=stages))

    def _report_last(self, stages: Sequence[RunningStage]) -> None:
        """Report how far the run came, after its last batch."""
        self._report_progress(report_plainly(stages))

    def _report_blocked(self, by: Obstacle | None, waits: tuple[SinkWait, ...] = ()) -> None:
        run_id = self._spec.run_id
        self._report(DriverEvent(kind="blocked", run_id=run_id, blocked_by=by, waits=waits))

    def _report_pause(self, pause: PauseState) -> None:
        kind: Literal["paused", "running"] = "paused" if pause.paused else "running"
        event = DriverEvent(
            kind=kind, run_id=self._spec.run_id, order=pause.order, not_put=self._not_put
        )
        self._report(event)

    def _report_started(self, order: int) -> None:
        event = DriverEvent(kind="stages_started", run_id=self._spec.run_id, order=order)
        self._report(event)

    def _report_stopped(self, stage: str, cause: BaseException, put_aside: int) -> None:
        problems, error = explain(self._spec.manifest, cause, stage)
        event = DriverEvent(
            kind="stage_ended",
            run_id=self._spec.run_id,
            problems=problems,
            error=replace(error, stage=stage),
            put_aside=put_aside,
        )
        self._report(event)

    def _report_ignored(self, ignored: tuple[IgnoredFields, ...]) -> None:
        self._report(DriverEvent(kind="ignored", run_id=self._spec.run_id, ignored=ignored))

    def _report_maintenance(self, done: TableMaintenance) -> None:
        self._report(DriverEvent(kind="maintained", run_id=self._spec.run_id, maintenance=done))


def _can_work(engine: Engine) -> Callable[[], bool]:
    """Return a function that checks if executors can run our Python.

    Local ones always can. Those of other machines are tried until it has worked once.
    """
    known = not is_cluster(engine.place.master)

    def can() -> bool:
        nonlocal known
        known = known or can_work(engine.session)
        return known

    return can


def _executors(engine: Engine, stack: ExitStack) -> Executors | None:
    """Return the executors of a cluster; None if all of Spark is in our own JVM."""
    if not is_cluster(engine.place.master):
        return None
    executors = Executors(SparkApplication(engine.session), engine.place)
    stack.callback(executors.give_up)  # before the stages are stopped
    return executors
