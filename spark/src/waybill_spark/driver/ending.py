"""Runs the stages of a pipeline that ends by itself, stage by stage.

All sinks are claimed before, as in every run. A stage starts when those that write its inputs have
ended, and readers can see all that they wrote: so it reads all of it. Letters that were to be
replayed when the run began are replayed before the first stage starts. What a stage reads is what
its inputs contain when it starts; Spark ends its query after that. The run has finished when every
stage has ended, nothing is hidden from readers, and Kafka has all commits: nobody repeats them
after the run.

A stage that fails by itself is stopped, and counts as one that has ended: the stages after it read
what it has written. The runner knows which are stopped, and that the pipeline has not finished.
"""

import logging
from typing import Final, Protocol

from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.going import RunStages
from waybill_spark.driver.pausing import Pausing
from waybill_spark.driver.run_control import RunControl
from waybill_spark.driver.watching import Watcher

logger = logging.getLogger(__name__)

ROUND_S: Final = 0.05


class Commits(Protocol):
    def has_all(self) -> bool:
        """Return True if Kafka has the newest commit of every sink."""


class Ending:
    def __init__(self, stages: RunStages, commits: Commits) -> None:
        self._stages = stages
        self._waiting = list(stages.going)
        self._running: list[RunningStage] = []
        self._commits = commits

    def run(self, watcher: Watcher, control: RunControl, pausing: Pausing) -> bool:
        """Run every stage to its end. Return False if the run is to stop before.

        Raise StageFailed when the run must end. No stage starts while the run is paused: one that
        starts later reads what came in the pause, too.
        """
        while not self.has_finished():
            if control.is_set():
                return False
            if not pausing.is_wanted:
                self.advance()
            watcher.follow(pausing)
            watcher.watch_once()
            self._stages.report_hidden()
            control.wait_for_order(ROUND_S)
        return True

    def advance(self) -> None:
        """Start each stage of which no other that has not ended writes an input. None starts before
        all have replayed their letters.
        """
        self._leave_out_stopped()
        if not all(each.has_replayed() for each in self._waiting):
            return
        self._end_done()
        written = {topic for each in (*self._waiting, *self._running) for topic in each.outputs}
        for stage in [each for each in self._waiting if not each.reads & written]:
            self._waiting.remove(stage)
            if self._stages.attempt(stage, stage.start):
                self._running.append(stage)
                logger.info("stage is started", extra={"stage": stage.name})

    def has_finished(self) -> bool:
        """Return True if every stage has ended or is stopped, and Kafka has all commits."""
        self._leave_out_stopped()
        return not (self._waiting or self._running) and self._commits.has_all()

    def _leave_out_stopped(self) -> None:
        self._waiting = [each for each in self._waiting if each in self._stages.going]
        self._running = [each for each in self._running if each in self._stages.going]

    def _end_done(self) -> None:
        for stage in [each for each in self._running if _is_done(each)]:
            self._running.remove(stage)
            logger.info("stage has read all that there was", extra={"stage": stage.name})


def _is_done(stage: RunningStage) -> bool:
    return stage.has_ended() and not stage.has_hidden_rows()
