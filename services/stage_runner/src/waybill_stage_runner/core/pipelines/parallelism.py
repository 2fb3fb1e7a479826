"""Decides how many tasks of a pipeline run at once. Never does I/O.

The operator says how many cores the driver of a pipeline has, and how many it may have. A manifest
may say another number, `parallelism`. A rescale says yet another one: it counts until a manifest
changes its own. A run keeps the number with which it began: another number needs another driver.
"""

from dataclasses import dataclass, replace
from typing import Final

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.rescales import Rescaled

PATH = "parallelism"  # in a manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreLimits:
    """Cores of one driver: what it has if nobody says more, and the most that it may have."""

    usual: int = 2
    most: int = 2

    def allow(self, wanted: int | None) -> int:
        """Return the cores of a driver. The operator may have lowered the limit since."""
        return min(wanted or self.usual, self.most)

    def problem_of(self, wanted: int | None) -> Problem | None:
        """Return what is wrong with a number that somebody asks for."""
        if wanted is None or wanted <= self.most:
            return None
        message = f"{wanted} is too much: the operator allows at most {self.most} tasks at once"
        hint = f"take {self.most} or less; WAYBILL_STAGE_RUNNER_PARALLELISM_MAX is the limit"
        return Problem(message=message, hint=hint, path=PATH)


AS_USUAL: Final = CoreLimits()


def parallelism_of(record: PipelineRecord) -> int | None:
    """Return the number that somebody asks for; None if nobody does."""
    return record.rescaled.parallelism if record.rescaled else parallelism_in(record.manifest)


def parallelism_in(manifest: AppliedManifest) -> int | None:
    """Return the number in a manifest; None also if this version cannot read it any more."""
    try:
        return manifest.model.parallelism
    except UserError:
        return None


def excess_of(manifest: AppliedManifest, limits: CoreLimits) -> tuple[Problem, ...]:
    """Return what is wrong with the number of a manifest, with its place."""
    problem = limits.problem_of(parallelism_in(manifest))
    return () if problem is None else manifest.place([problem])


def refuse_excess(wanted: int, limits: CoreLimits) -> None:
    """Raise UserError for a number that the operator does not allow."""
    problem = limits.problem_of(wanted)
    if problem is not None:
        raise UserError([problem])


def rescale_record(before: PipelineRecord, wanted: int, actor: str, now: int) -> PipelineRecord:
    """Return the record after a rescale. The definition stays, and so does the generation."""
    return replace(before, rescaled=Rescaled(parallelism=wanted, actor=actor), updated_at=now)


def rescale_to_keep(before: PipelineRecord, manifest: AppliedManifest) -> Rescaled | None:
    """Return the rescale that still counts after `apply`: none if its manifest changes the
    number.
    """
    changes = parallelism_in(manifest) != parallelism_in(before.manifest)
    return None if changes else before.rescaled
