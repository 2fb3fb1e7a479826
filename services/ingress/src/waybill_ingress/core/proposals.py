"""Proposes the columns of an input from records in its topic.

The proposal can be parsed, and it accepts every record that it was made from. It shows only names
and types, no value of a record. Never reads Kafka.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple, TypeGuard

from waybill_shared.contract.errors import Problem, Refusal, UserError
from waybill_shared.contract.manifest.checks import own_topic_problem
from waybill_shared.contract.manifest.columns import DEPTH_MAX, quoted
from waybill_shared.contract.manifest.fields import IN_WORDS, TOPIC_PATTERN
from waybill_shared.contract.manifest.formats import SCHEMA_CHARACTERS_MAX
from waybill_shared.contract.manifest.values import SIMPLE
from waybill_shared.contract.problems import Slug

RECORDS_MAX: Final = 100  # that are looked at
OFFSETS_PER_RECORD: Final = 4  # transaction markers and compaction leave offsets without a record
FIELDS_MAX: Final = 100  # of a nested object; one with more uses data as its keys
NAME_CHARACTERS_MAX: Final = 128
SHOWN_CHARACTERS_MAX: Final = 60  # of a name
NOTES_MAX: Final = 50
TEXT: Final = "STRING"
TYPES: Final = {
    "true or false": ("BOOLEAN",),
    "numbers": ("BIGINT", "DOUBLE"),
    "texts": ("DATE", "TIMESTAMP"),
    "objects": (),
    "lists": (),
}
"""The types that are tried before a text, by kind of value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """The proposal. `records` is how many the columns come from; `notes` say what to look at."""

    records: int
    schema: str
    notes: tuple[str, ...]


class Window(NamedTuple):
    """A range of offsets of a partition, and how many of its newest records are wanted."""

    start: int
    end: int
    records: int


def check_topic(topic: str, prefix: str) -> None:
    """Raise UserError for a name that cannot be the topic of an input."""
    problem = own_topic_problem(topic, prefix)
    if not re.fullmatch(TOPIC_PATTERN, topic):
        message = f"{topic[:SHOWN_CHARACTERS_MAX]!r} cannot be the name of a topic"
        problem = Problem(message=message, hint=IN_WORDS[TOPIC_PATTERN])
    if problem is not None:
        named = Problem(path="topic", message=problem.message, hint=problem.hint)
        raise UserError([named])


def windows(starts: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, Window]:
    """Return where the newest records are: equally many of each partition, more if others have
    fewer.
    """
    sizes = {at: end - starts[at] for at, end in ends.items() if end > starts[at]}
    found, left = {}, RECORDS_MAX
    for done, at in enumerate(sorted(sizes, key=lambda at: (sizes[at], at))):
        records = min(sizes[at], left // (len(sizes) - done))
        left -= records
        if records > 0:
            start = max(starts[at], ends[at] - OFFSETS_PER_RECORD * records)
            found[at] = Window(start=start, end=ends[at], records=records)
    return found


def propose(topic: str, values: Sequence[bytes | None]) -> Proposed:
    """Return columns for the values of these records. Raises Refusal if no value is a JSON
    object.
    """
    rows = [row for row in map(_object, values) if row is not None]
    if not rows:
        raise _nothing(topic, len(values))
    reader = _Reader()
    columns = reader.columns(rows)
    if not columns:
        raise Refusal(
            Slug.NOTHING_TO_PROPOSE, f"the newest records of {topic} have no field for a column"
        )
    notes = reader.notes
    if others := len(values) - len(rows):
        others_are = "1 record is" if others == 1 else f"{others} records are"
        notes.insert(0, f"{others_are} no JSON object: a stage stops at such a record")
    more = [f"and {len(notes) - NOTES_MAX} more notes"] if len(notes) > NOTES_MAX else []
    return Proposed(records=len(rows), schema=", ".join(columns), notes=(*notes[:NOTES_MAX], *more))


def _nothing(topic: str, looked_at: int) -> Refusal:
    if not looked_at:
        message = f"the newest offsets of topic {topic} hold no committed record"
        hint = "send some records first, or write the columns yourself"
    else:
        message = f"none of the newest {looked_at} records of {topic} is a JSON object"
        hint = "an input reads JSON objects only: another topic or another format is needed"
    return Refusal(Slug.NOTHING_TO_PROPOSE, message, hint=hint)


def _object(value: bytes | None) -> dict[str, object] | None:
    try:
        row = json.loads((value or b"").decode(), parse_float=Decimal, parse_constant=_refuse)
    except (ValueError, ArithmeticError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


class _Reader:
    """A reader of types, which notes what a person should look at."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def columns(self, rows: Sequence[dict[str, object]]) -> list[str]:
        columns: list[str] = []
        left = SCHEMA_CHARACTERS_MAX
        fields = self._fields(rows, "", depth=0)
        for name, type_ in fields:
            left -= len(name) + len(type_) + len("``  ,")
            if left < 0:
                over = len(fields) - len(columns)
                self.notes.append(f"the last {over} columns are left out: they are too many")
                break
            columns.append(f"{quoted(name)} {type_}")
        return columns

    def _fields(
        self, rows: Sequence[dict[str, object]], path: str, *, depth: int
    ) -> list[tuple[str, str]]:
        fields: list[tuple[str, str]] = []
        used: dict[str, str] = {}
        for name, values in _by_name(rows).items():
            place = path + (name if len(name) <= SHOWN_CHARACTERS_MAX else _shown(name))
            if reason := _unfit(name, used):
                self.notes.append(f"{path}{_shown(name)} is left out: {reason}")
            elif (type_ := self._type(values, place, depth)) is not None:
                used[name.lower()] = name  # SQL ignores case
                fields.append((name, type_))
        return fields

    def _type(self, values: Sequence[object], place: str, depth: int) -> str | None:
        """Return a type that accepts all values. If there is none, add a note and return None."""
        there = [value for value in values if value is not None]
        kinds = {_kind(value) for value in there}
        if len(kinds) == 1 and depth < DEPTH_MAX:
            if _all_objects(there):
                return self._struct(there, place, depth)
            if _all_lists(there):
                return self._array(there, place, depth)
        tried = TYPES[next(iter(kinds))] if len(kinds) == 1 else ()
        found = next((type_ for type_ in tried if _takes(type_, there)), None)
        return found or self._text(there, kinds, place)

    def _struct(self, objects: Sequence[dict[str, object]], place: str, depth: int) -> str | None:
        names = {name for each in objects for name in each}
        if len(names) > FIELDS_MAX:
            self.notes.append(
                f"{place}: STRING, for its objects have {len(names)} different names;"
                " MAP<STRING,T> takes them if all values are of one type T"
            )
            return TEXT
        fields = self._fields(objects, f"{place}.", depth=depth + 1)
        if not fields:
            self.notes.append(f"{place}: STRING, for its objects have no field for a column")
            return TEXT
        return f"STRUCT<{', '.join(f'{quoted(name)}: {type_}' for name, type_ in fields)}>"

    def _array(self, lists: Sequence[list[object]], place: str, depth: int) -> str | None:
        element = self._type([item for each in lists for item in each], f"{place}[]", depth + 1)
        return None if element is None else f"ARRAY<{element}>"

    def _text(self, there: Sequence[object], kinds: set[str], place: str) -> str | None:
        if not _takes(TEXT, there):
            self.notes.append(f"{place} is left out: it has half of a surrogate pair")
            return None
        if not there:
            self.notes.append(f"{place}: STRING, for no record has a value of it")
        elif len(kinds) > 1:
            mixed = " and ".join(sorted(kinds))
            self.notes.append(f"{place}: STRING, for it has {mixed}; each is kept as text")
        elif kinds == {"numbers"}:
            self.notes.append(f"{place}: STRING, for it has numbers too large for DOUBLE")
        elif kinds != {"texts"}:
            self.notes.append(f"{place}: STRING, for types nest no deeper than {DEPTH_MAX}")
        return TEXT


def _by_name(rows: Sequence[dict[str, object]]) -> dict[str, list[object]]:
    """Return all values of each field, in the order in which the fields were first seen."""
    values: dict[str, list[object]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    return values


def _unfit(name: str, used: Mapping[str, str]) -> str | None:
    if not name.strip() or "`" in name or not name.isprintable():
        return "the name cannot be that of a column"
    if len(name) > NAME_CHARACTERS_MAX:
        return f"the name is longer than {NAME_CHARACTERS_MAX} characters"
    other = used.get(name.lower())
    return (
        None if other is None else f"its name is that of {other}, apart from upper and lower case"
    )


def _kind(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case str():
            return "texts"
        case dict():
            return "objects"
        case list():
            return "lists"
        case _:
            return "numbers"


def _takes(type_: str, values: Sequence[object]) -> bool:
    return all(SIMPLE[type_](value) is None for value in values)


def _all_objects(values: Sequence[object]) -> TypeGuard[Sequence[dict[str, object]]]:
    return all(isinstance(value, dict) for value in values)


def _all_lists(values: Sequence[object]) -> TypeGuard[Sequence[list[object]]]:
    return all(isinstance(value, list) for value in values)


def _shown(name: str) -> str:
    return ascii(name[:SHOWN_CHARACTERS_MAX])
