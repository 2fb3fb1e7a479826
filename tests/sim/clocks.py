"""The true time, and what the machines take for it: a wall clock may be ahead, behind or set back.

What waits goes by the true time, as a monotonic clock does.
"""


class TrueClock:
    def __init__(self) -> None:
        self.now = 1_800_000_000_000

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now


class WallClock:
    def __init__(self, true: TrueClock) -> None:
        self._true = true
        self.ahead_ms = 0
        self.latest_ms = 0
        """The latest time that anybody has read here."""

    def now_ms(self) -> int:
        now = self._true.now + self.ahead_ms
        self.latest_ms = max(self.latest_ms, now)
        return now

    def monotonic_ms(self) -> int:
        return self._true.now


class Clocks:
    """One wall clock for each kind of process."""

    def __init__(self, true: TrueClock) -> None:
        self.runner = WallClock(true)
        self.driver = WallClock(true)
        self.tracker = WallClock(true)
        self.ingress = WallClock(true)
        self.status = WallClock(true)

    def each(self) -> tuple[WallClock, ...]:
        return (self.runner, self.driver, self.tracker, self.ingress, self.status)
