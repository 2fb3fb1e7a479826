"""How many records may still die. Never reads the clock: a new start has a new budget.

If more records of a batch die than the budget has left, the stage stops. Before that it does the
part of the batch in which no more die than it may put aside, so that each start makes progress. A
batch that must stay whole has no such part.
"""

from collections import deque
from collections.abc import Collection

from waybill_shared.contract.words import StopReason
from waybill_spark.tracking.pieces import Ranges, before
from waybill_spark.tracking.stopping import StageStopped

Record = tuple[str, int, int]
"""Topic, partition and offset of a record."""


class BudgetExceeded(StageStopped):
    """Error: more records of a batch would die than the budget has left. `too_many` is the first of
    them for which nothing is left; None: nothing is left at all.
    """

    def __init__(self, detail: str, hint: str, too_many: Record | None) -> None:
        super().__init__(StopReason.DEAD_LETTER_BUDGET, detail, hint)
        self.too_many = too_many

    def part_of(self, ranges: Ranges) -> Ranges:
        """Return the beginning of a batch that the budget is enough for; it may be empty."""
        return () if self.too_many is None else before(ranges, self.too_many)

    def of_whole(self) -> "BudgetExceeded":
        """Return the error for a batch that must stay whole."""
        hint = (
            "a batch that replaces all rows of a sink, or that `once` reads, is not done in parts:"
            " mend the producer or the manifest, or raise deadLetter.budget"
        )
        return BudgetExceeded(self.detail, hint, None)


class Budget:
    """At most `records` within any `window_ms`."""

    def __init__(self, records: int, window_ms: int) -> None:
        self.records = records
        self.window_ms = window_ms
        self.spent = 0
        """In all, since the start."""
        self._spent: deque[tuple[int, int]] = deque()

    def remaining(self, now_ms: int) -> int:
        while self._spent and self._spent[0][0] <= now_ms - self.window_ms:
            self._spent.popleft()
        return self.records - sum(count for _, count in self._spent)

    def find_too_many(self, records: Collection[Record], now_ms: int) -> Record | None:
        """Return the first record, in the order in which ranges are read, for which nothing is
        left; None if nothing is left at all.
        """
        left = self.remaining(now_ms)
        return sorted(records)[left] if left > 0 else None

    def spend(self, count: int, now_ms: int) -> None:
        self.spent += count
        self._spent.append((now_ms, count))
