"""The event that time has passed. `now` of a decision says until when."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    pass
