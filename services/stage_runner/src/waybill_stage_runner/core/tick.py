"""The event that time has passed. `now` of a decision says until when.

`at` is the time for people, in milliseconds since the epoch. Only schedules go by it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    at: int = 0
