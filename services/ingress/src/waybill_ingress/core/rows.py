"""Turns a request's body into records: their exact bytes, their keys, and why a row is refused.

Never re-serialises: what was sent is what Kafka gets. Spark parses the same bytes later and must
not see another row than was checked here, so what two parsers read differently is refused.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final, NamedTuple

from waybill_ingress.core.scanning import deeper, end_of_nest, skip_space
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.manifest.columns import Column, refusal, unknown_field
from waybill_shared.contract.problems import Slug

DEPTH_MAX = 64  # far below the 1000 that Spark's parser takes
NUMBER_CHARACTERS_MAX = 1_000  # Spark's parser refuses longer ones, wherever they stand
NAME_CHARACTERS_MAX = 50_000  # likewise
EXPECTED: Final = "one JSON object per line (NDJSON), or a JSON array of objects"
NO_ARRAY: Final = "the body is not a JSON array of objects"
NOTHING_TAKEN: Final = "nothing was taken"
TOO_DEEP: Final = f"nested deeper than {DEPTH_MAX}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRule:
    """What one input takes: its columns, and the column that is the key.

    `strict`: a field that is no column is refused.
    """

    columns: tuple[Column, ...]
    key: str | None
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLimits:
    records_max: int
    record_bytes_max: int


class Record(NamedTuple):
    row: int
    key: bytes | None
    value: bytes


@dataclass(frozen=True, slots=True, order=True)
class Rejection:
    index: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    records: list[Record]
    rejected: list[Rejection]


def read_ndjson(body: bytes, rule: RowRule, limits: RowLimits) -> Rows:
    """One record a line; blank lines are no records and are not counted."""
    lines = [line for line in body.split(b"\n") if line and not line.isspace()]
    _check_count(len(lines), limits)
    reader = _Reader(rule, limits)
    for index, line in enumerate(lines):
        reader.take_line(index, line.removesuffix(b"\r"))
    return reader.rows


def read_array(body: bytes, rule: RowRule, limits: RowLimits) -> Rows:
    """One record per element; a body that is not one well-formed array is refused as a whole."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        detail = f"{NO_ARRAY}: byte {error.start + 1} is not UTF-8; {NOTHING_TAKEN}"
        raise Refusal(Slug.BODY_NOT_JSON, detail) from error
    reader = _Reader(rule, limits)
    count = 0
    for part, value, reason in reader.elements(text):
        if count < limits.records_max:
            reader.take(count, part.encode(), value, reason)
        count += 1
    _check_count(count, limits)
    return reader.rows


def _check_count(count: int, limits: RowLimits) -> None:
    if count == 0:
        raise Refusal(Slug.NO_RECORDS, f"the body holds no record; expected {EXPECTED}")
    if count > limits.records_max:
        detail = f"{count} records in one request, {limits.records_max} is the most: send parts"
        raise Refusal(Slug.TOO_MANY_RECORDS, detail, records_max=limits.records_max)


def _no_array(reason: str, text: str, at: int) -> Refusal:
    """Named by line and column, as editors count them."""
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    detail = f"{NO_ARRAY}: {reason} at line {line}, column {column}; {NOTHING_TAKEN}"
    return Refusal(Slug.BODY_NOT_JSON, detail, line=line, column=column)


class _Reader:
    """Reads the rows of one request. The parser's hooks note complaints instead of raising, so
    that a refused element of an array still has an end."""

    def __init__(self, rule: RowRule, limits: RowLimits) -> None:
        self.rows = Rows(records=[], rejected=[])
        self._rule = rule
        self._limits = limits
        self._complaints: list[str] = []
        # Rows too short to hold an overlong number or name need no hooks for them.
        self._quick = json.JSONDecoder(
            object_pairs_hook=self._object, parse_float=Decimal, parse_constant=self._constant
        )

    @cached_property
    def _careful(self) -> json.JSONDecoder:
        return json.JSONDecoder(
            object_pairs_hook=self._long_object,
            parse_float=self._float,
            parse_int=self._integer,
            parse_constant=self._constant,
        )

    def take_line(self, index: int, raw: bytes) -> None:
        value: object = None
        reason: str | None = None
        self._complaints.clear()
        if len(raw) <= self._limits.record_bytes_max:
            decoder = self._quick if len(raw) <= NUMBER_CHARACTERS_MAX else self._careful
            try:
                value = decoder.decode(raw.decode())
            except UnicodeDecodeError as error:
                reason = f"byte {error.start + 1} is not UTF-8"
            except json.JSONDecodeError as error:
                reason = f"not JSON at character {error.pos + 1}: {error.msg}"
            except RecursionError:
                reason = TOO_DEEP
            except ArithmeticError:
                reason = "a number has an exponent beyond all bounds"
        self.take(index, raw, value, reason)

    def take(self, index: int, raw: bytes, value: object, reason: str | None) -> None:
        """Keep the row, or the reason why not."""
        key = None
        if len(raw) > self._limits.record_bytes_max:
            reason = f"{len(raw)} bytes, {self._limits.record_bytes_max} is the most"
        reason = reason or self._refusal(raw, value)
        if reason is None and self._rule.key is not None:
            assert isinstance(value, dict)
            key, reason = _key_of(value, self._rule.key, raw)
        if reason is None and key and len(raw) + len(key) > self._limits.record_bytes_max:
            reason = f"with its key more than {self._limits.record_bytes_max} bytes"
        if reason is None:
            self.rows.records.append(Record(index, key, raw))
        else:
            self.rows.rejected.append(Rejection(index, reason))

    def elements(self, text: str) -> Iterator[tuple[str, object, str | None]]:
        """Text, value and first complaint of each element of the array that `text` is."""
        at = skip_space(text, 0)
        if text[at : at + 1] != "[":
            if at < len(text):
                raise _no_array("it does not begin with [", text, at)
            return
        at = skip_space(text, at + 1)
        mark = "]" if text[at : at + 1] == "]" else ","
        while mark == ",":
            value, end, reason = self._element(text, at)
            yield text[at:end], value, reason
            at = skip_space(text, end)
            mark = text[at : at + 1]
            if mark not in ("]", ","):
                raise _no_array("expected , or ]", text, at)
            at = skip_space(text, at + 1) if mark == "," else at
        if skip_space(text, at + 1) < len(text):
            raise _no_array("something follows it", text, skip_space(text, at + 1))

    def _element(self, text: str, at: int) -> tuple[object, int, str | None]:
        self._complaints.clear()
        try:
            value, end = self._careful.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise _no_array(error.msg, text, error.pos) from error
        except RecursionError:
            return None, self._end_of_nest(text, at), TOO_DEEP
        return value, end, None

    @staticmethod
    def _end_of_nest(text: str, at: int) -> int:
        end = end_of_nest(text, at)
        if end is None:
            raise _no_array("a value in it does not end", text, at)
        return end

    def _refusal(self, raw: bytes, value: object) -> str | None:
        if self._complaints:
            return self._complaints[0]
        if raw.count(b"{") + raw.count(b"[") > DEPTH_MAX and deeper(value, DEPTH_MAX):
            return TOO_DEEP
        reason = refusal(self._rule.columns, value)
        if reason is None and self._rule.strict:
            assert isinstance(value, dict)
            reason = unknown_field(self._rule.columns, value)
        return reason

    def _object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            self._complaints.append(f"the name {twice[:100]!r} stands twice in one object")
        return found

    def _long_object(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        if any(len(name) > NAME_CHARACTERS_MAX for name, _ in pairs):
            self._complaints.append(f"a name is longer than {NAME_CHARACTERS_MAX} characters")
        return self._object(pairs)

    def _constant(self, text: str) -> None:
        self._complaints.append(f"{text} is not JSON")

    def _integer(self, text: str) -> int:
        return int(text) if self._short(text) else 0

    def _float(self, text: str) -> Decimal:
        try:
            return Decimal(text) if self._short(text) else Decimal(0)
        except ArithmeticError:
            self._complaints.append("a number has an exponent beyond all bounds")
            return Decimal(0)

    def _short(self, text: str) -> bool:
        if len(text) <= NUMBER_CHARACTERS_MAX:
            return True
        self._complaints.append(f"a number is longer than {NUMBER_CHARACTERS_MAX} characters")
        return False


def _key_of(row: dict[str, object], name: str, raw: bytes) -> tuple[bytes | None, str | None]:
    """The key's text and no reason, or no key and the reason why the row has none that is safe."""
    value = row.get(name)
    match value:
        case None:
            return None, None
        case bool():
            text = "true" if value else "false"
        case int():
            text = str(value)
        case Decimal():
            text = str(json.loads(raw, parse_float=str)[name])  # 1.50 stays 1.50
        case str():
            text = value
        case _:
            return None, f"{name}: the key is a string, a number or a boolean"
    return text.encode(), None
