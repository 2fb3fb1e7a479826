"""Runs all stages of one pipeline in one Spark session, until told to stop or until one fails."""

import logging
import threading
from collections.abc import Mapping
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
from waybill.spark.checkpoint import Checkpoint, CheckpointDamaged
from waybill.spark.commits import CommitEmitter, Identity
from waybill.spark.fencing import StageInput
from waybill.spark.sinks import Sink, SinkSuperseded
from waybill.spark.stage import StageStopped, TrackedStage

logger = logging.getLogger(__name__)


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
        self._folder = around.checkpoint_folder / self.name
        self._inputs = stage_inputs(definition)
        self._query: StreamingQuery | None = None
        self._tracked = TrackedStage(
            self.name,
            identity=around.identity,
            inputs=self._inputs,
            sinks=sinks,
            checkpoint=Checkpoint(self._folder),
            to_rows=compiled.rows,
            topic_ids=self._topic_ids,
            emit=around.emitter.emit,
            clock=around.clock,
        )

    def start(self) -> None:
        self._tracked.open()
        logger.info("fences are read", extra={"stage": self.name})
        starts = {} if Checkpoint(self._folder).exists() else self._tracked.starting_offsets()
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

    def failed(self) -> Exception | None:
        """Why the query has ended, if it has."""
        query = self._query
        if query is None or query.isActive:
            return None
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

    def _topic_ids(self, topics: tuple[str, ...]) -> Mapping[str, str]:
        return {name: t.topic_id for name, t in self._around.admin.identify(topics).items()}


def stage_inputs(definition: StageDefinition) -> tuple[StageInput, ...]:
    return tuple(
        StageInput(
            name=i.name,
            topic=i.topic,
            topic_id=i.topic_id,
            bases={base.partition: base.offset for base in i.bases},
        )
        for i in definition.inputs
    )


def watch(stages: list[RunningStage], stop: threading.Event, interval_s: float) -> None:
    """Until `stop` is set; raises what ended a stage."""
    while not stop.wait(interval_s):
        for stage in stages:
            failure = stage.failed()
            if failure is not None:
                logger.error("stage ended", extra={"stage": stage.name, "reason": str(failure)})
                raise StageFailed(stage.name) from failure


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
            return _error("user", str(failure), failure.hint, stage, retryable=False)
        case UserError():
            hints = "; ".join(problem.hint for problem in failure.problems if problem.hint)
            return _error("user", str(failure), hints, stage, retryable=False)
        case CheckpointDamaged():
            hint = "restore the checkpoint folder from a copy"
            return _error("user", str(failure), hint, stage, retryable=False)
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
    domain: Literal["user", "external", "internal"],
    message: str,
    hint: str,
    stage: str | None,
    *,
    retryable: bool,
) -> LifecycleError:
    return LifecycleError(
        domain=domain, message=message, hint=hint, stage=stage, retryable=retryable
    )
