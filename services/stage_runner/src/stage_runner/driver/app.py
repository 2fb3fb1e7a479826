"""Runs all stages of one pipeline in one Spark session, until told to stop or until one fails."""

import hashlib
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from shared.clock import Clock
from shared.errors import Retryable, UserError
from shared.events import LifecycleError, StageDefinition
from shared.kafka import KafkaAdmin
from stage_runner.driver.compile import CompiledStage
from stage_runner.driver.decode import MalformedRecord
from stage_runner.driver.source import read_topics
from stage_runner.driver.topics import TopicSource
from waybill.spark.checkpoint import Checkpoint, CheckpointDamaged
from waybill.spark.commits import CommitEmitter, Identity
from waybill.spark.fencing import StageInput
from waybill.spark.sinks import Sink, SinkSuperseded
from waybill.spark.stage import TrackedStage
from waybill.spark.stopping import StageStopped

logger = logging.getLogger(__name__)

Domain = Literal["user", "external", "internal"]
SETTLE_INTERVAL_S = 2.0  # how soon an idle stage sees that its topic is another one


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every stage of the driver shares."""

    spark: SparkSession
    kafka: str
    admin: KafkaAdmin
    emitter: CommitEmitter
    identity: Identity
    clock: Clock
    checkpoint_folder: Path


class RunningStage:
    """One stage: its tracked batches and the query that feeds them."""

    def __init__(
        self,
        compiled: CompiledStage,
        definition: StageDefinition,
        sinks: tuple[Sink, ...],
        around: Surroundings,
    ) -> None:
        self.name = definition.name
        self.failure: Exception | None = None
        self._compiled = compiled
        self._around = around
        self._sinks = sinks
        self._inputs = stage_inputs(definition)
        self._folder = checkpoint_folder(around.checkpoint_folder, self.name, self._inputs)
        self._query: StreamingQuery | None = None
        self._tracked = TrackedStage(
            self.name,
            identity=around.identity,
            inputs=self._inputs,
            sinks=sinks,
            checkpoint=Checkpoint(self._folder),
            source=TopicSource(around.admin, around.spark, around.kafka),
            to_rows=compiled.rows,
            emit=around.emitter.emit,
            clock=around.clock,
        )

    def open(self) -> None:
        self._tracked.open()

    def settle(self) -> None:
        self._tracked.settle()
        logger.info("fences are reported", extra={"stage": self.name})

    def start(self) -> None:
        starts = self._tracked.resume()
        stage = self._compiled.stage
        frame = read_topics(
            self._around.spark,
            self._around.kafka,
            topics={i.topic: i.topic_id for i in self._inputs},
            partitions=self._around.admin.identify(i.topic for i in self._inputs),
            starts=starts,
            offsets_max=stage.max_offsets_per_trigger,
        )
        self._query = (
            frame.writeStream.queryName(self.name)
            .foreachBatch(self._process)
            .option("checkpointLocation", str(self._folder))
            .trigger(processingTime=f"{stage.interval_ms} milliseconds")
            .start()
        )

    def watch(self) -> None:
        self._tracked.watch()

    def failed(self) -> Exception | None:
        """Why the query has ended, if it has. Kafka may know it better than Spark does."""
        query = self._query
        if query is None or query.isActive:
            return None
        if self.failure is None:
            self._tracked.watch()
        return self.failure or query.exception() or StreamingQueryException("the query ended")

    def stop(self) -> None:
        """At a batch boundary: wait for the running batch, let no other begin, then stop."""
        self._tracked.close()
        if self._query is not None:
            self._query.stop()
        for sink in self._sinks:
            sink.close()

    def _process(self, frame: DataFrame, batch_id: int) -> None:
        try:
            self._tracked.process(frame, batch_id)
        except Exception as error:
            # The loop's boundary: Py4J would hand on only the text of it.
            self.failure = error
            raise


def stage_inputs(definition: StageDefinition) -> tuple[StageInput, ...]:
    return tuple(
        StageInput(
            name=i.name,
            topic=i.topic,
            topic_id=i.topic_id,
            bases={base.partition: base.offset for base in i.bases},
            retired=i.retired,
        )
        for i in definition.inputs
    )


def checkpoint_folder(root: Path, stage: str, inputs: tuple[StageInput, ...]) -> Path:
    """Spark keeps names and offsets only: a checkpoint must never meet topics with other ids."""
    ids = ",".join(sorted(source.topic_id for source in inputs))
    return root / stage / hashlib.sha256(ids.encode()).hexdigest()[:12]


def begin(stages: Sequence[RunningStage]) -> None:
    """Claim every sink, say what stands there and what can never come, and only then start."""
    for stage in stages:
        stage.open()
        logger.info("fences are read", extra={"stage": stage.name})
    settle(stages)
    for stage in stages:
        stage.start()
        logger.info("stage is started", extra={"stage": stage.name})


def settle(stages: Iterable[RunningStage]) -> None:
    """Every stage, whatever another one finds; then raise what the first has found."""
    stopped: StageFailed | None = None
    for stage in stages:
        try:
            stage.settle()
        except StageStopped as error:
            logger.error("stage cannot go on", extra={"stage": stage.name, "reason": str(error)})
            if stopped is None:
                stopped = StageFailed(stage.name)
                stopped.__cause__ = error
    if stopped is not None:
        raise stopped


def watch(stages: Sequence[RunningStage], stop: threading.Event, interval_s: float) -> None:
    """Until `stop` is set; raises what ended a stage."""
    settle_at = time.monotonic() + SETTLE_INTERVAL_S
    while not stop.wait(interval_s):
        due = time.monotonic() >= settle_at
        for stage in stages:
            failure = _failure(stage, due)
            if isinstance(failure, StageStopped):
                settle(stages)  # the same topic may be another stage's output
            if failure is not None:
                logger.error("stage ended", extra={"stage": stage.name, "reason": str(failure)})
                raise StageFailed(stage.name) from failure
        if due:
            settle_at = time.monotonic() + SETTLE_INTERVAL_S


def _failure(stage: RunningStage, settle_due: bool) -> Exception | None:
    try:
        failure = stage.failed()
        if failure is None and settle_due:
            stage.watch()
        return failure
    except StageStopped as stopped:
        return stopped
    except Retryable as error:
        logger.warning("topics cannot be looked at", extra={"reason": str(error)})
        return None


class StageFailed(Exception):
    """A stage has ended by itself; the cause says why."""

    def __init__(self, stage: str) -> None:
        super().__init__(f"stage {stage} ended")
        self.stage = stage


def describe(failure: BaseException, stage: str | None) -> LifecycleError:
    """Who must act, what happened, and what to do."""
    match failure:
        case MalformedRecord():
            hint = "mend the producer; a stage cannot skip a record yet, so it ends here"
            return _error("user", str(failure), hint, stage, retryable=False)
        case StageStopped():
            domain: Domain = "internal" if failure.retryable else "user"
            return _error(domain, str(failure), failure.hint, stage, retryable=failure.retryable)
        case UserError():
            hints = "; ".join(problem.hint for problem in failure.problems if problem.hint)
            return _error("user", str(failure), hints, stage, retryable=False)
        case CheckpointDamaged():
            hint = "the next start goes on where the sinks stand"
            return _error("internal", str(failure), hint, stage, retryable=True)
        case SinkSuperseded():
            hint = "another driver has taken over this stage"
            return _error("internal", str(failure), hint, stage, retryable=True)
        case Retryable():
            hint = "it is tried again; see the driver's log if it goes on"
            return _error("external", str(failure), hint, stage, retryable=True)
        case _:
            text = str(failure).split("\n", 1)[0][:500]
            hint = "it is tried again; see the driver's log"
            return _error(
                "internal", f"{type(failure).__name__}: {text}", hint, stage, retryable=True
            )


def _error(
    domain: Domain,
    message: str,
    hint: str,
    stage: str | None,
    *,
    retryable: bool,
) -> LifecycleError:
    return LifecycleError(
        domain=domain, message=message, hint=hint, stage=stage, retryable=retryable
    )
