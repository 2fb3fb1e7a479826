"""Writes records as JSON, dates and decimals in the form that the columns of an input accept."""

import json
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, ClassVar, Protocol
from uuid import UUID

from waybill.errors import Unusable

DEPTH_MAX = 64  # Waybill accepts no deeper records
ACCEPTED = (
    "a record takes None, bool, int, finite float and Decimal, str of Unicode, datetime, date,"
    " UUID, and lists, tuples, dataclasses and mappings with text keys of these"
)
FAILURES = (TypeError, ValueError, OverflowError, RecursionError, AttributeError)


class Unset:
    """A mark for the field of a dataclass that never got a value."""

    def __repr__(self) -> str:
        return "no value"


class Dataclass(Protocol):
    """An instance of any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


def write(record: object, name: str) -> bytes:
    """Return the record as one line of JSON; Unusable says which part of `name` cannot be
    written."""
    try:
        return _write(record)
    except FAILURES:
        raise Unusable(_refusal(record, name)) from None


def _write(value: object) -> bytes:
    return _ENCODER.encode(value).encode()


def _plain(value: object) -> object:
    """Return a value that JSON knows, for one of a type that it does not know."""
    match value:
        case datetime():
            return _moment(value)
        case date():
            return value.isoformat()
        case Decimal() if value.is_finite():
            return str(value)  # as a number it would lose digits in a STRING
        case UUID():
            return str(value)
        case Mapping():
            return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)


def _moment(value: datetime) -> str:
    """Return the time in UTC, because TIMESTAMP accepts no seconds in an offset.

    A time without an offset stays so.
    """
    if value.utcoffset() is None:
        return value.isoformat()
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _refusal(record: object, name: str) -> str:
    """Return what cannot be written: it goes down to that part by trying to write each."""
    path, value = "", record
    for _ in range(DEPTH_MAX):
        bad = next((part for part in _parts(value) if not _writes(part[1])), None)
        if bad is None:
            place = ", ".join(filter(None, (name, path.removeprefix("."))))
            kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
            return f"{place}: {_show(value)} ({kind}) cannot be written as JSON: {ACCEPTED}"
        path, value = path + bad[0], bad[1]
    return f"{name} is nested deeper than {DEPTH_MAX}, or holds itself"


def _parts(value: object) -> Iterator[tuple[str, object]]:
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name, Unset()) for field in fields(value)}
    if isinstance(value, Mapping):
        yield from ((f".{key}", part) for key, part in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"[{index}]", part) for index, part in enumerate(value))


def _show(value: object) -> str:
    try:
        return reprlib.repr(value)
    except FAILURES:  # an integer of thousands of digits, an object that is half made
        return "a value"


def _writes(value: object) -> bool:
    try:
        _write(value)
    except FAILURES:
        return False
    return True
