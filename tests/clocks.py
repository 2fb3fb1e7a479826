"""A clock that stays where a test has set it."""

from dataclasses import dataclass

NOW = 1_795_000_000_000


@dataclass
class FixedClock:
    now: int = NOW

    def now_ms(self) -> int:
        return self.now
