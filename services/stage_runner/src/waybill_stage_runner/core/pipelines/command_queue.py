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
        self._lines: dict[str, deque[QueuedCommand]] = {}
        self._checking: set[str] = set()
        self._passed: set[str] = set()

    def __iter__(self) -> Iterator[Command]:
        return (each.command for line in self._lines.values() for each in line)

    @property
    def checking(self) -> frozenset[str]:
        return frozenset(self._checking)

    def must_wait(self, command: Command) -> bool:
        """Return True if another command of its pipeline comes first."""
        line = self._lines.get(command.pipeline_uid)
        return line is not None and line[0].command.id != command.id

    def wait(self, command: Command, offset: int) -> None:
        """Add the command at the end of its queue, unless it is there already."""
        line = self._lines.setdefault(command.pipeline_uid, deque())
        if all(each.command.id != command.id for each in line):
            line.append(QueuedCommand(command=command, offset=offset))

    def check(self, command: Command, offset: int) -> None:
        """Note that the check of the command starts."""
        self.wait(command, offset)
        self._checking.add(command.id)

    def passed(self, command: Command) -> bool:
        return command.id in self._passed

    def checked(self, check_id: str) -> Command | None:
        """Note that the check is done. Return its command; None if nobody waits for it."""
        if check_id not in self._checking:
            return None
        self._checking.discard(check_id)
        self._passed.add(check_id)
        return next(each for each in self if each.id == check_id)

    def free(self) -> QueuedCommand | None:
        """Return a command that may be carried out now: the head of a queue that is not being
        checked.
        """
        heads = (line[0] for line in self._lines.values())
        return next((head for head in heads if head.command.id not in self._checking), None)

    def leave(self, command: Command) -> None:
        """Remove the command from its queue: it was carried out, or refused."""
        line = self._lines.get(command.pipeline_uid)
        if line is None or line[0].command.id != command.id:
            return
        line.popleft()
        self._passed.discard(command.id)
        if not line:
            del self._lines[command.pipeline_uid]

    def clear(self) -> None:
        self._lines.clear()
        self._checking.clear()
        self._passed.clear()
