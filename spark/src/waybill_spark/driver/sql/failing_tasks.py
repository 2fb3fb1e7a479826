"""Finds the records that fail, by what became of the tasks of a job. Never runs a job itself.

Each record has one task or several. A job of many tasks ends with the first one that fails, so it
finds a record where few are bad. Such a record is tried alone, as a proof. Where nearly all are
bad, the job of many is in vain: so after one in which the very first record was bad, the next
record is tried alone at once, until one passes. A job that passes is followed by a larger one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from waybill_spark.tracking.dead_letters.records import QueryFailed

TryTogether = Callable[[Sequence[int]], tuple[set[int], set[int]]]
"""Runs tasks as one job. Returns those that have passed, and those that have failed; nothing is
known of the rest."""
TryAlone = Callable[[int], QueryFailed | None]
"""Runs the tasks of one record. Returns why they fail."""
AT_FIRST: Final = 16  # tasks of a job; Spark makes all of them, also if the first one ends it


def find_failing_records(
    tasks: Sequence[int], records: int, try_together: TryTogether, try_alone: TryAlone
) -> Iterator[tuple[int, QueryFailed, int]]:
    """Yield the records that fail alone, each with its error and how many are left to try.

    `tasks`: those to try. Record n has the tasks n, n + `records`, and so on.
    """
    left, first_was_bad, most = list(tasks), False, AT_FIRST
    while left:
        first = left[0]
        passed, failed = (set[int](), {first}) if first_was_bad else try_together(left[:most])
        if not (passed or failed):
            return  # Spark's status has lost the tasks
        most = AT_FIRST if failed else 2 * most
        tried, first_was_bad = {task % records for task in failed}, False
        for number in sorted(tried):
            why = try_alone(number)
            if why is not None:
                first_was_bad |= number == first % records
                yield number, why, len({task % records for task in left})
        left = [task for task in left if task not in passed and task % records not in tried]
