"""Watches the stages of a running driver: whether they run, what they wait for, their topics, and
how busy they are."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from waybill_shared.contract.driver_news import IgnoredFields, SinkWait
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.words import Obstacle
from waybill_spark.driver.app import RunningStage
from waybill_spark.driver.failures import StageFailed, cause_of, is_of_stage
from waybill_spark.driver.jvm.executors import Executors
from waybill_spark.driver.reading.blocking import OpenTransactions, Reading
from waybill_spark.driver.reading.ignored import unite
from waybill_spark.driver.reading.pace import Pace
from waybill_spark.driver.run_control import RunControl
from waybill_spark.driver.stages import report_losses
from waybill_spark.tracking.stopping import StageStopped

logger = logging.getLogger(__name__)

ROUND_S = 0.2
SETTLE_INTERVAL_S = 2.0  # how soon an idle stage sees that its topic is another one


def end_run(stage: RunningStage, failure: Exception) -> None:
    """End the run because a stage has failed."""
    raise StageFailed(stage.name) from cause_of(failure)


class SentCommits(Protocol):
    def look(self) -> Obstacle | None:
        """Return what keeps the newest commits from Kafka, if that lasts."""


class FollowsOrders(Protocol):
    def follow(self) -> None:
        """Carry out the orders that have come."""


@dataclass(frozen=True, slots=True)
class KafkaWaits:
    """The things that a run may wait for in Kafka."""

    commits: SentCommits
    transactions: OpenTransactions

    def look(self, readings: Sequence[Reading]) -> Obstacle | None:
        return self.commits.look() or self.transactions.look(readings)


class Watcher:
    """Watches a run. `report` is called with what the pipeline waits for, as a whole and in single
    sinks, and once more when that is over; `report_ignored` with the fields of its records that
    its inputs do not have; `fail` with a stage that has failed, and why: it stops the stage, or
    raises StageFailed. `stages` are those that go on: the list may change.
    """

    def __init__(
        self,
        stages: list[RunningStage],
        kafka: KafkaWaits,
        report: Callable[[Obstacle | None, tuple[SinkWait, ...]], None],
        report_ignored: Callable[[tuple[IgnoredFields, ...]], None],
        executors: Executors | None = None,
        *,
        fail: Callable[[RunningStage, Exception], None] = end_run,
    ) -> None:
        self._stages = stages
        self._fail = fail
        self._kafka = kafka
        self._report = report
        self._report_ignored = report_ignored
        self._executors = executors
        self._pace = Pace(self._stages, time.monotonic)
        self._reported: tuple[Obstacle | None, tuple[SinkWait, ...]] = (None, ())
        self._reported_ignored: tuple[IgnoredFields, ...] = ()
        self._settle_at = time.monotonic() + SETTLE_INTERVAL_S

    def run(self, control: RunControl, *orders: FollowsOrders) -> None:
        """Watch until the run is to stop, and let `orders` be carried out meanwhile. Raise
        StageFailed when the run must end.
        """
        while not control.is_set():
            for each in orders:
                self.follow(each)
            self.watch_once()
            control.wait_for_order(ROUND_S)

    def follow(self, orders: FollowsOrders) -> None:
        """Let orders be carried out. A stage that fails by itself meanwhile is stopped.

        Raise StageFailed when the run must end.
        """
        try:
            orders.follow()
        except StageFailed as failed:
            stage = next((each for each in self._stages if each.name == failed.stage), None)
            if stage is None:
                raise
            self._fail(stage, failed)

    def leave_out(self, stage: RunningStage) -> None:
        """Watch a stage no more, because it is stopped."""
        self._stages.remove(stage)

    def watch_once(self) -> None:
        """Look at each stage once. Raise StageFailed when the run must end."""
        due = time.monotonic() >= self._settle_at
        for stage in tuple(self._stages):
            failure = _failure(stage, losses_due=due)
            if isinstance(failure, StageStopped) and not is_of_stage(failure):
                report_losses(self._stages)  # the same topic may be another stage's output
            if failure is not None:
                self._look_at_executors()  # without them no stage goes on, and that is the reason
                logger.error("stage ended", extra={"stage": stage.name, "reason": str(failure)})
                self._fail(stage, failure)
        if due:
            self._settle_at = time.monotonic() + SETTLE_INTERVAL_S
            self._look_for_ignored()
        self._pace.look()
        self._look_for_obstacle()

    def _look_for_obstacle(self) -> None:
        word = self._look_at_executors() or self._kafka.look(
            [reading for stage in self._stages for reading in stage.readings()]
        )
        if word is None and any(stage.has_hidden_rows() for stage in self._stages):
            word = Obstacle.BLOCKED_BY_OPEN_TRANSACTION
        blocked = word, tuple(wait for stage in self._stages for wait in stage.waits())
        if blocked != self._reported:
            self._report(*blocked)
            self._reported = blocked

    def _look_for_ignored(self) -> None:
        ignored = unite(stage.unknown_fields() for stage in self._stages)
        if ignored != self._reported_ignored:
            self._report_ignored(ignored)
            self._reported_ignored = ignored

    def _look_at_executors(self) -> Obstacle | None:
        return None if self._executors is None else self._executors.look()


def _failure(stage: RunningStage, *, losses_due: bool) -> Exception | None:
    try:
        failure = stage.find_failure()
        if failure is None and (losses_due or stage.has_hidden_rows()):
            stage.watch()
        return failure
    except StageStopped as stopped:
        return stopped
    except Retryable as error:
        logger.warning("topics cannot be looked at", extra={"reason": str(error)})
        return None
