"""How many records may still die. Never reads the clock: a new start has a new budget."""

from collections import deque


class Budget:
    """At most `records` within any `window_ms`."""

    def __init__(self, records: int, window_ms: int) -> None:
        self.records = records
        self.window_ms = window_ms
        self._spent: deque[tuple[int, int]] = deque()

    def remaining(self, now_ms: int) -> int:
        while self._spent and self._spent[0][0] <= now_ms - self.window_ms:
            self._spent.popleft()
        return self.records - sum(count for _, count in self._spent)

    def spend(self, count: int, now_ms: int) -> None:
        self._spent.append((now_ms, count))
