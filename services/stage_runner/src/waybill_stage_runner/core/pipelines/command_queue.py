"""Keeps the order of commands that wait, and of later commands of the same pipeline.

A command waits for its check, or for the next attempt after something outside has failed. Commands
of other pipelines do not wait for it.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from waybill_shared.contract.events import Command

RETRY_MS: Final = 1_000
WAITING_MAX: Final = 32  # commands of one pipeline that are queued after its first


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedCommand:
    command: Command
    offset: int


class CommandQueues:
    """One queue for each pipeline. Its head is being checked, or has passed, or needs no check."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[QueuedCommand]] = {}
        self._checking: set[str] = set()
        self._checked: set[str] = set()
        self._first_tried: dict[str, int] = {}
        self._retry_at: dict[str, int] = {}

    def __iter__(self) -> Iterator[Command]:
        return (each.command for queue in self._queues.values() for each in queue)

    @property
    def checking(self) -> frozenset[str]:
        return frozenset(self._checking)

    def must_wait(self, command: Command) -> bool:
        """Return True if another command of its pipeline comes first."""
        queue = self._queues.get(command.pipeline_uid)
        return queue is not None and queue[0].command.id != command.id

    def has_room(self, command: Command) -> bool:
        """Return True if the command may wait. One that waits already keeps its position."""
        queue = self._queues.get(command.pipeline_uid, ())
        return len(queue) <= WAITING_MAX or any(each.command.id == command.id for each in queue)

    def add(self, command: Command, offset: int) -> None:
        """Add the command at the end of its queue, unless it is there already."""
        queue = self._queues.setdefault(command.pipeline_uid, deque())
        if all(each.command.id != command.id for each in queue):
            queue.append(QueuedCommand(command=command, offset=offset))

    def start_check(self, command: Command, offset: int) -> None:
        """Note that the check of the command starts."""
        self.add(command, offset)
        self._checking.add(command.id)

    def is_checked(self, command: Command) -> bool:
        return command.id in self._checked

    def finish_check(self, check_id: str) -> Command | None:
        """Note that the check is done. Return its command; None if nobody waits for it."""
        if check_id not in self._checking:
            return None
        self._checking.discard(check_id)
        self._checked.add(check_id)
        return next(each for each in self if each.id == check_id)

    def postpone(self, command: Command, offset: int, now: int) -> int:
        """Let the command and its queue wait for another attempt. Return for how long the command
        has been tried, in milliseconds.
        """
        self.add(command, offset)
        self._retry_at[command.id] = now + RETRY_MS
        return now - self._first_tried.setdefault(command.id, now)

    def next_ready(self, now: int) -> QueuedCommand | None:
        """Return the head of a queue that waits neither for its check nor for an attempt."""
        heads = (queue[0] for queue in self._queues.values())
        return next((head for head in heads if self._is_ready(head.command.id, now)), None)

    def remove(self, command: Command) -> None:
        """Remove the command from its queue: it was carried out, or refused."""
        queue = self._queues.get(command.pipeline_uid)
        if queue is None or queue[0].command.id != command.id:
            return
        queue.popleft()
        self._forget(command)
        if not queue:
            del self._queues[command.pipeline_uid]

    def remove_all(self, pipeline_uid: str) -> list[Command]:
        """Remove the queue of a pipeline. Return its commands, in order."""
        commands = [each.command for each in self._queues.pop(pipeline_uid, ())]
        for command in commands:
            self._forget(command)
        return commands

    def clear(self) -> None:
        self._queues.clear()
        self._checking.clear()
        self._checked.clear()
        self._first_tried.clear()
        self._retry_at.clear()

    def _forget(self, command: Command) -> None:
        self._checking.discard(command.id)
        self._checked.discard(command.id)
        self._first_tried.pop(command.id, None)
        self._retry_at.pop(command.id, None)

    def _is_ready(self, command_id: str, now: int) -> bool:
        return command_id not in self._checking and now >= self._retry_at.get(command_id, now)
