"""Turns the runners: what drivers tell, what is due, and then a command. Decides nothing."""

import logging
import queue
import threading
import time
from collections.abc import Iterable
from typing import Final, assert_never

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Command
from waybill_shared.contract.lifecycle import HEARTBEAT_INTERVAL_MS
from waybill_shared.process.health import Health
from waybill_stage_runner.adapters.commands import CommandQueue
from waybill_stage_runner.adapters.drivers import DriverProcesses, Ended, Told
from waybill_stage_runner.app.measuring import count_retry, show
from waybill_stage_runner.app.ownership import Ownership
from waybill_stage_runner.app.ports import PartitionLost
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.moves import (
    DriverBlocked,
    DriverEnded,
    DriverFailed,
    DriverRuns,
)

logger = logging.getLogger(__name__)

POLL_S: Final = 0.05
RETRY_S: Final = 1.0
COMMAND_TIMEOUT_S: Final = 30.0  # so long a command may wait for its topics to be there


class Loop:
    """One turn: hear drivers, act, beat; then one command, which never holds up the rest."""

    def __init__(
        self,
        ownership: Ownership,
        commands: CommandQueue,
        drivers: DriverProcesses,
        health: Health,
    ) -> None:
        self._ownership = ownership
        self._commands = commands
        self._drivers = drivers
        self._health = health
        self._beat_at = 0.0
        self._retry_at = 0.0
        self._act_at: dict[Runner, float] = {}
        """When a runner whose words Kafka did not take tries again."""
        self._give_up_at: float | None = None

    def run(self, stop: threading.Event) -> bool:
        """Turn until `stop` is set; False when another runner has taken over before."""
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
        now = time.monotonic()
        runners = self._ownership.runners()
        self._hear(runners.values())
        beats = now >= self._beat_at
        for runner in runners.values():
            self._act(runner, now, beats=beats)
        if beats:
            self._beat_at = now + HEARTBEAT_INTERVAL_MS / 1000
        show(state for runner in runners.values() for state in runner.states)
        found = self._commands.next(POLL_S)
        if found is not None and now >= self._retry_at:
            self._carry_out(*found, now)
        elif found is not None:
            time.sleep(POLL_S)  # the command waits, and nothing else is polled meanwhile
        runners = self._ownership.runners()
        self._commands.commit(set().union(*(each.unanswered() for each in runners.values())))

    def _act(self, runner: Runner, now: float, *, beats: bool) -> None:
        """What Kafka does not take for one partition holds up no other."""
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

    def _carry_out(self, partition: int, offset: int, command: Command, now: float) -> None:
        runner = self._ownership.runners().get(partition)
        if runner is None or runner.busy:
            self._commands.later()
            time.sleep(POLL_S)
            return
        try:
            runner.handle(command, offset)
        except Retryable as error:
            self._give_up_at = self._give_up_at or now + COMMAND_TIMEOUT_S
            self._retry_at = now + RETRY_S
            if now < self._give_up_at:
                logger.warning("command waits", extra={"id": command.id, "reason": str(error)})
                return
            runner.refuse(command, str(error))
        self._give_up_at = None
        self._commands.done()
        self._act(runner, now, beats=False)

    def _hear(self, runners: Iterable[Runner]) -> None:
        while True:
            try:
                heard = self._drivers.events.get_nowait()
            except queue.Empty:
                return
            for runner in runners:
                runner.hear(heard.pipeline_uid, heard.epoch, _as_event(heard))


def _as_event(heard: Told | Ended) -> DriverRuns | DriverBlocked | DriverFailed | DriverEnded:
    if isinstance(heard, Ended):
        return DriverEnded(exit_code=heard.exit_code)
    event = heard.event
    match event.kind:
        case "running":
            return DriverRuns()
        case "blocked":
            return DriverBlocked(blocked_by=event.blocked_by)
        case "failed":
            return DriverFailed(problems=event.problems, error=event.error)
        case _:
            assert_never(event.kind)
