"""Runs the runners in rounds: reports of drivers, then what is due, then one command.

Decides nothing.
"""

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Final, assert_never

from waybill_shared.contract.driver import DriverEvent
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Command
from waybill_shared.contract.lifecycle import HEARTBEAT_INTERVAL_MS
from waybill_shared.kafka.partition_producer import PartitionLost
from waybill_shared.process.health import Health
from waybill_stage_runner.adapters.commands import CommandReader
from waybill_stage_runner.adapters.driver_reports import EndReport, QueueReport, RunReport
from waybill_stage_runner.adapters.drivers import DriverPool
from waybill_stage_runner.app.measuring import count_retry, show, show_drivers
from waybill_stage_runner.app.ownership import Ownership
from waybill_stage_runner.app.ports import Checked
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines import events

logger = logging.getLogger(__name__)

POLL_S: Final = 0.02  # reports of drivers wake the loop at once; commands may wait so long
RETRY_S: Final = 1.0
COMMAND_TIMEOUT_S: Final = 30.0  # limit of the time for which a command waits for its topics


class Loop:
    """The main loop. One round: read reports of drivers, act, send heartbeats.

    Then one command is handled. A command that waits never delays the drivers and heartbeats.
    """

    def __init__(
        self,
        ownership: Ownership,
        commands: CommandReader,
        drivers: DriverPool,
        health: Health,
    ) -> None:
        self._ownership = ownership
        self._commands = commands
        self._drivers = drivers
        self._health = health
        self._beat_at = 0.0
        self._act_at: dict[Runner, float] = {}
        """When a runner tries again, by runner, after Kafka did not accept its messages."""

    def run(self, stop: threading.Event) -> bool:
        """Run rounds until `stop` is set. Return False if another runner took over before that."""
        try:
            while not stop.is_set():
                self._health.beat()
                try:
                    self.run_once()
                except Retryable as error:
                    count_retry()
                    logger.warning("will be tried again", extra={"reason": str(error)})
                    stop.wait(RETRY_S)
        except PartitionLost as lost:
            logger.warning("another runner owns the partition now", extra={"reason": str(lost)})
            self._ownership.release(self._ownership.runners())
            return False
        return True

    def run_once(self) -> None:
        runners = self._ownership.runners()
        self._forward_reports(runners.values())
        now = time.monotonic()
        beats = now >= self._beat_at
        for runner in runners.values():
            self._act(runner, now, beats=beats)
        if beats:
            self._beat_at = now + HEARTBEAT_INTERVAL_MS / 1000
        show(state for runner in runners.values() for state in runner.states)
        show_drivers(self._drivers.all())
        self._next_command(runners, now)
        runners = self._ownership.runners()
        self._commands.commit(set().union(*(each.open_commands() for each in runners.values())))

    def _act(self, runner: Runner, now: float, *, beats: bool) -> None:
        """Let the runner act, unless it waits for a retry. A failure of one partition delays no
        other.
        """
        if now < self._act_at.get(runner, 0.0):
            return
        self._act_at.pop(runner, None)
        runner.tick()
        try:
            runner.act()
            if beats:
                runner.beat()
        except Retryable as error:
            count_retry()
            logger.warning("will be tried again", extra={"reason": str(error)})
            self._act_at[runner] = now + RETRY_S

    def _next_command(self, runners: Mapping[int, Runner], now: float) -> None:
        """Handle one command: one that has waited comes before new ones."""
        for runner in runners.values():
            ready = runner.next_ready()
            if ready is not None and not runner.busy:
                self._handle(runner, *ready, now)
                return
        found = self._commands.next(0)
        if found is None:
            return
        partition, offset, command = found
        runner_of = self._ownership.runners().get(partition)
        if runner_of is None or runner_of.busy:
            self._commands.later()
        else:
            self._handle(runner_of, offset, command, now)
            self._commands.finish()

    def _handle(self, runner: Runner, offset: int, command: Command, now: float) -> None:
        """Let the runner decide the command, or try it again later. Refuse it in the end."""
        try:
            runner.handle(command, offset)
        except Retryable as error:
            waited_ms = runner.postpone(command, offset)
            if waited_ms < COMMAND_TIMEOUT_S * 1000:
                logger.warning("command waits", extra={"id": command.id, "reason": str(error)})
                return
            runner.refuse(command, str(error))
        self._act(runner, now, beats=False)

    def _forward_reports(self, runners: Iterable[Runner]) -> None:
        """Pass on reports of drivers. Wait a little for the first, so that the loop does
        not spin.
        """
        for report in self._drivers.receive(POLL_S):
            for runner in runners:
                if isinstance(report, Checked):
                    runner.finish_check(report)
                else:
                    _forward(runner, report)


def _forward(runner: Runner, report: RunReport | QueueReport | EndReport) -> None:
    event = _as_event(report)
    if event is not None:
        runner.receive(report.pipeline_uid, report.epoch, event)


def _as_event(report: RunReport | QueueReport | EndReport) -> events.RunEvent | None:
    match report:
        case EndReport(exit_code=exit_code):
            return events.DriverEnded(exit_code=exit_code)
        case QueueReport(queue_position=queue_position):
            return events.RunQueued(queue_position=queue_position)
        case RunReport(event=event):
            return _as_run_event(event)
        case _:
            assert_never(report)


def _as_run_event(event: DriverEvent) -> events.RunEvent | None:
    match event.kind:
        case "running":
            return events.DriverRuns(not_put=event.not_put)
        case "paused":
            return events.DriverPaused(order=event.order, not_put=event.not_put)
        case "blocked":
            return events.DriverBlocked(blocked_by=event.blocked_by, waits=event.waits)
        case "progress":
            return events.DriverProgress(stages=event.progress)
        case "ignored":
            return events.DriverIgnores(fields=event.ignored)
        case "maintained":
            done = event.maintenance
            return None if done is None else events.DriverMaintained(maintenance=done)
        case "drained":
            return events.DriverDrained()
        case "finished":
            return events.DriverFinished()
        case "failed":
            return events.DriverFailed(problems=event.problems, error=event.error)
        case _:
            return _as_stage_event(event)


def _as_stage_event(event: DriverEvent) -> events.RunEvent | None:
    match event.kind:
        case "stage_ended" if event.error is not None:
            return events.DriverStageStopped(error=event.error, put_aside=event.put_aside)
        case "stages_started":
            return events.DriverStagesStarted(order=event.order)
        case _:
            return None
