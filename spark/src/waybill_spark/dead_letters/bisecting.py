"""Finds the records that make a larger reading fail. Never does I/O itself."""

from collections.abc import Callable, Iterator

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Range
from waybill_spark.dead_letters.records import Death
from waybill_spark.pieces import Ranges, in_steps, offsets

Trial = Callable[[Ranges], Death | None]
"""Why these records fail; None if they pass."""


def culprits(ranges: Ranges, death: Death, trial: Trial) -> Iterator[tuple[Range, Death]]:
    """Each as a range of one offset; `ranges` have failed with `death`.

    Retryable if they pass once they are tried in parts: then no record is at fault.
    """
    count = offsets(ranges)
    if count == 1:
        yield ranges[0], death
        return
    halves = in_steps(ranges, (count + 1) // 2)
    found = [(half, trial(half)) for half in halves]
    failed = [(half, why) for half, why in found if why is not None]
    if not failed:
        raise Retryable(f"it failed once, and passes in two halves: {death.message}")
    for half, why in failed:
        yield from culprits(half, why, trial)
