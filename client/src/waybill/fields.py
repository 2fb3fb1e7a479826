"""Reads JSON objects of answers, field by field and by type.

Never guesses: a missing or mistyped field that is needed raises UnexpectedAnswer with its name.
Fields it does not know are left alone, so an older client can read a newer server.
"""

import json
from collections.abc import Mapping
from datetime import datetime

from waybill.errors import UnexpectedAnswer

SHOWN_CHARACTERS_MAX = 80


class Fields:
    """One JSON object; `where` names it in errors."""

    __slots__ = ("raw", "where")

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise UnexpectedAnswer(f"{where} should be a JSON object, but is {_show(value)}")
        self.raw: Mapping[str, object] = value
        self.where = where

    def text(self, name: str) -> str:
        value = self.text_or_none(name)
        if value is None:
            raise self._wrong(name, "a text")
        return value

    def text_or_none(self, name: str) -> str | None:
        value = self.raw.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def whole(self, name: str) -> int:
        value = self.whole_or_none(name)
        if value is None:
            raise self._wrong(name, "a whole number")
        return value

    def whole_or_none(self, name: str) -> int | None:
        value = self.raw.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise self._wrong(name, "a whole number")
        return value

    def number_or_none(self, name: str) -> float | None:
        value = self.raw.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise self._wrong(name, "a number")
        return value

    def flag(self, name: str) -> bool:
        value = self.raw.get(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def flag_or_none(self, name: str) -> bool | None:
        """Read a flag that may be null; a missing one is false."""
        return None if self.raw.get(name, False) is None else self.flag(name)

    def moment_or_none(self, name: str) -> datetime | None:
        value = self.text_or_none(name)
        if value is None:
            return None
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            raise self._wrong(name, "a moment as in 2026-11-21T09:00:00.120Z") from None

    def texts(self, name: str) -> tuple[str, ...]:
        items = self._list(name)
        if not all(isinstance(item, str) for item in items):
            raise self._wrong(name, "a list of texts")
        return tuple(str(item) for item in items)

    def objects(self, name: str) -> tuple["Fields", ...]:
        where = f"{self.where}.{name}"
        return tuple(Fields(item, f"{where}[{i}]") for i, item in enumerate(self._list(name)))

    def object_or_none(self, name: str) -> "Fields | None":
        value = self.raw.get(name)
        return None if value is None else Fields(value, f"{self.where}.{name}")

    def mapping_or_none(self, name: str) -> Mapping[str, object] | None:
        nested = self.object_or_none(name)
        return None if nested is None else nested.raw

    def _list(self, name: str) -> list[object]:
        value = self.raw.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def _wrong(self, name: str, expected: str) -> UnexpectedAnswer:
        found = _show(self.raw[name]) if name in self.raw else "missing"
        return UnexpectedAnswer(f"{self.where}.{name} should be {expected}, but is {found}")


def no_json() -> Mapping[str, object]:
    """Return the JSON of a value that was not read from an answer."""
    return {}


def _show(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + "…"
