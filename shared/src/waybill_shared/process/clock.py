"""The only module that reads the wall clock. It also has the clock for waiting."""

import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since the epoch."""

    def now_ms(self) -> int: ...


class Clocks(Clock, Protocol):
    def monotonic_ms(self) -> int:
        """Return milliseconds since some moment.

        The value never decreases, whatever is done to the wall clock.
        """


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
