"""When a stage starts its next batch, and if it ends by itself: the triggers that there are, and
how a manifest writes one.

An interval never ends. `availableNow` reads in batches what its inputs contained when the stage
began; `once` reads the same in one batch of any size, so that an Iceberg table gets one snapshot.
Both are Spark's trigger `availableNow`, which also runs the unfinished batch of an earlier run
first; for `once` its source has no bound. Spark's own `Trigger.Once` is not used (ADR 93).
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, Self, assert_never

from pydantic import ConfigDict, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

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
    """The trigger of a stage as a manifest writes it: exactly one of these keys."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    processing_time: str | None = None
    available_now: Literal[True] | None = None
    once: Literal[True] | None = None

    @property
    def trigger(self) -> Trigger:
        if self.once:
            return Once()
        if self.processing_time is None:
            return AvailableNow()
        found = DURATION.fullmatch(self.processing_time)
        assert found is not None
        return Interval(int(found[1]) * MS_PER_UNIT[found[2]])

    @field_validator("processing_time")
    @classmethod
    def _is_a_duration(cls, text: str | None) -> str | None:
        if text is not None and DURATION.fullmatch(text) is None:
            units = "milliseconds, seconds or minutes"
            raise ValueError(f"{text!r} is not a duration in {units}, such as `5 seconds`")
        return text

    @field_validator("available_now", "once", mode="before")
    @classmethod
    def _is_true(cls, value: object, info: ValidationInfo) -> object:
        if value is not True:
            key = "availableNow" if info.field_name == "available_now" else "once"
            raise _refusal(f"{key} is true or left out", f"write {key}: true, or {WITHOUT_END}")
        return value

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = [*self.model_dump(by_alias=True, exclude_none=True)]
        if len(given) > 1:
            message = f"a stage has one trigger, and these are {len(given)}: {', '.join(given)}"
            raise _refusal(message, f"keep {given[-1]}, which ends by itself, or {WITHOUT_END}")
        if not given:
            message = "a trigger is processingTime, availableNow or once"
            raise _refusal(message, "for example trigger: {processingTime: 5 seconds}")
        return self


WITHOUT_END: Final = "processingTime for a stage that never ends"


def ends(trigger: Trigger) -> bool:
    """Return True if a stage with that trigger ends by itself."""
    return not isinstance(trigger, Interval)


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


def _refusal(message: str, hint: str) -> PydanticCustomError:
    return PydanticCustomError("property", "{message}", {"message": message, "hint": hint})
