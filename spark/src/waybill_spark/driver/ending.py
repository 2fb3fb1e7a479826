"""Runs the stages of a pipeline that ends by itself, stage by stage.

All sinks are claimed before, as in every run. A stage starts when those that write its inputs have
ended, and readers can see all that they wrote: so it reads all of it. What a stage reads is what
its inputs contain when it starts; Spark ends its query after that. The run has finished when every
stage has ended, nothing is hidden from readers, and Kafka has all commits: nobody repeats them
after the run.
"""

import logging
from collections.abc import Sequence
from typing import Final, Protocol

from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.pausing import Pausing
from waybill_spark.driver.run_control import RunControl
from waybill_spark.driver.watching import Watcher

logger = logging.getLogger(__name__)

ROUND_S: Final = 0.05


class Commits(Protocol):
    def has_all(self) -> bool:
        """Return True if Kafka has the newest commit of every sink."""


class Ending:
    def __init__(self, stages: Sequence[RunningStage], commits: Commits) -> None:
        self._waiting = list(stages)
        self._running: list[RunningStage] = []
        self._commits = commits

    def start_ready(self) -> None:
        """Start each stage of which no other that has not ended writes an input."""
        written = {topic for each in (*self._waiting, *self._running) for topic in each.outputs}
        for stage in [each for each in self._waiting if not each.reads & written]:
            self._waiting.remove(stage)
            self._running.append(stage)
            stage.start()
            logger.info("stage is started", extra={"stage": stage.name})

    def run(self, watcher: Watcher, control: RunControl, pausing: Pausing) -> bool:
        """Run every stage to its end. Return False if the run is to stop before.

        Raise StageFailed when a stage has failed or must end. No stage starts while the run is
        paused.
        """
        while self._running or not self._commits.has_all():
            control.wait_for_order(ROUND_S)
            if control.is_set():
                return False
            pausing.follow()
            watcher.watch_once()
            if not pausing.is_wanted:
                self._end_done()
                self.start_ready()
        return True

    def _end_done(self) -> None:
        for stage in [each for each in self._running if _is_done(each)]:
            self._running.remove(stage)
            logger.info("stage has read all that there was", extra={"stage": stage.name})


def _is_done(stage: RunningStage) -> bool:
    return stage.has_ended() and not stage.has_hidden_rows()
