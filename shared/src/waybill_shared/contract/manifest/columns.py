"""Columns of an input: their text form, and which rows they take."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.values import (
    SIMPLE,
    JsonValue,
    ValueCheck,
    decimal,
    kind_of,
    take_binary,
)
from waybill_shared.contract.suggestions import nearest

DEPTH_MAX = 16
NUMBER_DIGITS_MAX = 4
COLUMN_HINT = "a column is a name, a space and a type, as in `amount DOUBLE`"
TYPES_HINT = (
    "types: BOOLEAN, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p,s), STRING, DATE, TIMESTAMP,"
    " ARRAY<T>, MAP<STRING,T>, STRUCT<name: T, …>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`type` is as Spark reads it; `required`: a record without a value is refused."""

    name: str
    type: str
    check: ValueCheck
    required: bool = False


def parse_columns(ddl: str, *, binary: bool = False) -> tuple[Column, ...]:
    """Parse the columns of `name TYPE, name TYPE, …`. Raise UserError with the place in the text if
    it has another form. `binary` is True for formats that have bytes; in JSON these are base64.
    """
    return ColumnParser(ddl, {**SIMPLE, "BINARY": take_binary} if binary else SIMPLE).columns()


def refusal(columns: tuple[Column, ...], row: JsonValue) -> str | None:
    """Return why `row` (floats parsed as Decimal) is not a record of these columns; None if it
    is.
    """
    if not isinstance(row, dict):
        return f"a record is a JSON object, this is {kind_of(row)}"
    for column in columns:
        value = row.get(column.name)
        reason = column.check(value) if value is not None else _absent(column, row)
        if reason is not None:
            return f"{column.name}: {reason}"
    return None


def unknown_field(columns: tuple[Column, ...], row: Mapping[str, JsonValue]) -> str | None:
    """Return a text about the first field of `row` that is no column, with the likely name; None if
    all are columns.
    """
    names = [column.name for column in columns]
    unknown = next((name for name in row if name not in names), None)
    if unknown is None:
        return None
    other_case = next((name for name in names if name.lower() == unknown.lower()), None)
    close = other_case or nearest(unknown, names)
    hint = f": did you mean {close!r}?" if close else f": columns are {', '.join(names):.200}"
    return f"field {unknown[:100]!r} is no column{hint}"


def _absent(column: Column, row: Mapping[str, JsonValue]) -> str | None:
    if not column.required:
        return None
    return f"is {'null' if column.name in row else 'missing'}, and the column is NOT NULL"


def _array(element: ValueCheck) -> ValueCheck:
    def check(value: JsonValue) -> str | None:
        if not isinstance(value, list):
            return f"ARRAY takes an array, this is {kind_of(value)}"
        reasons = (element(item) for item in value if item is not None)
        return next((reason for reason in reasons if reason), None)

    return check


def _map(element: ValueCheck) -> ValueCheck:
    def check(value: JsonValue) -> str | None:
        if not isinstance(value, dict):
            return f"MAP takes an object, this is {kind_of(value)}"
        reasons = (element(item) for item in value.values() if item is not None)
        return next((reason for reason in reasons if reason), None)

    return check


def _struct(columns: tuple[Column, ...]) -> ValueCheck:
    def check(value: JsonValue) -> str | None:
        if not isinstance(value, dict):
            return f"STRUCT takes an object, this is {kind_of(value)}"
        return refusal(columns, value)

    return check


OTHER_NAMES: Final = {
    "STRING": ("VARCHAR", "CHAR", "NVARCHAR", "TEXT", "STR", "UUID", "JSON", "ENUM"),
    "INT": ("SMALLINT", "TINYINT", "SHORT", "BYTE", "INT32"),
    "BIGINT": ("INT64", "SERIAL", "BIGSERIAL"),
    "DOUBLE": ("FLOAT64", "NUMBER"),
    "FLOAT": ("REAL", "FLOAT32"),
    "DECIMAL": ("NUMERIC", "DEC", "MONEY"),
    "BOOLEAN": ("BOOL", "BIT"),
    "TIMESTAMP": ("DATETIME", "TIMESTAMPTZ", "TIMESTAMP_NTZ", "TIME"),
    "ARRAY<T>": ("LIST",),
    "STRUCT<name: T, …>": ("OBJECT", "RECORD", "ROW"),
}
"""What others call our types."""
NESTED: Final = {"ARRAY": "ARRAY<INT>", "MAP": "MAP<STRING,INT>", "STRUCT": "STRUCT<name: INT>"}
PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
TYPES: Final = (*SIMPLE, "DECIMAL", *NESTED)


class Typed(NamedTuple):
    """A type as it was read: what it takes, its text, and how deep it nests."""

    check: ValueCheck
    text: str
    depth: int = 0


Fields = dict[str, Column]
"""By their names in small letters: SQL ignores case."""


def _type_hint(name: str) -> str:
    ours = next((ours for ours, others in OTHER_NAMES.items() if name in others), None)
    close = ours or nearest(name, TYPES)
    return f"did you mean {close}? {TYPES_HINT}" if close else TYPES_HINT


class ColumnParser:
    """Recursive descent over a column list; `at` is where the next word begins."""

    SKIPPED: ClassVar = re.compile(r"\s*", re.ASCII)
    WORD: ClassVar = re.compile(r"`[^`]+`|[A-Za-z_][A-Za-z0-9_]*|\d+|[(),:<>]", re.ASCII)

    def __init__(self, ddl: str, simple: Mapping[str, ValueCheck]) -> None:
        self.ddl = ddl
        self.simple = simple
        self.at = 0

    def columns(self) -> tuple[Column, ...]:
        columns = self._fields()
        if self._rest():
            raise self.error(f"expected a comma, found {self.found()}")
        return columns

    def _fields(self) -> tuple[Column, ...]:
        fields: Fields = {}
        while True:
            before = self.at
            name = self.name("a column name")
            typed = self.type()
            required = self.not_null()
            self.add(
                fields,
                before,
                Column(name=name, type=typed.text, check=typed.check, required=required),
            )
            if self.peek() != ",":
                return tuple(fields.values())
            self.expect(",")

    def add(self, fields: Fields, before: int, column: Column) -> None:
        """Add a column. `before` is the position of its name in the text."""
        if fields.setdefault(column.name.lower(), column) is not column:
            raise self.error(f"column {column.name!r} stands twice", at=before)

    def type(self, depth: int = 0) -> Typed:
        if depth > DEPTH_MAX:
            raise self.error(f"types nest deeper than {DEPTH_MAX}")
        before = self.at
        name = self.type_name(self.word("a type", COLUMN_HINT).upper(), before)
        if name in self.simple:
            return Typed(self.simple[name], name)
        if name == "DECIMAL":
            return self._decimal()
        if name not in NESTED:
            raise self.error(f"unknown type {name}", at=before, hint=_type_hint(name))
        self.expect("<", f"write {NESTED[name]}")
        typed = self._read_nested(name, depth + 1)
        self.expect(">")
        return typed

    def type_name(self, word: str, before: int) -> str:
        """Return our name of the type for `word`, which follows the position `before`."""
        return word

    def not_null(self, *, inside: bool = False) -> bool:
        before = self.at
        if (self.peek() or "").upper() != "NOT":
            return False
        self.word("NOT")
        if self.word("NULL").upper() != "NULL":
            raise self.error("NULL must follow NOT", at=before)
        if inside:
            raise self.error("NOT NULL stands behind a column, not inside a type", at=before)
        return True

    def _read_nested(self, name: str, depth: int) -> Typed:
        if name == "ARRAY":
            return array_of(self.type(depth))
        if name == "STRUCT":
            return self._struct(depth)
        before = self.at
        if self.type_name(self.word("a key type").upper(), before) != "STRING":
            raise self.error("the keys of a MAP read from JSON are STRING", at=before)
        self.expect(",")
        value = self.type(depth)
        return Typed(_map(value.check), f"MAP<STRING,{value.text}>", value.depth + 1)

    def _struct(self, depth: int) -> Typed:
        fields: Fields = {}
        depths = [0]
        while True:
            before = self.at
            name = self.name("a field name")
            self.expect(":")
            typed = self.type(depth)
            self.not_null(inside=True)
            depths.append(typed.depth)
            self.add(fields, before, Column(name=name, type=typed.text, check=typed.check))
            if self.peek() != ",":
                break
            self.expect(",")
        columns = tuple(fields.values())
        text = ", ".join(f"{quoted(field.name)}: {field.type}" for field in columns)
        return Typed(_struct(columns), f"STRUCT<{text}>", max(depths) + 1)

    def _decimal(self) -> Typed:
        if self.peek() != "(":
            return Typed(decimal(10, 0), "DECIMAL(10,0)")
        before = self.at
        self.expect("(")
        precision, scale = self._number(), 0
        if self.peek() == ",":
            self.expect(",")
            scale = self._number()
        self.expect(")")
        if not 1 <= precision <= 38 or scale > precision:
            raise self.error(
                f"DECIMAL({precision},{scale}) cannot be",
                at=before,
                hint="at most 38 digits, and no more of them behind the point than in all",
            )
        return Typed(decimal(precision, scale), f"DECIMAL({precision},{scale})")

    def _number(self) -> int:
        word = self.word("a number")
        if not (word.isascii() and word.isdigit()) or len(word) > NUMBER_DIGITS_MAX:
            raise self.error(f"expected a number, found {word[:20]!r}")
        return int(word)

    def name(self, wanted: str) -> str:
        return self.word(wanted).strip("`")

    def peek(self) -> str | None:
        found = self._match()
        return found[0] if found else None

    def found(self) -> str:
        """Return the rest of the text at this position, for a person."""
        rest = self._rest()
        return f"{rest[:20]!r}" if rest else "the end of the text"

    def word(self, wanted: str, hint: str = "") -> str:
        found = self._match()
        if found is None or not self.is_word(found[0]):
            raise self.error(f"expected {wanted}, found {self.found()}", hint=hint)
        self.at = found.end()
        return found[0]

    def is_word(self, token: str) -> bool:
        return token not in "(),:<>"

    def expect(self, mark: str, hint: str = "") -> None:
        found = self._match()
        if found is None or found[0] != mark:
            raise self.error(f"expected {mark!r}, found {self.found()}", hint=hint)
        self.at = found.end()

    def _match(self) -> re.Match[str] | None:
        return self.WORD.match(self.ddl, self.skip(self.at))

    def skip(self, at: int) -> int:
        skipped = self.SKIPPED.match(self.ddl, at)
        return skipped.end() if skipped else at

    def _rest(self) -> str:
        return self.ddl[self.skip(self.at) :].strip()

    def error(
        self, message: str, *, at: int | None = None, hint: str = "", exact: bool = False
    ) -> UserError:
        """Return an error with the place in the text. With `exact` the place is `at` itself, even
        if blanks or comments follow.
        """
        start = self.at if at is None else at
        start = start if exact else self.skip(start)
        before = self.ddl[:start] if start < len(self.ddl) else self.ddl.rstrip()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return UserError([Problem(message=message, hint=hint, line=line, column=column)])


def array_of(element: Typed) -> Typed:
    return Typed(_array(element.check), f"ARRAY<{element.text}>", element.depth + 1)


def quoted(name: str) -> str:
    """Return the name as Spark reads it in a list of columns."""
    return name if PLAIN_NAME.fullmatch(name) else f"`{name}`"
