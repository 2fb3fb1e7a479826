"""Defaults of the fields of Avro schemas: JSON, by the rules of the specification, as values."""

from collections.abc import Mapping
from typing import Any, Final

from fastavro.types import Schema

INTEGERS: Final = {"int": 2**31, "long": 2**63}


class Defaults:
    """Walks through a parsed schema; remembers what has a name. ValueError at a default that is no
    value of its type."""

    def __init__(self, schema: Schema) -> None:
        self._named: dict[str, dict[str, Any]] = {}
        self._note(schema)

    def of(self, field: Mapping[str, Any]) -> object:
        """Return the default of a field that has one, as the library writes it."""
        return self._value(field["type"], field["default"])

    def _note(self, schema: Schema) -> None:
        match schema:
            case list():
                for each in schema:
                    self._note(each)
            case dict():
                if "name" in schema:
                    self._named[schema["name"]] = schema
                for field in schema.get("fields", ()):
                    self._note(field["type"])
                for key in ("items", "values"):
                    self._note(schema.get(key, "null"))
                if isinstance(schema["type"], dict | list):
                    self._note(schema["type"])

    def _value(self, schema: Schema, given: object) -> object:
        """Convert the default `given` to a value of `schema`.

        The default of a union is one of its first type.
        """
        match schema:
            case list():
                return self._value(schema[0], given)
            case str() as name if name in self._named:
                return self._value(self._named[name], given)
            case str() as kind:
                return _plain(kind, given)
            case {"type": dict() | list() as inner}:
                return self._value(inner, given)
            case {"type": "array" | "map" | "record"}:
                return self._read_nested(schema, given)
            case {"type": "enum", "symbols": symbols} if given in symbols:
                return given
            case {"type": "fixed", "size": size}:
                return _read_fixed(size, given)
            case {"type": str() as kind} if kind != "enum":
                return _plain(kind, given)
        raise _wrong(given)

    def _read_nested(self, schema: Mapping[str, Any], given: object) -> object:
        match schema:
            case {"items": items} if isinstance(given, list):
                return [self._value(items, each) for each in given]
            case {"values": values} if isinstance(given, dict):
                return {key: self._value(values, each) for key, each in given.items()}
            case {"fields": fields} if isinstance(given, dict):
                return {each["name"]: self._part(each, given) for each in fields}
        raise _wrong(given)

    def _part(self, field: Mapping[str, Any], given: Mapping[str, object]) -> object:
        name = field["name"]
        if name in given:
            return self._value(field["type"], given[name])
        if "default" not in field:
            raise ValueError(f"the default of a record lacks {name!r:.60}")
        return self.of(field)


def _read_fixed(size: int, given: object) -> object:
    found = _plain("bytes", given)
    if not isinstance(found, bytes) or len(found) != size:
        raise _wrong(given)
    return found


def _wrong(given: object) -> ValueError:
    return ValueError(f"{given!r:.60} is no default of its type")


def _plain(kind: str, given: object) -> object:
    number = isinstance(given, int | float) and not isinstance(given, bool)
    match kind:
        case "null" if given is None:
            return None
        case "boolean" if isinstance(given, bool):
            return given
        case "int" | "long" if number and isinstance(given, int):
            if -INTEGERS[kind] <= given < INTEGERS[kind]:
                return given
        case "float" | "double" if number:
            return given
        case "string" if isinstance(given, str):
            return given
        case "bytes" if isinstance(given, str) and all(each <= "\xff" for each in given):
            return given.encode("latin-1")
    raise ValueError(f"{given!r:.60} is no default of type {kind}")
