"""Avro schemas of inputs: which are accepted, and the columns that they define."""

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

import fastavro
from fastavro.types import Schema

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.formats.avro_defaults import Defaults

AvroSchema = Mapping[str, Any]
DEPTH_MAX: Final = 16  # as of columns
PARSED_MARK: Final = "__"  # names of the library: what says of itself that it was checked
PRIMITIVES: Final = {
    "boolean": "BOOLEAN", "int": "INT", "long": "BIGINT", "float": "FLOAT", "double": "DOUBLE",
    "bytes": "BINARY", "string": "STRING",
}  # fmt: skip
LOGICAL: Final = {
    ("int", "date"): "DATE",
    ("long", "timestamp-millis"): "TIMESTAMP",
    ("long", "timestamp-micros"): "TIMESTAMP",
    ("string", "uuid"): "STRING",
}
DIGITS_MAX: Final = 38
TEXT_MAX: Final = 20_000  # as of `schema`
KEYS: Final = {
    "type", "name", "namespace", "aliases", "doc", "fields", "items", "values", "symbols", "size",
    "default", "order", "logicalType", "precision", "scale",
}  # fmt: skip
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
NAMES_HINT: Final = "letters, digits and _, no digit first, and not the name of a type"
ACCEPTED: Final = "date, decimal, timestamp-millis, timestamp-micros and uuid (a string) are"


def parse_schema(schema: AvroSchema) -> Schema:
    """Return the schema as the library wants it. Raise UserError if it is none."""
    _refuse_marks(schema)
    try:
        return fastavro.parse_schema(known_keys(schema))
    except Exception as error:
        reason = f"{type(error).__name__}: {error!s:.300}"
        raise _wrong(f"it is no Avro schema ({reason})") from error


def columns_of(schema: AvroSchema) -> str:
    """Return the fields as columns, each with its type.

    Raise UserError if Avro or a stage does not accept the schema.
    """
    parsed = parse_schema(schema)
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise _wrong("the schema of an input is that of a record", 'write {"type": "record", …}')
    _check_names(parsed)
    kinds = _Kinds()
    _check_defaults(parsed, Defaults(parsed))
    fields = [
        f"{field['name']} {kinds.of_field(field)}{_not_null(field)}" for field in parsed["fields"]
    ]
    text = ", ".join(fields)
    if not fields or len(text) > TEXT_MAX:
        raise _wrong(f"its columns have no, or more than {TEXT_MAX}, characters", "take fewer")
    return text


class _Kinds:
    """Walks through a parsed schema; remembers what has a name."""

    def __init__(self) -> None:
        self._named: dict[str, str] = {}
        self._open: list[str] = []

    def of_field(self, field: Mapping[str, Any]) -> str:
        self._open.append(field["name"])
        if len(self._open) > DEPTH_MAX:
            raise _wrong(f"it is nested deeper than {DEPTH_MAX}, or a type is inside of itself")
        kind = self._of(field["type"])
        self._open.pop()
        return kind

    def _of(self, schema: object) -> str:
        match schema:
            case str() as name if name in PRIMITIVES:
                return PRIMITIVES[name]
            case str() as name if name in self._named:
                return self._named[name]
            case list() as kinds if (
                len(some := [each for each in kinds if each != "null"]) == 1
                and len(kinds) <= 2
                and not isinstance(some[0], list)
            ):
                return self._of(some[0])
            case list():
                hint = "a union is null and one other type"
                raise self._refuse("a union of several types is not supported", hint)
            case dict():
                return self._of_object(schema)
        raise self._unknown(schema)

    def _of_object(self, schema: Mapping[str, Any]) -> str:
        match schema:
            case {"logicalType": str() as logical}:
                return self._logical(schema, logical)
            case {"type": "array", "items": items}:
                return f"ARRAY<{self._inside('items', items)}>"
            case {"type": "map", "values": values}:
                return f"MAP<STRING,{self._inside('values', values)}>"
            case {"type": "record", "name": str() as name, "fields": list() as fields} if fields:
                inner = ", ".join(f"{each['name']}: {self.of_field(each)}" for each in fields)
                return self._remember(name, f"STRUCT<{inner}>")
            case {"type": "enum", "name": str() as name}:
                return self._remember(name, "STRING")
            case {"type": "fixed", "name": str() as name, "size": int() as size} if (
                size is not True and size > 0
            ):
                return self._remember(name, "BINARY")
            case {"type": str() as name} if name in PRIMITIVES:
                return PRIMITIVES[name]
            case {"type": dict() | list() as inner}:
                return self._of(inner)
        raise self._unknown(schema)

    def _logical(self, schema: Mapping[str, Any], logical: str) -> str:
        kind = schema["type"]
        if logical == "decimal" and kind in ("bytes", "fixed"):
            digits, scale = schema.get("precision"), schema.get("scale", 0)
            if digits not in range(1, DIGITS_MAX + 1) or scale not in range(DIGITS_MAX + 1):
                hint = f"at most {DIGITS_MAX} digits, and no more of them behind the point"
                raise self._refuse(f"a decimal of {digits!r} and {scale!r} digits", hint)
            found = f"DECIMAL({digits},{scale})"
            return self._remember(schema["name"], found) if kind == "fixed" else found
        if (kind, logical) not in LOGICAL:
            hint = f"{ACCEPTED}; without its logicalType it is a plain {kind}"
            raise self._refuse(f"logicalType {logical!r} of {kind!r:.50} is not supported", hint)
        return LOGICAL[kind, logical]

    def _inside(self, name: str, schema: object) -> str:
        return self.of_field({"name": name, "type": schema})

    def _remember(self, name: str, kind: str) -> str:
        """Remember the type of a name.

        Raise UserError if it is too long: a name that is used again and again could make a text of
        any length.
        """
        if len(kind) > TEXT_MAX:
            raise self._refuse(f"its columns have more than {TEXT_MAX} characters", "take fewer")
        self._named[name] = kind
        return kind

    def _unknown(self, schema: object) -> UserError:
        hint = "a type holds something, and is not inside of itself"
        return self._refuse(f"type {schema!r:.100} is not supported", hint)

    def _refuse(self, message: str, hint: str) -> UserError:
        return _wrong(f"field {'.'.join(self._open)}: {message}", hint)


def is_nullable(schema: object) -> bool:
    return schema == "null" or (isinstance(schema, list) and "null" in schema)


def _not_null(field: Mapping[str, Any]) -> str:
    return "" if is_nullable(field["type"]) or "default" in field else " NOT NULL"


def known_keys(part: object) -> Any:  # noqa: ANN401 - JSON, as it is
    """Return the schema without the keys that the specification does not know, because others may
    interpret them.
    """
    match part:
        case Mapping():
            return {
                key: deepcopy(value) if key == "default" else known_keys(value)
                for key, value in part.items()
                if key in KEYS
            }
        case list():
            return [known_keys(each) for each in part]
        case _:
            return part


def _check_names(part: object) -> None:
    """Check the names by the rules of Java's library, which is stricter than Python's."""
    match part:
        case Mapping():
            name, kind = part.get("name"), part.get("type")
            simple = str(name).rpartition(".")[2]
            if name is not None and (not _is_name(name) or simple in PRIMITIVES):
                raise _wrong(f"the name {name!r:.60} is not allowed", NAMES_HINT)
            for each in (*_list_of(part, "aliases"), *_list_of(part, "symbols")):
                if not _is_name(each):
                    raise _wrong(f"the name {each!r:.60} is not allowed", NAMES_HINT)
            if part.get("order", "ignore") not in ("ascending", "descending", "ignore"):
                raise _wrong(f"order {part['order']!r:.60} is not allowed")
            _check_names(kind)
            for key in ("fields", "items", "values"):
                _check_names(part.get(key))
        case list():
            for each in part:
                _check_names(each)


def _list_of(part: Mapping[str, Any], key: str) -> list[object]:
    found = part.get(key, [])
    return found if isinstance(found, list) else [found]


def _is_name(name: object) -> bool:
    return isinstance(name, str) and NAME.fullmatch(name) is not None


def _check_defaults(schema: object, defaults: Defaults) -> None:
    match schema:
        case Mapping():
            for field in schema.get("fields", ()):
                if "." in field["name"]:
                    raise _wrong(f"the name {field['name']!r:.60} is not allowed", NAMES_HINT)
                if "default" in field:
                    try:
                        defaults.of(field)
                        json.dumps(field["default"], allow_nan=False)
                    except ValueError as error:
                        raise _wrong(f"field {field['name']}: {error}") from error
                _check_defaults(field["type"], defaults)
            for key in ("items", "values", "type"):
                _check_defaults(schema.get(key), defaults)
        case list():
            for each in schema:
                _check_defaults(each, defaults)


def _refuse_marks(part: object) -> None:
    if isinstance(part, Mapping):
        for name, value in part.items():
            if str(name).startswith(PARSED_MARK):
                raise _wrong(f"the name {name!r:.100} is not allowed in it")
            _refuse_marks(value)
    elif isinstance(part, list):
        for each in part:
            _refuse_marks(each)


def _wrong(message: str, hint: str = "") -> UserError:
    return UserError([Problem(message=message, hint=hint)])
