"""Turns the runner: what drivers tell, what is due, and then a command. Decides nothing."""

import logging
import queue
import time
from typing import Final, assert_never

from shared.errors import Retryable
from shared.events import Command
from shared.lifecycle import HEARTBEAT_INTERVAL_MS
from stage_runner.adapters.drivers import DriverProcesses, Ended, Told
from stage_runner.adapters.kafka import CommandQueue
from stage_runner.adapters.ownership import Ownership
from stage_runner.app import Runner
from stage_runner.core.moves import DriverBlocked, DriverEnded, DriverFailed, DriverRuns

logger = logging.getLogger(__name__)

POLL_S: Final = 0.05
RETRY_S: Final = 1.0
COMMAND_TIMEOUT_S: Final = 30.0  # so long a command may wait for Kafka to take it


class Loop:
    """One turn: hear drivers, act, beat; then one command, which never holds up the rest."""

    def __init__(
        self,
        runner: Runner,
        ownership: Ownership,
        commands: CommandQueue,
        drivers: DriverProcesses,
    ) -> None:
        self._runner = runner
        self._ownership = ownership
        self._commands = commands
        self._drivers = drivers
        self._beat_at = 0.0
        self._retry_at = 0.0
        self._give_up_at: float | None = None

    def turn(self) -> None:
        now = time.monotonic()
        self._hear()
        self._runner.tick()
        self._runner.act()
        if now >= self._beat_at:
            self._runner.beat()
            self._beat_at = now + HEARTBEAT_INTERVAL_MS / 1000
        found = self._commands.next(POLL_S)
        if found is not None and now >= self._retry_at:
            self._carry_out(*found, now)
            self._runner.act()
        elif found is not None:
            time.sleep(POLL_S)  # the command waits, and nothing else is polled meanwhile
        self._commands.commit(self._runner.unanswered())

    def _carry_out(self, partition: int, offset: int, command: Command, now: float) -> None:
        self._ownership.note(partition, command.pipeline_uid)
        try:
            self._runner.handle(command, offset)
        except Retryable as error:
            self._give_up_at = self._give_up_at or now + COMMAND_TIMEOUT_S
            self._retry_at = now + RETRY_S
            if now < self._give_up_at:
                logger.warning("command waits", extra={"id": command.id, "reason": str(error)})
                return
            self._runner.refuse(command, str(error))
        self._give_up_at = None
        self._commands.done()

    def _hear(self) -> None:
        while True:
            try:
                heard = self._drivers.events.get_nowait()
            except queue.Empty:
                return
            self._runner.hear(heard.pipeline_uid, heard.epoch, _as_event(heard))


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
