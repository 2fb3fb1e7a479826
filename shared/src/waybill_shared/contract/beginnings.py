"""Reads what a person writes of where to begin: a word, a time, a time ago, or offsets.

Never reads the clock: `Begin.since` is given the present time.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

Beginning = Literal["earliest", "latest"]
"""The first record that a topic still holds, and its present end."""
BEGINNINGS: Final[tuple[Beginning, ...]] = ("earliest", "latest")
_OFFSET: Final = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]+)\[(?P<partition>\d{1,9})\]=(?P<at>\d{1,18})"
)
_AGO: Final = re.compile(r"(\d{1,5}) (minute|hour|day|week)s? ago")
_MS_PER_UNIT: Final = {
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
TIMES: Final = (
    "earliest, latest, a time with its zone such as 2026-11-01T00:00:00Z, or a time ago such as"
    " 7 days ago (minutes, hours, days or weeks)"
)
FORMS: Final = f"{TIMES}; or offsets such as orders.in[0]=120,orders.in[1]=80"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOffset:
    """An offset in a topic that a stage reads."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """One of these: a word, a time, a time before the present one, or offsets. Times are in
    milliseconds.
    """

    word: Beginning | None = None
    at: int | None = None
    ago_ms: int | None = None
    offsets: tuple[InputOffset, ...] = ()

    def since(self, now: int) -> int | None:
        """Return the time at which to begin; None if it names none."""
        return self.at if self.ago_ms is None else max(0, now - self.ago_ms)


def read_beginning(text: str) -> Begin:
    """Return what `text` says. Raise ValueError if it is none of the forms."""
    found = [_OFFSET.fullmatch(part.strip()) for part in text.split(",")]
    if not all(found):
        return read_time(text, FORMS)
    offsets = tuple(
        InputOffset(topic=each["topic"], partition=int(each["partition"]), offset=int(each["at"]))
        for each in found
        if each is not None
    )
    if len({(each.topic, each.partition) for each in offsets}) < len(offsets):
        raise ValueError(f"a partition is named twice in {text!r}")
    return Begin(offsets=offsets)


def read_time(text: str, forms: str = TIMES) -> Begin:
    """Return what `text` says, which is not about offsets. Raise ValueError if it is none of the
    forms.
    """
    for word in BEGINNINGS:
        if text == word:
            return Begin(word=word)
    if (ago := _AGO.fullmatch(text)) is not None:
        return Begin(ago_ms=int(ago[1]) * _MS_PER_UNIT[ago[2]])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:100]!r} is none of: {forms}") from None
    if moment.tzinfo is None:
        raise ValueError(f"{text} has no zone: write {text}Z for UTC")
    return Begin(at=max(0, int(moment.timestamp() * 1000)))
