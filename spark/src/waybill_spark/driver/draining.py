"""Drains a run: what its inputs contain when this begins reaches every sink. Then the run stops.

The ends of all topics that no stage of the run writes are read first. A stage is drained when its
sinks have passed the ends of its inputs; its query is ended then. Stages that read what it wrote
take the ends of that topic only after that, so that nothing comes after them. A stage of a run
that ends by itself may not have started then, or may have ended before: it is started (again).

A stage that is stopped, by a failure of its own, is not drained; the others are.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.vectors import TopicPartition
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.run_control import RunControl
from waybill_spark.driver.watching import Watcher

logger = logging.getLogger(__name__)

ROUND_S: Final = 0.1
Ends = Mapping[TopicPartition, int]


class Drain:
    def __init__(
        self, stages: Sequence[RunningStage], admin: KafkaAdmin, *, is_whole: bool = True
    ) -> None:
        """`stages`: those that go on; the list may change. `is_whole`: they are all that the
        pipeline has.
        """
        self._stages = stages
        self._left = list(stages)
        self._is_whole = is_whole
        self._admin = admin
        self._ends: dict[str, Ends] = {}
        """By topic, how far it must be read."""

    def run(self, watcher: Watcher, stop: RunControl) -> bool:
        """Drain stage by stage. Return False if the run is to stop in a stronger way before all
        are drained, or if a stage is stopped.

        Raise StageFailed when a stage has ended or must end.
        """
        logger.info("run drains")
        while self._left and stop.mode is StopMode.DRAIN:
            self._end_drained(watcher)
            watcher.watch_once()
            self._drop_stopped()
            time.sleep(ROUND_S)
        return self._is_whole and not self._left

    def _drop_stopped(self) -> None:
        going = [stage for stage in self._left if stage in self._stages]
        self._is_whole = self._is_whole and len(going) == len(self._left)
        self._left = going

    def _end_drained(self, watcher: Watcher) -> None:
        try:
            self._read_ends()
        except Retryable as error:
            logger.warning("ends of topics are not known yet", extra={"reason": str(error)})
            return
        for stage in list(self._left):
            ends = self._find_ends(stage)
            if ends is None:
                continue
            if stage.has_passed(ends):
                watcher.leave_out(stage)
                stage.end_query()
                self._left.remove(stage)
                logger.info("stage is drained", extra={"stage": stage.name})
            elif stage.waits_for_start() and stage.lacks(ends):
                stage.start()

    def _find_ends(self, stage: RunningStage) -> Ends | None:
        """Return how far the stage must read; None if it is not known of all its topics yet."""
        known = [self._ends.get(topic) for topic in stage.topics]
        if any(ends is None for ends in known):
            return None
        return {at: end for ends in known if ends is not None for at, end in ends.items()}

    def _read_ends(self) -> None:
        """Read the ends of all topics that nobody in this run writes any more."""
        wanted = {topic for stage in self._left for topic in stage.topics} - self._ends.keys()
        written = {topic_id for stage in self._left for topic_id in stage.outputs}
        for topic, found in self._admin.identify(wanted).items():
            if found.topic_id not in written:
                ends = self._admin.stable_ends(topic, found.partitions)
                self._ends[topic] = {(found.topic_id, p): end for p, end in ends.items()}
