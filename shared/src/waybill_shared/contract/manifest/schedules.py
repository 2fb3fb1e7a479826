"""When a pipeline that ends by itself runs again: what a manifest says of it, and the times that
follow.

A cron line has the times of its time zone, as Debian's cron has them: a time in the hour that a
change of the clock skips comes right after it, and a time in the doubled hour comes once. Lines
that begin with `*` in the minute or the hour follow the time that really passes. `every` does so
too.

Times are milliseconds since the epoch. Nothing here reads a clock.
"""

import re
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from typing import Final, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError
from pydantic import ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from waybill_shared.contract.manifest.fields import Strict
from waybill_shared.contract.manifest.maintenance import AGE_MS
from waybill_shared.contract.manifest.triggers import MS_PER_UNIT
from waybill_shared.contract.suggestions import nearest

EVERY: Final = re.compile(r"([1-9]\d{0,5}) ?(second|minute|hour|day)s?")
EVERY_MS: Final = {**MS_PER_UNIT, **AGE_MS}
EVERY_MS_MIN: Final = 10_000  # a driver starts and ends in some seconds, even if nothing is to read
CRON: Final = re.compile(r"[0-9A-Za-z*,/#-]+(?: +[0-9A-Za-z*,/#-]+){4}")
AN_EXAMPLE: Final = "for example `0 3 * * *`: every day at three o'clock"
YEARS: Final = range(2000, 2200)  # of what begins or ends a schedule

Concurrency = Literal["forbid", "replace"]


class ScheduleSettings(Strict):
    """The schedule of a pipeline: `cron` or `every`, and between which times it counts."""

    cron: str | None = None
    every: str | None = None
    timezone: str = "UTC"
    start_on: str | None = None
    end_on: str | None = None
    concurrency: Concurrency = "forbid"

    def first(self, now: int) -> int | None:
        """Return the first time of a schedule that begins `now`; None if it has none.

        Without `startOn`, the first time of `every` is now.
        """
        return self.next_after(now - 1, now)

    def next_after(self, now: int, since: int) -> int | None:
        """Return the first time after `now`; None if there is none.

        `since`: an earlier time, from which `every` is counted if there is no `startOn`.
        """
        start, end = self._moments
        if self.cron is None:
            found: int | None = _next_of_grid(now, since if start is None else start, self.every_ms)
        else:
            found = _next_of_line(
                self.cron, self._zone, now if start is None else max(now, start - 1)
            )
        return None if found is None or (end is not None and found > end) else found

    def describe(self) -> str:
        """Return the schedule in words, for the list of what a change does."""
        said = self.model_dump(by_alias=True, exclude_defaults=True)
        return ", ".join(f"{key} {value}" for key, value in said.items())

    @property
    def every_ms(self) -> int:
        found = EVERY.fullmatch(self.every or "")
        assert found is not None
        return int(found[1]) * EVERY_MS[found[2]]

    @cached_property
    def _moments(self) -> tuple[int | None, int | None]:
        """The times at which it begins and ends."""
        start, end = (
            None if text is None else _moment(text, self._zone)
            for text in (self.start_on, self.end_on)
        )
        return start, end

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    @field_validator("timezone")
    @classmethod
    def _is_a_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            close = nearest(name, sorted(available_timezones()))
            hint = f"did you mean {close!r}?" if close else "for example Europe/Berlin"
            raise _refusal(f"no time zone is called {name!r}", hint) from error
        return name

    @field_validator("every")
    @classmethod
    def _is_long_enough(cls, text: str | None) -> str | None:
        if text is None:
            return None
        found = EVERY.fullmatch(text)
        if found is None:
            message = f"{text!r} is not a time in seconds, minutes, hours or days"
            raise _refusal(message, "for example every: 15 minutes")
        if int(found[1]) * EVERY_MS[found[2]] < EVERY_MS_MIN:
            message = f"every {text} is too often: {EVERY_MS_MIN // 1000} seconds are the least"
            hint = "write every: 10 seconds, or take trigger: {processingTime: …} and no schedule"
            raise _refusal(message, hint)
        return text

    @field_validator("cron")
    @classmethod
    def _is_a_line(cls, line: str | None) -> str | None:
        if line is None:
            return None
        if CRON.fullmatch(line) is None:
            message = f"{line!r} is no cron line of five fields"
            raise _refusal(message, f"minute, hour, day, month, weekday; {AN_EXAMPLE}")
        try:
            found = _next_of_line(line, UTC, 0)
        except CronSimError as error:
            message = f"{line!r} never comes: {str(error).lower()}"
            raise _refusal(message, AN_EXAMPLE) from error
        if found is None:
            raise _refusal(f"{line!r} never comes", AN_EXAMPLE)
        return line

    @field_validator("start_on", "end_on")
    @classmethod
    def _is_a_moment(cls, text: str | None, info: ValidationInfo) -> str | None:
        if text is None:
            return None
        try:
            known = datetime.fromisoformat(text).year in YEARS
        except ValueError:
            known = False
        if not known:
            key = "startOn" if info.field_name == "start_on" else "endOn"
            message = f"{text!r} is not a date or a time"
            raise _refusal(message, f'for example {key}: "2026-12-01T03:00:00Z"')
        return text

    @model_validator(mode="after")
    def _has_times(self) -> Self:
        if self.cron is not None and self.every is not None:
            raise _refusal("a schedule has cron or every, not both", "keep one of them")
        if self.cron is None and self.every is None:
            hint = "for example schedule: {cron: 0 3 * * *, timezone: Europe/Berlin}"
            raise _refusal("a schedule needs cron or every", hint)
        start, end = self._moments
        if start is not None and end is not None and end < start:
            message = f"endOn {self.end_on} is before startOn {self.start_on}"
            raise _refusal(message, "write a later endOn, or leave it out")
        if start is not None and self.first(start) is None:
            message = f"no time of {self.cron!r} lies between startOn and endOn"
            raise _refusal(message, "write a later endOn, or leave it out")
        return self


def _next_of_grid(now: int, since: int, every_ms: int) -> int:
    """Return the first time after `now` that lies a number of intervals after `since`."""
    return since if now < since else since + ((now - since) // every_ms + 1) * every_ms


def _next_of_line(line: str, zone: tzinfo, now: int) -> int | None:
    """Return the first time of a cron line after `now`.

    In the doubled hour, what the line gives may be before `now`: its first pass is over.
    """
    times = CronSim(line, datetime.fromtimestamp(now / 1000, tz=zone))
    moments = (round(each.timestamp() * 1000) for each in times)
    return next((ms for ms in moments if ms > now), None)


def _moment(text: str, zone: ZoneInfo) -> int:
    """Return the moment that a text names. Without an offset it is in the time zone."""
    found = datetime.fromisoformat(text)
    return round((found if found.tzinfo else found.replace(tzinfo=zone)).timestamp() * 1000)


def _refusal(message: str, hint: str) -> PydanticCustomError:
    return PydanticCustomError("property", "{message}", {"message": message, "hint": hint})
