"""When a stage starts its next batch: the triggers that there are, and how a manifest writes one.

A manifest may say an interval. The other members are in the union so that all who match on it are
found by mypy when a manifest may say them too.
"""

import re
from dataclasses import dataclass
from typing import Final, assert_never

from pydantic import field_validator

from waybill_shared.contract.manifest.fields import Strict

DURATION: Final = re.compile(r"(\d+) ?(millisecond|second|minute)s?")
MS_PER_UNIT: Final = {"millisecond": 1, "second": 1_000, "minute": 60_000, "hour": 3_600_000}


@dataclass(frozen=True, slots=True)
class Interval:
    """A batch every `ms` milliseconds; 0: the next one starts when the last one has ended."""

    ms: int


@dataclass(frozen=True, slots=True)
class AvailableNow:
    """Batches until everything that was there at the start is read; then the stage ends."""


@dataclass(frozen=True, slots=True)
class Once:
    """One batch of everything that was there at the start; then the stage ends."""


Trigger = Interval | AvailableNow | Once


class TriggerSettings(Strict):
    """The trigger of a stage as a manifest writes it."""

    processing_time: str

    @property
    def interval(self) -> Interval:
        found = DURATION.fullmatch(self.processing_time)
        assert found is not None
        return Interval(int(found[1]) * MS_PER_UNIT[found[2]])

    @field_validator("processing_time")
    @classmethod
    def _is_a_duration(cls, text: str) -> str:
        if DURATION.fullmatch(text) is None:
            units = "milliseconds, seconds or minutes"
            raise ValueError(f"{text!r} is not a duration in {units}, such as `5 seconds`")
        return text


def describe(trigger: Trigger) -> str:
    """Return the trigger in words, for the list of what a change does."""
    match trigger:
        case Interval(ms):
            return f"{ms} ms"
        case AvailableNow():
            return "availableNow"
        case Once():
            return "once"
        case _:
            assert_never(trigger)
