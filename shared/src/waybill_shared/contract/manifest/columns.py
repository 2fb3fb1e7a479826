"""Columns of an input: their text form, and which rows they take."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Problem
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
    """`type` is as it was written, in capitals; `required`: a record without a value is refused."""

    name: str
    type: str
    check: ValueCheck
    required: bool = False


def parse_columns(ddl: str, *, binary: bool = False) -> tuple[Column, ...]:
    """The columns of `name TYPE, name TYPE, …`; UserError with the column in the text if not.

    `binary`: of formats that have bytes; in JSON these are base64.
    """
    return _Parser(ddl, {**SIMPLE, "BINARY": take_binary} if binary else SIMPLE).columns()


def refusal(columns: tuple[Column, ...], row: JsonValue) -> str | None:
    """Why `row` (floats parsed as Decimal) is not a record of these columns; None if it is."""
    if not isinstance(row, dict):
        return f"a record is a JSON object, this is {kind_of(row)}"
    for column in columns:
        value = row.get(column.name)
        reason = column.check(value) if value is not None else _absent(column, row)
        if reason is not None:
            return f"{column.name}: {reason}"
    return None


def unknown_field(columns: tuple[Column, ...], row: Mapping[str, JsonValue]) -> str | None:
    """Which field of `row` is no column, and what it may be meant as; None if all are."""
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
TYPES: Final = (*SIMPLE, "DECIMAL", *NESTED)
WORD = re.compile(r"\s*(`[^`]+`|[A-Za-z_][A-Za-z0-9_]*|\d+|[(),:<>])", re.ASCII)


def _type_hint(name: str) -> str:
    ours = next((ours for ours, others in OTHER_NAMES.items() if name in others), None)
    close = ours or nearest(name, TYPES)
    return f"did you mean {close}? {TYPES_HINT}" if close else TYPES_HINT


class _Parser:
    """Recursive descent over a column list; `at` is where the next word begins."""

    def __init__(self, ddl: str, simple: Mapping[str, ValueCheck]) -> None:
        self.ddl = ddl
        self.simple = simple
        self.at = 0

    def columns(self) -> tuple[Column, ...]:
        columns = self._fields(separator="", depth=0)
        if self.ddl[self.at :].strip():
            raise self._error(f"expected a comma, found {self._rest()}")
        return columns

    def _fields(self, *, separator: str, depth: int) -> tuple[Column, ...]:
        fields: list[Column] = []
        while True:
            before = self.at
            name = self._word("a column name").strip("`")
            if separator:
                self._expect(separator)
            start = self.at
            check = self._type(depth)
            text = self.ddl[start : self.at].strip().upper() if not separator else ""
            required = self._not_null(inside=bool(separator))
            if any(field.name.lower() == name.lower() for field in fields):  # SQL ignores case
                raise self._error(f"column {name!r} stands twice", at=before)
            fields.append(Column(name=name, type=text, check=check, required=required))
            if self._peek() != ",":
                return tuple(fields)
            self._expect(",")

    def _type(self, depth: int) -> ValueCheck:
        if depth > DEPTH_MAX:
            raise self._error(f"types nest deeper than {DEPTH_MAX}")
        before = self.at
        name = self._word("a type", COLUMN_HINT).upper()
        if name in self.simple:
            return self.simple[name]
        if name == "DECIMAL":
            return self._decimal()
        if name not in NESTED:
            raise self._error(f"unknown type {name}", at=before, hint=_type_hint(name))
        self._expect("<", f"write {NESTED[name]}")
        check = self._nested(name, depth + 1)
        self._expect(">")
        return check

    def _not_null(self, *, inside: bool) -> bool:
        before = self.at
        if (self._peek() or "").upper() != "NOT":
            return False
        self._word("NOT")
        if self._word("NULL").upper() != "NULL":
            raise self._error("NULL must follow NOT", at=before)
        if inside:
            raise self._error("NOT NULL stands behind a column, not inside a type", at=before)
        return True

    def _nested(self, name: str, depth: int) -> ValueCheck:
        if name == "ARRAY":
            return _array(self._type(depth))
        if name == "STRUCT":
            return _struct(self._fields(separator=":", depth=depth))
        before = self.at
        if self._word("a key type").upper() != "STRING":
            raise self._error("the keys of a MAP read from JSON are STRING", at=before)
        self._expect(",")
        return _map(self._type(depth))

    def _decimal(self) -> ValueCheck:
        if self._peek() != "(":
            return decimal(10, 0)
        before = self.at
        self._expect("(")
        precision, scale = self._number(), 0
        if self._peek() == ",":
            self._expect(",")
            scale = self._number()
        self._expect(")")
        if not 1 <= precision <= 38 or scale > precision:
            raise self._error(
                f"DECIMAL({precision},{scale}) cannot be",
                at=before,
                hint="at most 38 digits, and no more of them behind the point than in all",
            )
        return decimal(precision, scale)

    def _number(self) -> int:
        word = self._word("a number")
        if not word.isdigit() or len(word) > NUMBER_DIGITS_MAX:
            raise self._error(f"expected a number, found {word[:20]!r}")
        return int(word)

    def _peek(self) -> str | None:
        found = WORD.match(self.ddl, self.at)
        return found[1] if found else None

    def _rest(self) -> str:
        rest = self.ddl[self.at :].strip()
        return f"{rest[:20]!r}" if rest else "the end of the text"

    def _word(self, wanted: str, hint: str = "") -> str:
        found = WORD.match(self.ddl, self.at)
        if found is None or found[1] in "(),:<>":
            raise self._error(f"expected {wanted}, found {self._rest()}", hint=hint)
        self.at = found.end()
        return found[1]

    def _expect(self, mark: str, hint: str = "") -> None:
        found = WORD.match(self.ddl, self.at)
        if found is None or found[1] != mark:
            raise self._error(f"expected {mark!r}, found {self._rest()}", hint=hint)
        self.at = found.end()

    def _error(self, message: str, *, at: int | None = None, hint: str = "") -> UserError:
        """With the place in the text of the columns."""
        rest = self.ddl[self.at if at is None else at :].lstrip()
        before = self.ddl[: len(self.ddl) - len(rest)] if rest else self.ddl.rstrip()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return UserError([Problem(message=message, hint=hint, line=line, column=column)])
