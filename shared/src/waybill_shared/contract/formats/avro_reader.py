"""Reads values of Avro that are not in a container file, strictly by the specification.

What a wrong writer may have written is refused, and not accepted as something similar: Spark might
read it as something else.
"""

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeVar

from fastavro.types import Schema

from waybill_shared.contract.formats.avro_schemas import PRIMITIVES, AvroSchema, parse_schema
from waybill_shared.contract.manifest.values import DECIMAL_CONTEXT

NO_VALUE: Final = "it is no value of the Avro schema, or is cut off"
INT_BYTES_MAX: Final = 5
LONG_BYTES_MAX: Final = 10
DAY: Final = date(1970, 1, 1)
MOMENT: Final = datetime(1970, 1, 1, tzinfo=UTC)


class _Source:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._raw) - self._at

    def take(self, size: int) -> bytes:
        if not 0 <= size <= self.left:
            raise ValueError(NO_VALUE)
        self._at += size
        return self._raw[self._at - size : self._at]

    def number(self, bytes_max: int = LONG_BYTES_MAX) -> int:
        """Read a number in zigzag encoding, with seven bits in each byte."""
        bits = 32 if bytes_max == INT_BYTES_MAX else 64
        value = 0
        for shift in range(bytes_max):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << (7 * shift)
            if byte < 0x80:
                break
        else:
            raise ValueError(NO_VALUE)
        if value >> bits:
            raise ValueError(f"a number has more than {bits} bits")
        return (value >> 1) ^ -(value & 1)


T = TypeVar("T")
Read = Callable[[_Source], object]


class ValueReader:
    """Reads the records of one schema, which `columns_of` accepts."""

    def __init__(self, schema: AvroSchema) -> None:
        self._read = _Readers().of(parse_schema(schema))

    def read(self, raw: bytes) -> dict[str, Any]:
        """Read `raw` as one record, and nothing more. Raise ValueError if it is none."""
        source = _Source(raw)
        value = self._read(source)
        if source.left:
            raise ValueError(f"{source.left} bytes stand behind the value of the Avro schema")
        assert isinstance(value, dict)
        return value


class _Readers:
    """Walks through a parsed schema. It remembers what has a name."""

    def __init__(self) -> None:
        self._named: dict[str, Read] = {}

    def of(self, schema: Schema) -> Read:
        match schema:
            case str():
                return self._named.get(schema) or PLAIN[schema]
            case list():
                return _union([self.of(each) for each in schema])
            case {"logicalType": str() as logical}:
                return self._remember(schema, self._logical(schema, logical))
            case {"type": "array", "items": items}:
                item = self.of(items)
                return lambda source: _items(source, item)
            case {"type": "map", "values": values}:
                return _map(self.of(values))
            case {"type": "record", "fields": fields}:
                return self._remember(schema, self._record(fields))
            case {"type": "enum", "symbols": symbols}:
                return self._remember(schema, _enum(symbols))
            case {"type": "fixed", "size": size}:
                return self._remember(schema, lambda source: source.take(size))
            case {"type": inner}:
                return self.of(inner)
        raise AssertionError(f"the manifest was checked, and has {schema!r:.100}")

    def _record(self, fields: list[dict[str, Any]]) -> Read:
        known = [(each["name"], self.of(each["type"])) for each in fields]
        return lambda source: {name: read(source) for name, read in known}

    def _logical(self, schema: Mapping[str, Any], logical: str) -> Read:
        match logical:
            case "decimal":
                size = schema.get("size") if schema["type"] == "fixed" else None
                return _decimal(size, schema["precision"], schema.get("scale", 0))
            case "date":
                return _in_range(logical, lambda source: DAY + timedelta(source.number(5)))
            case "uuid":
                return _string
            case _:
                unit = "milliseconds" if logical.endswith("millis") else "microseconds"
                return _in_range(
                    logical, lambda source: MOMENT + timedelta(**{unit: source.number()})
                )

    def _remember(self, schema: Mapping[str, Any], read: Read) -> Read:
        if "name" in schema:
            self._named[schema["name"]] = read
        return read


def _items(source: _Source, item: Callable[[_Source], T]) -> list[T]:
    found: list[T] = []
    while count := source.number():
        if count < 0:
            source.number()  # the size in bytes
        found += [item(source) for _ in range(abs(count))]
    return found


def _map(inner: Read) -> Read:
    def pair(source: _Source) -> tuple[str, object]:
        return _string(source), inner(source)

    def read(source: _Source) -> object:
        pairs = _items(source, pair)
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key stands twice in a map")
        return found

    return read


def _union(kinds: list[Read]) -> Read:
    def read(source: _Source) -> object:
        index = source.number()
        if not 0 <= index < len(kinds):
            raise ValueError(NO_VALUE)
        return kinds[index](source)

    return read


def _enum(symbols: list[str]) -> Read:
    def read(source: _Source) -> object:
        index = source.number(INT_BYTES_MAX)
        if not 0 <= index < len(symbols):
            raise ValueError(NO_VALUE)
        return symbols[index]

    return read


def _decimal(size: int | None, precision: int, scale: int) -> Read:
    limit = 10**precision

    def read(source: _Source) -> object:
        raw = source.take(source.number() if size is None else size)
        digits = int.from_bytes(raw[:64], "big", signed=True)
        if not raw or len(raw) > 64 or not -limit < digits < limit:
            raise ValueError(f"a decimal has not between 1 and {precision} digits")
        return Decimal(digits).scaleb(-scale, DECIMAL_CONTEXT)

    return read


def _in_range(kind: str, read: Read) -> Read:
    def careful(source: _Source) -> object:
        try:
            return read(source)
        except OverflowError as error:
            raise ValueError(f"a value of Avro's {kind} is out of its range") from error

    return careful


def _boolean(source: _Source) -> bool:
    (byte,) = source.take(1)
    if byte > 1:
        raise ValueError(NO_VALUE)
    return byte == 1


def _string(source: _Source) -> str:
    try:
        return source.take(source.number()).decode()
    except UnicodeDecodeError as error:
        raise ValueError("a string is not UTF-8") from error


PLAIN: Final[Mapping[str, Read]] = {
    "null": lambda _: None,
    "boolean": _boolean,
    "int": lambda source: source.number(INT_BYTES_MAX),
    "long": lambda source: source.number(),
    "float": lambda source: struct.unpack("<f", source.take(4))[0],
    "double": lambda source: struct.unpack("<d", source.take(8))[0],
    "bytes": lambda source: source.take(source.number()),
    "string": _string,
}
assert PLAIN.keys() == {"null", *PRIMITIVES}
