"""Writes records of an Avro input: one value, without its schema."""

import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from io import BytesIO
from typing import Any, Final
from uuid import UUID

import fastavro
from fastavro.types import Schema

from waybill_ingress.core.encoders.form import JsonRow, RecordForm, plain_text
from waybill_shared.contract.formats.avro_defaults import Defaults
from waybill_shared.contract.formats.avro_reader import ValueReader
from waybill_shared.contract.formats.avro_schemas import AvroSchema, is_nullable, parse_schema
from waybill_shared.contract.formats.avro_values import reason_in
from waybill_shared.contract.manifest.formats import RecordKeys
from waybill_shared.contract.manifest.values import DECIMAL_CONTEXT

Convert = Callable[[str, Any], object]
"""Converts the value of a field (never null), as JSON has it, to what the library writes."""
_NOTHING: Final = object()
FLOAT: Final = struct.Struct("<f")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
PER_UNIT: Final = {
    "timestamp-millis": timedelta(milliseconds=1),
    "timestamp-micros": timedelta(microseconds=1),
}


def form_of(keys: RecordKeys) -> RecordForm:
    return AvroRecords(keys.avro_schema or {})


class AvroRecords:
    def __init__(self, schema: AvroSchema) -> None:
        self.schema = parse_schema(schema)
        assert isinstance(self.schema, dict)
        defaults = Defaults(self.schema)
        self._convert = _Converters(defaults).of(self.schema)
        self._reader = ValueReader(schema)
        made = [(field, defaults.of(field)) for field in _with_defaults(self.schema)]
        for field, default in made:  # the library writes it without conversion
            field["default"] = default

    def write(self, row: JsonRow) -> bytes:
        return self._bytes_of(self._convert("", row))

    def key_of(self, raw: bytes, name: str | None) -> bytes | None:
        value = self._reader.read(raw)
        return None if name is None else _text_of(name, value[name])

    def write_value(self, value: object, name: str | None) -> tuple[bytes, bytes | None]:
        """Return the record and its key, for a value that was read by the schema."""
        reason = reason_in(value)
        if reason is not None:
            raise ValueError(reason)
        raw = self._bytes_of(value)
        return raw, self.key_of(raw, name)

    def _bytes_of(self, value: object) -> bytes:
        written = BytesIO()
        try:
            fastavro.schemaless_writer(written, self.schema, value)
        except Exception as error:  # the library raises many kinds of errors for a wrong value
            raise ValueError(f"the Avro schema does not take it: {error!s:.200}") from error
        return written.getvalue()


class _Converters:
    """Converters for the types of a parsed schema. Named types are remembered."""

    def __init__(self, defaults: Defaults) -> None:
        self._named: dict[str, Convert] = {}
        self._defaults = defaults

    def of(self, schema: Schema) -> Convert:
        inner = self._of(schema)
        return _or_null(inner) if is_nullable(schema) else _not_null(inner)

    def _of(self, schema: Schema) -> Convert:
        match schema:
            case str():
                return self._named.get(schema) or PLAIN.get(schema, _as_it_is)
            case list():
                (some,) = (each for each in schema if each != "null")
                return self._of(some)
            case {"logicalType": str() as logical}:
                return self._remember(schema, _logical(schema, logical))
            case {"type": "array", "items": items}:
                item = self.of(items)
                return lambda name, value: [item(name, each) for each in value]
            case {"type": "map", "values": values}:
                inner = self.of(values)
                return lambda name, value: {k: inner(name, each) for k, each in value.items()}
            case {"type": "record", "fields": fields}:
                return self._remember(schema, self._record(fields))
            case {"type": "enum", "symbols": symbols}:
                return self._remember(schema, _enum(symbols))
            case {"type": "fixed", "size": size}:
                return self._remember(schema, _of_size(size))
            case {"type": inner_type}:
                return self._of(inner_type)
        raise AssertionError(f"the manifest was checked, and has {schema!r:.100}")

    def _record(self, fields: list[dict[str, Any]]) -> Convert:
        """Return the converter of a record. A missing field gets its default, and so does null if
        the type does not allow it.
        """
        known = [(each["name"], self.of(each["type"]), self._default(each)) for each in fields]

        def convert(name: str, row: Mapping[str, Any]) -> object:
            return {
                each: default[0]
                if default and row.get(each, _NOTHING) in default[1]
                else inner(each, row.get(each))
                for each, inner, default in known
            }

        return convert

    def _default(self, field: Mapping[str, Any]) -> tuple[object, tuple[object, ...]] | None:
        """Return the default, and the values that it replaces."""
        if "default" not in field:
            return None
        instead = (_NOTHING,) if is_nullable(field["type"]) else (_NOTHING, None)
        return self._defaults.of(field), instead

    def _remember(self, schema: Mapping[str, Any], convert: Convert) -> Convert:
        if "name" in schema:
            self._named[schema["name"]] = convert
        return convert


def _with_defaults(part: object) -> Iterator[dict[str, Any]]:
    match part:
        case dict():
            for field in part.get("fields", ()):
                yield from _with_defaults(field["type"])
                if "default" in field:
                    yield field
            for key in ("items", "values", "type"):
                yield from _with_defaults(part.get(key))
        case list():
            for each in part:
                yield from _with_defaults(each)


def _or_null(convert: Convert) -> Convert:
    return lambda name, value: None if value is None else convert(name, value)


def _not_null(convert: Convert) -> Convert:
    def given(name: str, value: object) -> object:
        if value is None:
            raise ValueError(f"{name}: is null, and its Avro type is not")
        return convert(name, value)

    return given


def _as_it_is(_: str, value: object) -> object:
    return value


def _float(name: str, value: int | Decimal | str) -> object:
    """Convert to 32 bits. A value that would become infinite is refused."""
    try:
        (found,) = FLOAT.unpack(FLOAT.pack(float(value)))
    except OverflowError as error:
        raise ValueError(f"{name}: {value!s:.40} does not fit FLOAT") from error
    return float(found)


def _bytes(_: str, value: str) -> object:
    return b64decode(value, validate=True)


def _uuid(name: str, value: object) -> object:
    text = plain_text(name, value)
    try:
        UUID(text)
    except ValueError as error:
        raise ValueError(f"{name}: {text!r:.60} is no UUID") from error
    return text


def _enum(symbols: list[str]) -> Convert:
    def convert(name: str, value: object) -> object:
        if value not in symbols:
            raise ValueError(f"{name}: {value!r:.60} is none of {', '.join(symbols):.200}")
        return value

    return convert


def _of_size(size: int) -> Convert:
    def convert(name: str, value: str) -> object:
        found = b64decode(value, validate=True)
        if len(found) != size:
            raise ValueError(f"{name}: {len(found)} bytes, where {size} are expected")
        return found

    return convert


def _logical(schema: Mapping[str, Any], logical: str) -> Convert:
    match logical:
        case "decimal":
            unit = Decimal(1).scaleb(-schema.get("scale", 0))
            return lambda _, value: Decimal(value).quantize(unit, ROUND_HALF_UP, DECIMAL_CONTEXT)
        case "date":
            return lambda _, value: date.fromisoformat(value)
        case "uuid":
            return _uuid
        case _:
            return lambda name, value: (_moment(name, value) - EPOCH) // PER_UNIT[logical]


def _moment(name: str, value: int | str) -> datetime:
    if isinstance(value, int):
        return datetime.fromtimestamp(value, UTC)
    day, clock = value[:10], value[10:].lstrip(" T")
    found = datetime.fromisoformat(f"{day}T{clock}")
    try:
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except OverflowError as error:
        raise ValueError(f"{name}: {value} is outside of the years 1 to 9999 in UTC") from error


def _text_of(name: str, value: object) -> bytes | None:
    """Return the text that JSON would have for the value."""
    match value:
        case None:
            return None
        case bytes():
            return b64encode(value)
        case datetime() | date():
            return value.isoformat().replace("+00:00", "Z").encode()
        case list() | dict():
            raise ValueError(f"{name}: the key is a string, a number or a boolean")
        case _:
            return plain_text(name, value).encode()


PLAIN: Final[dict[str, Convert]] = {
    "bytes": _bytes,
    "string": plain_text,
    "float": _float,
    "double": lambda _, value: float(value),
}
