"""Finds the records that make a larger reading fail. Never does I/O itself."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final

from waybill_shared.contract.errors import ContractError, Retryable
from waybill_shared.contract.events import Range
from waybill_spark.tracking.dead_letters.records import NOTHING, DeadCause, Without, merge_positions
from waybill_spark.tracking.pieces import Ranges, in_steps, offsets

Trial = Callable[[Ranges, Without], DeadCause | None]
"""Returns why these records fail, without those that are left out; None if they pass."""
Attempt = Callable[[Ranges], DeadCause | None]
"""The same with a fixed choice of the records that are left out."""
Found = Iterator[tuple[Range, DeadCause]]
"""Records that fail, each as a range of one offset."""
Alone = Callable[[Ranges, Without], Found | None]
"""Returns those of these records that fail alone, without those that are left out; None if nobody
can find them at once. It may miss some."""

FEW: Final = 4  # so many are tried one by one: if one fails, halves cost as many trials


class NoRecordAtFault(ContractError):
    """Error: a batch fails, and none of its records is the cause. If it fails each time, its stage
    is stopped.
    """


def find_culprits(
    ranges: Ranges, cause: DeadCause, trial: Trial, quick: Trial, alone: Alone
) -> Found:
    """Yield each record that fails; `ranges` have failed with `cause`.

    `alone` and `quick` find records that fail alone. They may miss some, because only `trial`
    decides that the rest passes. Of records that fail only together, as two of one key, the last
    one is yielded. Raise Retryable if they pass when they are tried again, and NoRecordAtFault if
    what is left fails without them.
    """
    known = NOTHING
    why: DeadCause | None = cause
    while why is not None:
        found = known
        single = _find_single(ranges, why, known, quick, alone)
        for run, reason in _or_last(single, ranges, why, partial(_without, known, trial)):
            yield run, reason
            found = merge_positions(found, {(run.topic, run.partition): frozenset([run.start])})
        if found == known:
            raise NoRecordAtFault(f"it fails without any of its records: {why.message}")
        known = found
        why = trial(ranges, known)


def _without(known: Without, trial: Trial, ranges: Ranges) -> DeadCause | None:
    return trial(ranges, known)


def _or_last(alone: Found, ranges: Ranges, cause: DeadCause, attempt: Attempt) -> Found:
    """Yield those that fail alone. If there are none, yield one that fails with others."""
    first = next(alone, None)
    if first is None:
        yield _find_last(ranges, cause, attempt)
    else:
        yield from chain([first], alone)


def _find_single(
    ranges: Ranges, cause: DeadCause, known: Without, quick: Trial, alone: Alone
) -> Found:
    """Yield those that fail without any other."""
    count = offsets(ranges)
    if count == 1:
        yield ranges[0], cause
        return
    at_once = alone(ranges, known)
    if at_once is not None:
        yield from at_once
        return
    for part in in_steps(ranges, 1 if count <= FEW else (count + 1) // 2):
        why = quick(part, known)
        if why is not None:
            yield from _find_single(part, why, known, quick, alone)


def _find_last(ranges: Ranges, cause: DeadCause, attempt: Attempt) -> tuple[Range, DeadCause]:
    """Return the last record of the shortest beginning that fails."""
    why = attempt(ranges)
    if why is None:
        raise Retryable(f"it failed once, and passes when it is tried again: {cause.message}")
    least, most = 1, offsets(ranges)
    while least < most:
        middle = (least + most) // 2
        again = attempt(in_steps(ranges, middle)[0])
        if again is None:
            least = middle + 1
        else:
            most, why = middle, again
    last = in_steps(ranges, most)[0][-1]
    return replace(last, start=last.end - 1), why
