"""Reads what a person writes of where to begin: `earliest`, `latest`, a time, or offsets."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from waybill_shared.contract.commands import BEGINNINGS, Beginning, InputOffset

_OFFSET: Final = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]+)\[(?P<partition>\d{1,9})\]=(?P<at>\d{1,18})"
)
FORMS: Final = (
    "earliest, latest, a time with its zone such as 2026-11-01T00:00:00Z,"
    " or offsets such as orders.in[0]=120,orders.in[1]=80"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """One of these: a word, a time in milliseconds, or offsets."""

    word: Beginning | None = None
    at: int | None = None
    offsets: tuple[InputOffset, ...] = ()


def read_beginning(text: str) -> Begin:
    """Return what `text` says. Raise ValueError if it is none of the forms."""
    for word in BEGINNINGS:
        if text == word:
            return Begin(word=word)
    found = [_OFFSET.fullmatch(part.strip()) for part in text.split(",")]
    if all(found):
        offsets = tuple(
            InputOffset(
                topic=each["topic"], partition=int(each["partition"]), offset=int(each["at"])
            )
            for each in found
            if each is not None
        )
        if len({(each.topic, each.partition) for each in offsets}) < len(offsets):
            raise ValueError(f"a partition is named twice in {text!r}")
        return Begin(offsets=offsets)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:100]!r} is none of: {FORMS}") from None
    if moment.tzinfo is None:
        raise ValueError(f"{text} has no zone: write {text}Z for UTC")
    return Begin(at=int(moment.timestamp() * 1000))
