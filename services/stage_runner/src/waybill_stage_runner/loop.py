"""Runs the runners in rounds: reports of drivers, then what is due, then one command.

Decides nothing.
"""

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Final, assert_never
from weakref import WeakKeyDictionary

from waybill_shared.contract.driver import DriverEvent
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Command
from waybill_shared.contract.lifecycle import HEARTBEAT_INTERVAL_MS
from waybill_shared.kafka.partition_producer import PartitionLost
from waybill_shared.process.health import Health
from waybill_stage_runner.adapters.commands import CommandReader
from waybill_stage_runner.adapters.drivers import DriverPool, EndReport, QueueReport, RunReport
from waybill_stage_runner.app.measuring import count_retry, show, show_drivers
from waybill_stage_runner.app.ownership import Ownership
from waybill_stage_runner.app.ports import Checked
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.actions import (
    DriverBlocked,
    DriverEnded,
    DriverFailed,
    DriverIgnores,
    DriverMaintained,
    DriverRuns,
    RunEvent,
    RunQueued,
)

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
        self._retry_at = 0.0
        self._act_at: dict[Runner, float] = {}
        """When a runner tries again, by runner, after Kafka did not accept its messages."""
        self._waits: WeakKeyDictionary[Runner, tuple[str, float]] = WeakKeyDictionary()
        """The id of the command that waits there, and when it is refused."""

    def run(self, stop: threading.Event) -> bool:
        """Run rounds until `stop` is set. Return False if another runner has taken over before."""
        try:
            while not stop.is_set():
                self._health.beat()
                try:
                    self.turn()
                except Retryable as error:
                    count_retry()
                    logger.warning("will be tried again", extra={"reason": str(error)})
                    stop.wait(RETRY_S)
        except PartitionLost as lost:
            logger.warning("another runner has taken over", extra={"reason": str(lost)})
            self._ownership.release(self._ownership.runners())
            return False
        return True

    def turn(self) -> None:
        runners = self._ownership.runners()
        self._hear(runners.values())
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
        self._commands.commit(set().union(*(each.unanswered() for each in runners.values())))

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
        """Handle one command.

        A command that was checked comes before new ones. While a command waits for a retry, the
        loop handles no other.
        """
        if now < self._retry_at:
            return
        for runner in runners.values():
            ready = runner.next_ready()
            if ready is not None and not runner.busy:
                self._carry_out(runner, *ready, now)
                return
        found = self._commands.next(0)
        if found is None:
            return
        partition, offset, command = found
        runner_of = self._ownership.runners().get(partition)
        if runner_of is None or runner_of.busy:
            self._commands.later()
        elif self._carry_out(runner_of, offset, command, now):
            self._commands.done()

    def _carry_out(self, runner: Runner, offset: int, command: Command, now: float) -> bool:
        """Return True if the command is decided, in one way or the other."""
        try:
            runner.handle(command, offset)
        except Retryable as error:
            waits, give_up_at = self._waits.get(runner, ("", 0.0))
            if waits != command.id:
                give_up_at = now + COMMAND_TIMEOUT_S
                self._waits[runner] = (command.id, give_up_at)
            self._retry_at = now + RETRY_S
            if now < give_up_at:
                logger.warning("command waits", extra={"id": command.id, "reason": str(error)})
                return False
            runner.refuse(command, str(error))
        self._act(runner, now, beats=False)
        return True

    def _hear(self, runners: Iterable[Runner]) -> None:
        """Pass on reports of drivers. Wait a little for the first, so that the loop does
        not spin.
        """
        for news in self._drivers.hear(POLL_S):
            for runner in runners:
                if isinstance(news, Checked):
                    runner.finish_check(news)
                else:
                    _tell(runner, news)


def _tell(runner: Runner, news: RunReport | QueueReport | EndReport) -> None:
    event = _as_event(news)
    if event is not None:
        runner.receive(news.pipeline_uid, news.epoch, event)


def _as_event(news: RunReport | QueueReport | EndReport) -> RunEvent | None:
    match news:
        case EndReport(exit_code=exit_code):
            return DriverEnded(exit_code=exit_code)
        case QueueReport(place=place):
            return RunQueued(place=place)
        case RunReport(event=event):
            return _as_said(event)
        case _:
            assert_never(news)


def _as_said(event: DriverEvent) -> RunEvent | None:
    match event.kind:
        case "running":
            return DriverRuns()
        case "blocked":
            return DriverBlocked(blocked_by=event.blocked_by, waits=event.waits)
        case "ignored":
            return DriverIgnores(fields=event.ignored)
        case "maintained":
            done = event.maintenance
            return None if done is None else DriverMaintained(maintenance=done)
        case "failed":
            return DriverFailed(problems=event.problems, error=event.error)
        case _:
            return None
