"""Commands whose manifests are checked before anything is made of them."""

from collections.abc import Iterable
from typing import Final

from waybill_shared.contract.events import Command, Problem
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import OperationState
from waybill_shared.process.clock import Clocks
from waybill_stage_runner.app.ports import Checked, Drivers
from waybill_stage_runner.core.lines import Lines, Waiting
from waybill_stage_runner.core.moves import Answer
from waybill_stage_runner.core.placement import CHECK_MS

SLOW_MS: Final = 60_000  # so long a text is refused at once whose check took too long


class Checks:
    def __init__(self, drivers: Drivers, clock: Clocks) -> None:
        self._drivers = drivers
        self._clock = clock
        self._lines = Lines()
        self._slow: dict[str, int] = {}
        """Until when a manifest is refused, by its text."""

    def put_behind(self, command: Command, offset: int) -> bool:
        """Whether another command of its pipeline comes first; then it waits for that."""
        behind = self._lines.must_wait(command)
        if behind:
            self._lines.wait(command, offset)
        return behind

    def passed(self, command: Command) -> bool:
        return self._lines.passed(command)

    def begin(self, command: Command, offset: int) -> Answer | None:
        """Have it checked; or why not."""
        assert command.manifest is not None
        now = self._clock.monotonic_ms()
        self._slow = {text: until for text, until in self._slow.items() if now < until}
        if command.manifest in self._slow:
            self._lines.leave(command)
            return _too_slow(command)
        self._lines.check(command, offset)
        self._drivers.check(command.id, command.pipeline_uid, command.manifest)
        return None

    def end(self, found: Checked) -> Answer | None:
        """What is to be answered at once, as it is refused; else it is free now."""
        command = self._lines.checked(found.check_id)
        refusal = None if command is None else self._refusal(command, found)
        if refusal is not None:
            self._lines.leave(refusal.command)
        return refusal

    def free(self) -> Waiting | None:
        """A command that has waited, and is to be carried out now."""
        return self._lines.free()

    def leave(self, command: Command) -> None:
        """It is carried out, or refused."""
        self._lines.leave(command)

    def waiting(self) -> Iterable[str]:
        return (command.id for command in self._lines)

    def clear(self) -> None:
        for check_id in self._lines.checking:
            self._drivers.forget_check(check_id)
        self._lines.clear()

    def _refusal(self, command: Command, found: Checked) -> Answer | None:
        assert command.manifest is not None
        if found.failed == "gone":
            return _gone(command)
        if found.failed == "deadline":
            self._slow[command.manifest] = self._clock.monotonic_ms() + SLOW_MS
            return _too_slow(command)
        return failed(command, found.problems, Slug.INVALID) if found.problems else None


def _gone(command: Command) -> Answer:
    message = "the driver in which it was checked ended, and the next one too"
    problem = Problem(message=message, hint="the log of the stage_runner says why")
    return failed(command, (problem,), Slug.INTERNAL)


def _too_slow(command: Command) -> Answer:
    message = f"it was not compiled within {CHECK_MS // 1000} s"
    problem = Problem(message=message, hint="split its queries into smaller steps or pipelines")
    return failed(command, (problem,), Slug.INVALID)


def failed(command: Command, problems: tuple[Problem, ...], slug: Slug) -> Answer:
    return Answer(command=command, state=OperationState.FAILED, errors=problems, problem=slug)
