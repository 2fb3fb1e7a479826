"""The sinks that decide a judgement."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from waybill_shared.contract.topology import Topology
from waybill_shared.contract.words import LossReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisive:
    """The sinks that decide a judgement, by their keys, and what is known of them.

    `reported`: removed sinks with losses that are still reported. `over`: which sinks get nothing
    more, and why. `covered`: True if all have passed the spans. `dead_missing`: the stages with
    dead letters that are missing. `names`: of the sinks, if they are asked for by name.
    """

    keys: list[str]
    over: list[tuple[LossReason, list[str]]]
    covered: bool
    dead_missing: frozenset[str]
    reported: Sequence[str] = ()
    names: frozenset[str] = frozenset()

    def misses_dead_letters(self, removed: Topology) -> bool:
        """Return True if dead letters are missing that may concern the share. No sink moves while
        some are missing. So sinks that have passed the share did so with all its dead letters.
        Stages that were `removed` since do not stop sinks from moving."""
        if self.covered:
            return not self.dead_missing.isdisjoint(removed.by_stage)
        return bool(self.dead_missing)


def find_over(
    keys: Iterable[str], topology: Topology, *, ended: LossReason | None
) -> list[tuple[LossReason, list[str]]]:
    """Return which of these sinks get nothing more, and why: those that the present `topology` has
    not, and all others if the pipeline has `ended`."""
    there: list[str] = []
    removed: list[str] = []
    for key in keys:
        (there if key in topology.by_key else removed).append(key)
    over = [(LossReason.SINK_REMOVED, removed)]
    return over if ended is None else [*over, (ended, there)]
