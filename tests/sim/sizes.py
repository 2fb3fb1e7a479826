"""I17: a pipeline has the size that was asked for last, in its record and in its driver."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from sim.driver import LIMITS, Driver
from sim.operations import Operations
from waybill_shared.contract.commands import Rescale
from waybill_shared.contract.events import PipelineRecord

CHOICES: Final = (1, 2, 3, 4, 5)
"""The last one is refused."""
REFUSED: Final = ("is not possible now", "is too much")
"""What a rescale is told that changes nothing."""


class Partition(Protocol):
    operations: Operations


class Around(Protocol):
    @property
    def records(self) -> Sequence[PipelineRecord]: ...

    def alive(self, uid: str) -> Sequence[Driver]: ...

    def hosts_of(self, uid: str) -> Partition: ...


def check_sizes(world: Around, report: Callable[[str, str], None]) -> None:
    """Check all pipelines when nothing happens any more."""
    for uid, record in {each.pipeline_uid: each for each in world.records}.items():
        wanted = _wanted(uid, world.hosts_of(uid).operations)
        has = record.rescaled.parallelism if record.rescaled is not None else LIMITS.usual
        if has not in wanted:
            report("I17", f"{record.name} is to have {has} cores, {wanted} were asked for")
        newest = max(world.alive(uid), key=lambda driver: driver.epoch, default=None)
        if record.wants_run and newest is not None and newest.cores not in wanted:
            report("I17", f"{newest} has {newest.cores} cores, {wanted} were asked for")


def _wanted(uid: str, operations: Operations) -> set[int]:
    """Return the sizes of which one must be in force. A rescale that was refused has no effect; one
    that fails for another reason may be recorded all the same: the next run has that size.
    """
    wanted = {LIMITS.usual}
    for command in operations.commands:
        if command.pipeline_uid != uid or not isinstance(command.body, Rescale):
            continue
        state, errors = operations.replies.get(command.id, ("", ()))
        if state == "done":
            wanted = {command.body.parallelism}
        elif not any(said in error.message for error in errors for said in REFUSED):
            wanted.add(command.body.parallelism)
    return wanted
