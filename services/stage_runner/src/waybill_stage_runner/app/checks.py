"""Has manifests checked before a command is carried out, or only for a validation or maintenance.

A command first waits for earlier ones of its pipeline (`queue_if_busy`). Then `begin` sends its
check to a driver. When the check is done, `end` returns an answer, or the command is free: the loop
finds it by `free` and carries it out. `leave` removes it at the end.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import Command, PipelineRecord
from waybill_shared.contract.manifest.maintenance import refuse_no_tasks
from waybill_shared.contract.manifest.reading import parse_manifest
from waybill_shared.contract.operations import COMPARED_WITH, DRY_RUN, SINK
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action, OperationState
from waybill_shared.process.clock import Clocks
from waybill_stage_runner.app.ports import Checked, Drivers
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.core.pipelines.changes import notes_of
from waybill_stage_runner.core.pipelines.command_queue import CommandQueues, QueuedCommand
from waybill_stage_runner.core.pipelines.validation_result import validation_result
from waybill_stage_runner.core.pool.model import CheckFailure

SLOW_MS: Final = 60_000  # after its check was too slow, a manifest is refused at once for so long
TOO_SLOW: Final = (
    "split its queries into smaller steps or pipelines; if the machine is only busy, send it again "
    "in a minute, or set WAYBILL_STAGE_RUNNER_CHECK_TIMEOUT_S"
)
NOT_CHECKED: Final[Mapping[CheckFailure, str]] = {
    "driver_exited": "the driver in which it was checked ended, and the next one too",
    "not_started": "the driver that was to check it did not begin, and was ended",
}
NOT_MAINTAINED: Final[Mapping[CheckFailure, str]] = {
    "driver_exited": "the driver that did it ended, and the next one too; what was done stays done",
    "not_started": "the driver that was to do it did not begin, and was ended",
    "deadline": "it took too long, and was ended; what was done stays done",
}
VALIDATIONS_MAX: Final = 32  # waiting at the same time; each needs some 0.3 s


class Admission:
    """Limits on checks, shared by all partitions of a process, because they share its drivers.

    So many validations may wait, and a check that was too slow is not tried again for a while.
    """

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._slow: dict[str, int] = {}
        """Until when a manifest is refused, by its text."""

    def enter(self, command_id: str) -> bool:
        """Return True if there is room for the validation. One that has entered stays in."""
        if command_id not in self._waiting and len(self._waiting) >= VALIDATIONS_MAX:
            return False
        self._waiting.add(command_id)
        return True

    def leave(self, command_id: str) -> None:
        self._waiting.discard(command_id)

    def remember_slow(self, manifest: str, now: int) -> None:
        self._slow[manifest] = now + SLOW_MS

    def slow(self, manifest: str, now: int) -> bool:
        self._slow = {text: until for text, until in self._slow.items() if now < until}
        return manifest in self._slow


class Checks:
    def __init__(self, drivers: Drivers, clock: Clocks, admission: Admission) -> None:
        self._drivers = drivers
        self._clock = clock
        self._admission = admission
        self._lines = CommandQueues()
        self._found: dict[str, Checked] = {}
        """Results of validations that must still be compared with a pipeline, by command id."""

    def queue_if_busy(self, command: Command, offset: int) -> bool:
        """Queue the command if an earlier one of its pipeline is not done. Return True if it was
        queued.
        """
        behind = self._lines.must_wait(command)
        if behind:
            self._lines.wait(command, offset)
        return behind

    def passed(self, command: Command) -> bool:
        return self._lines.passed(command)

    def found(self, command: Command) -> Checked | None:
        """Return what the check of a validation found that must still be compared."""
        return self._found.get(command.id)

    def begin(self, command: Command, offset: int, before: str | None = None) -> Answer | None:
        """Send the command's check to a driver. Return a refusal if that is not possible.

        `before` is the manifest that a validation would change.
        """
        assert command.manifest is not None
        if self._admission.slow(command.manifest, self._clock.monotonic_ms()):
            self._lines.leave(command)
            return _too_slow(command)
        for_run = command.action is not Action.VALIDATE
        if not for_run and not self._admission.enter(command.id):
            return _no_room(command)
        self._lines.check(command, offset)
        self._drivers.check(
            command.id,
            command.pipeline_uid,
            command.manifest,
            for_run=for_run,
            before=before,
            compared_with=command.options.get(COMPARED_WITH),
        )
        return None

    def begin_maintenance(
        self, command: Command, offset: int, record: PipelineRecord | None
    ) -> Answer | None:
        """Send a maintenance to a driver. Return a refusal if that is not possible."""
        if record is None:
            problem = Problem(message=f"there is no pipeline {command.pipeline} any more")
            return failed(command, (problem,), Slug.PIPELINE_GONE)
        sink = command.options.get(SINK, "")
        try:
            refuse_no_tasks(parse_manifest(record.manifest), sink)
        except UserError as error:
            return failed(command, error.problems, Slug.INVALID)
        if not self._admission.enter(command.id):
            return _no_room(command)
        self._lines.check(command, offset)
        dry_run = command.options.get(DRY_RUN) == "true"
        self._drivers.maintain(command.id, record, sink, dry_run=dry_run)
        return None

    def end(self, found: Checked) -> Answer | None:
        """Note the end of a check. Return the answer, or None if the command is to be carried out
        now.

        An answer is returned for a refusal, and for what was only to be checked. A validation that
        must be compared is carried out too, as this may have to wait for Kafka.
        """
        command = self._lines.checked(found.check_id)
        compared = command is not None and command.action is Action.VALIDATE
        if command and compared and COMPARED_WITH in command.options and found.failed is None:
            self._found[command.id] = found
            return None
        answer = None if command is None else self._answer(command, found)
        if answer is not None:
            self.leave(answer.command)
        return answer

    def free(self) -> QueuedCommand | None:
        """Return a command that has waited and is to be carried out now."""
        return self._lines.free()

    def leave(self, command: Command) -> None:
        """Remove the command: it was carried out, answered or refused."""
        self._lines.leave(command)
        self._admission.leave(command.id)
        self._found.pop(command.id, None)

    def waiting(self) -> Iterable[str]:
        return (command.id for command in self._lines)

    def clear(self) -> None:
        for check_id in self._lines.checking:
            self._drivers.forget_check(check_id)
            self._admission.leave(check_id)
        for check_id in self._found:
            self._admission.leave(check_id)
        self._found.clear()
        self._lines.clear()

    def _answer(self, command: Command, found: Checked) -> Answer | None:
        if command.action is Action.MAINTAIN:
            return _maintained(command, found)
        assert command.manifest is not None
        if found.failed == "deadline":
            self._admission.remember_slow(command.manifest, self._clock.monotonic_ms())
            return _too_slow(command)
        if found.failed is not None:
            return _not_checked(command, NOT_CHECKED[found.failed])
        if command.action is Action.VALIDATE:
            notes = notes_of(found.alterations)
            result = validation_result(command, found.problems, found.columns, notes=notes)
            return Answer(command=command, state=OperationState.DONE, result=result)
        return failed(command, found.problems, Slug.INVALID) if found.problems else None


def _maintained(command: Command, found: Checked) -> Answer:
    if found.failed is not None:
        return _not_checked(command, NOT_MAINTAINED[found.failed])
    if found.problems:
        return failed(command, found.problems, Slug.INVALID)
    told = {
        "sink": command.options[SINK],
        "dry_run": command.options.get(DRY_RUN) == "true",
        "tasks": {name: dict(counts) for name, counts in found.tasks.items()},
    }
    return Answer(command=command, state=OperationState.DONE, result=json.dumps(told))


def _not_checked(command: Command, message: str) -> Answer:
    problem = Problem(message=message, hint="the log of the stage_runner says why")
    return failed(command, (problem,), Slug.INTERNAL)


def _no_room(command: Command) -> Answer:
    message = f"{VALIDATIONS_MAX} manifests are waiting for their check"
    problem = Problem(message=message, hint="send it again in a moment")
    return failed(command, (problem,), Slug.TOO_MANY_CHECKS)


def _too_slow(command: Command) -> Answer:
    message = "it was not compiled in the time that a check has"
    problem = Problem(message=message, hint=TOO_SLOW)
    return failed(command, (problem,), Slug.INVALID)


def failed(command: Command, problems: tuple[Problem, ...], slug: Slug) -> Answer:
    return Answer(command=command, state=OperationState.FAILED, errors=problems, problem=slug)
