"""What was found, told while it is found, and as a table in the end. Plain text, 120 columns."""

import textwrap
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

HEADER: Final = ("fault", "what really happened", "bare PySpark", "Waybill")
COLUMNS_MAX: Final = 120
WIDTHS: Final = (16, 28, 32, 38)  # and two blanks between them


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault; each cell is a few sentences. `wrong`: where Waybill fell short of the truth."""

    truth: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    waybill: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


class Story:
    """Prints a line as soon as something has happened, with the time since the beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def tell(self, who: str, text: str) -> None:
        begin = f"  {self.seconds:6.1f} s  {who:<8} "
        room = COLUMNS_MAX - len(begin)
        print(begin + textwrap.shorten(one_line(text), room, placeholder=" …"), flush=True)


def table(findings: Mapping[str, Finding]) -> list[str]:
    """By the name of the fault; a line under each row, because cells have several."""
    rule = "  ".join("-" * width for width in WIDTHS)
    lines = [*_row([[word] for word in HEADER]), rule]
    for fault, finding in findings.items():
        wrong = [f"WRONG: {text}" for text in finding.wrong]
        waybill = [*finding.waybill, *wrong]
        lines += [*_row([[fault], finding.truth, finding.bare, waybill]), rule]
    return lines


def records(expected: Sequence[int], what: str, found: Iterable[int | None]) -> str:
    """How many of the records that came are in a table, and how often."""
    times = Counter(found)
    present = [times[number] for number in expected if times[number]]
    again = [count for count in present if count > 1]
    facts = [f"has {len(present)} of {len(expected)} {what}"]
    if again:
        facts.append(f"{len(again)} of them {'twice' if max(again) == 2 else 'several times'}")
    elif present:
        facts.append("each once")
    if len(present) < len(expected):
        facts.append(f"{len(expected) - len(present)} missing")
    if times[None]:
        facts.append(f"and {times[None]} row{'s' * (times[None] > 1)} of nulls")
    return ", ".join(facts)


def unmet(demands: Mapping[str, bool]) -> tuple[str, ...]:
    """Those demands that are not true."""
    return tuple(f"not so: {demand}" for demand, true in demands.items() if not true)


def one_line(text: str) -> str:
    """Text from elsewhere, without line breaks and control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _row(cells: Sequence[Iterable[str]]) -> list[str]:
    wrapped = [
        [line for text in cell for line in textwrap.wrap(one_line(text), width)]
        for cell, width in zip(cells, WIDTHS, strict=True)
    ]
    return [
        "  ".join(text.ljust(width) for text, width in zip(line, WIDTHS, strict=True)).rstrip()
        for line in zip_longest(*wrapped, fillvalue="")
    ]
