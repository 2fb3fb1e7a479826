"""Limits of all partitions of a process: on checks, and on drivers. The refusals that follow from
checks.
"""

from collections.abc import Mapping
from typing import Final

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import Command
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import OperationState
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.core.pipelines.command_queue import WAITING_MAX
from waybill_stage_runner.core.pipelines.parallelism import AS_USUAL, CoreLimits, excess_of
from waybill_stage_runner.core.pipelines.planning import future_begins
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
VALIDATIONS_MAX: Final = 32  # waiting at the same time; each needs some 0.3 s


class Admission:
    """Limits on checks, shared by all partitions of a process, because they share its drivers.

    So many validations may wait, and a check that was too slow is not tried again for a while.
    """

    def __init__(self, limits: CoreLimits = AS_USUAL) -> None:
        self.limits = limits
        self._waiting: set[str] = set()
        self._slow: dict[str, int] = {}
        """Until when a manifest is refused, by its native tree."""

    def enter(self, command_id: str) -> bool:
        """Return True if there is room for the validation. One that has entered stays in."""
        if command_id not in self._waiting and len(self._waiting) >= VALIDATIONS_MAX:
            return False
        self._waiting.add(command_id)
        return True

    def leave(self, command_id: str) -> None:
        self._waiting.discard(command_id)

    def find_misfits(self, manifest: AppliedManifest, now: int) -> tuple[Problem, ...]:
        """Return what is wrong with a manifest here and now, although it is well formed. `now` is
        the time for people.
        """
        try:
            future = manifest.place(future_begins(manifest.model, now))
        except UserError:  # this version cannot read it any more: its check says why
            return ()
        return (*excess_of(manifest, self.limits), *future)

    def slow(self, manifest: AppliedManifest, now: int) -> bool:
        self._slow = {native: until for native, until in self._slow.items() if now < until}
        return manifest.native in self._slow

    def refuse_unchecked(
        self, command: Command, manifest: AppliedManifest, why: CheckFailure, now: int
    ) -> Answer:
        """Return the refusal of a command, because the check of its manifest did not end.

        Remember a manifest with a slow check.
        """
        if why != "deadline":
            return refuse_unfinished(command, NOT_CHECKED[why])
        self._slow[manifest.native] = now + SLOW_MS
        return refuse_slow(command)


def refuse_unfinished(command: Command, message: str) -> Answer:
    problem = Problem(message=message, hint="the log of the stage_runner says why")
    return refuse(command, (problem,), Slug.INTERNAL)


def refuse_crowded(command: Command) -> Answer:
    message = f"{VALIDATIONS_MAX} manifests are waiting for their check"
    problem = Problem(message=message, hint="send it again in a moment")
    return refuse(command, (problem,), Slug.TOO_MANY_CHECKS)


def refuse_overfull(command: Command) -> Answer:
    message = f"{WAITING_MAX} commands of pipeline {command.pipeline} wait for the one before them"
    problem = Problem(message=message, hint="send it again when some of them are answered")
    return refuse(command, (problem,), Slug.TOO_MANY_COMMANDS)


def refuse_slow(command: Command) -> Answer:
    message = "it was not compiled in the time that a check has"
    problem = Problem(message=message, hint=TOO_SLOW)
    return refuse(command, (problem,), Slug.INVALID)


def refuse_missing(command: Command) -> Answer:
    problem = Problem(message=f"there is no pipeline {command.pipeline} any more")
    return refuse(command, (problem,), Slug.PIPELINE_GONE)


def refuse(command: Command, problems: tuple[Problem, ...], slug: Slug) -> Answer:
    return Answer(command=command, state=OperationState.FAILED, errors=problems, problem=slug)
