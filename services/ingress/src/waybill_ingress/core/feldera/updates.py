"""Reads JSON rows, or changes of rows. A row in a change keeps the text that was sent.

If values follow each other, a malformed one ends at the next line that starts with an object. What
lies before that is part of it. In an array nobody knows where it ends.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from waybill_ingress.core.bodies.values import Values
from waybill_ingress.core.rows import DEPTH_MAX, TOO_DEEP, RowReader
from waybill_ingress.core.scanning import skip_space

WRAPPED: Final = re.compile(r'\{\s*"(insert|delete)"\s*:\s*')
NO_UPDATE: Final = 'an update is {"insert": row} or {"delete": row}'
NO_CHANGE: Final = (
    'a change is {"payload": {"op": "c", "before": row or null, "after": row or null}}, where `op`'
    " is c, r, u or d"
)
NO_DELETES: Final = (
    "the input takes no deletes: name a BOOLEAN column in `deletes: {column}` of its manifest"
)
BEGINS: Final = re.compile(r"[\r\n](?=\{)")
"""The end of a line before a line that starts with an object."""
BOM: Final = "\ufeff"
SPOILT_FREE: Final = 100_000  # characters
WRAPPED_IN: Final = 2  # objects, at most
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
PLAIN: Final = json.JSONDecoder(parse_int=str, parse_float=str)
Change = tuple[bool, str, object]
"""True if the row is to be deleted; its text; and its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Updates:
    """The options that say how to read the body. `form`: insert_delete, raw or debezium. `pandas`:
    times are milliseconds since 1970. `array`: the body is an array; None: its first character
    decides."""

    array: bool | None
    form: str
    pandas: bool


def read_updates(pieces: Iterable[bytes], rows: RowReader, updates: Updates) -> None:
    _Changes(rows, updates).read(pieces)


class _Changes(Values):
    def __init__(self, rows: RowReader, updates: Updates) -> None:
        super().__init__(rows)
        self._updates = updates
        times = ("TIMESTAMP", "DATE") if updates.pandas else ()
        self._spoilt = 0
        """Characters of malformed values that were read in vain."""
        self._times = {c.name: c.type for c in rows.rule.columns if c.type in times}

    def _begin(self) -> bool:
        if not self._next():
            return False
        self._at += self._text.startswith(BOM, self._at)
        if not self._next():
            return False
        begins = self._text[self._at] == "["
        self._array = begins if self._updates.array is None else self._updates.array
        if self._array and not begins:
            raise self._wrong("with array=true the body is an array", self._at)
        self._at += self._array
        self._step = self._first if self._array else self._value
        return True

    def _after_array(self) -> bool:
        self._step = self._begin
        return True

    def _handle_malformed(self, reason: str, at: int) -> bool:
        if self._array:
            raise self._wrong(reason, at)
        self._spoilt += at - self._at
        if self._spoilt > self._bytes + SPOILT_FREE:
            raise self._wrong("too much of it is not JSON", at)
        line, column = self._place(at)
        more = "; nothing is read up to the next line that begins with {"
        begins = BEGINS.search(self._text, self._at)
        raw = self._text[self._at : begins.start() if begins else None]
        self.rows.reject(f"not JSON at line {line}, column {column}: {reason}{more}", raw.encode())
        self._step = self._skip
        return True

    def _skip(self) -> bool:
        begins = BEGINS.search(self._text, self._at)
        if begins is None:
            self._at = max(self._at, len(self._text) - 1)  # it may be the end of a line
            return False
        self._at = begins.end()
        self._step = self._value
        return True

    def _take(self, raw: str, value: object) -> None:
        """Keep the rows of a value. If its text is wrong, `rows` has noted that, and its reason is
        used.
        """
        depth = DEPTH_MAX + WRAPPED_IN
        if self.rows.too_deep(raw.count("{") + raw.count("["), value, depth):
            self.rows.reject(TOO_DEEP, raw.encode())
            return
        changes, reason = self._changes(raw, value)
        if reason is not None:
            self.rows.reject(self.rows.complaint or reason, raw.encode())
        else:
            self.rows.take_together([self._row(*change) for change in changes])

    def _changes(self, raw: str, value: object) -> tuple[list[Change], str | None]:
        match self._updates.form:
            case "raw":
                return [(False, raw, value)], None
            case "insert_delete":
                wrapped = WRAPPED.match(raw)
                if wrapped is None or not isinstance(value, dict) or len(value) != 1:
                    return [], NO_UPDATE
                verb = wrapped[1]
                text = raw[wrapped.end() : -1].rstrip()
                return [(verb == "delete", text, value[verb])], None
            case _:
                found = _changes_of_event(raw, value, self.rows.rule.key)
                return (found, None) if found else ([], NO_CHANGE)

    def _row(self, deleted: bool, text: str, row: object) -> tuple[bytes, object, str | None]:
        reason: str | None = None
        if isinstance(row, dict):
            if self._times and self.rows.complaint is None:
                try:
                    text, row = _with_times(text, row, self._times)
                except OverflowError:
                    reason = "a time in milliseconds is outside the years 1 to 9999"
            if deleted:
                text, row, reason = self._mark_deleted(text, row, reason)
        elif deleted and self.rows.rule.deletes is None:
            reason = NO_DELETES
        return text.encode(), row, reason

    def _mark_deleted(
        self, text: str, row: dict[str, object], reason: str | None
    ) -> tuple[str, dict[str, object], str | None]:
        column = self.rows.rule.deletes
        if column is None:
            return text, row, NO_DELETES
        if column in row:
            return text, row, f"{column}: is set by {{'delete': row}}, leave it out"
        rest = text[skip_space(text, 1) :]
        mark = f"{{{json.dumps(column)}: true{'' if rest == '}' else ', '}"
        return mark + rest, {column: True, **row}, reason


def _changes_of_event(raw: str, value: object, key: str | None) -> list[Change]:
    """Return the changes of Debezium's event. A row that got a new key is deleted under the old
    one.
    """
    payload = value.get("payload") if isinstance(value, dict) else None
    if not isinstance(payload, dict):
        return []
    begin, end = dict(_members(raw))["payload"]
    inner = raw[begin:end]
    places = dict(_members(inner))

    def change(name: str, *, deleted: bool) -> list[Change]:
        row = payload.get(name)
        return [(deleted, inner[slice(*places[name])], row)] if row is not None else []

    before, after = payload.get("before"), payload.get("after")
    match payload.get("op"):
        case "c" | "r":
            return change("after", deleted=False)
        case "d":
            return change("before", deleted=True)
        case "u":
            old, new = (row.get(key) if isinstance(row, dict) else None for row in (before, after))
            moved = key is not None and before is not None and old != new
            return (change("before", deleted=True) if moved else []) + change(
                "after", deleted=False
            )
        case _:
            return []


def _with_times(
    text: str, row: dict[str, object], times: dict[str, str]
) -> tuple[str, dict[str, object]]:
    found = {
        name: _moment(row[name], times[name])
        for name in times
        if isinstance(row.get(name), int) and not isinstance(row[name], bool)
    }
    if not found:
        return text, row
    parts, last = [], 0
    for name, (begin, end) in _members(text):
        if name in found:
            parts += [text[last:begin], json.dumps(found[name])]
            last = end
    return "".join((*parts, text[last:])), {**row, **found}


def _moment(milliseconds: object, kind: str) -> str:
    assert isinstance(milliseconds, int)
    moment = EPOCH + timedelta(milliseconds=milliseconds)
    if kind == "DATE":
        return moment.date().isoformat()
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _members(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each name of a JSON object, and where its value is in the text."""
    at = skip_space(text, skip_space(text, 0) + 1)
    while text[at] != "}":
        name, at = PLAIN.raw_decode(text, at)
        begin = skip_space(text, skip_space(text, at) + 1)
        _, end = PLAIN.raw_decode(text, begin)
        yield name, (begin, end)
        at = skip_space(text, end)
        at = skip_space(text, at + (text[at] == ","))
