"""Keeps the order of commands that wait for a check, and of later commands of the same pipeline."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from waybill_shared.contract.events import Command


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

    def __iter__(self) -> Iterator[Command]:
        return (each.command for queue in self._queues.values() for each in queue)

    @property
    def checking(self) -> frozenset[str]:
        return frozenset(self._checking)

    def must_wait(self, command: Command) -> bool:
        """Return True if another command of its pipeline comes first."""
        queue = self._queues.get(command.pipeline_uid)
        return queue is not None and queue[0].command.id != command.id

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

    def next_ready(self) -> QueuedCommand | None:
        """Return a command that may be carried out now: the head of a queue that is not being
        checked.
        """
        heads = (queue[0] for queue in self._queues.values())
        return next((head for head in heads if head.command.id not in self._checking), None)

    def remove(self, command: Command) -> None:
        """Remove the command from its queue: it was carried out, or refused."""
        queue = self._queues.get(command.pipeline_uid)
        if queue is None or queue[0].command.id != command.id:
            return
        queue.popleft()
        self._checked.discard(command.id)
        if not queue:
            del self._queues[command.pipeline_uid]

    def clear(self) -> None:
        self._queues.clear()
        self._checking.clear()
        self._checked.clear()
