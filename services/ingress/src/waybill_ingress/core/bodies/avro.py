"""Avro object containers: each record becomes the JSON object that it stands for.

The blocks are taken apart here and not by the library, which unpacks one of any size at once.
"""

import json
import zlib
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Final
from uuid import UUID

import fastavro
from fastavro.types import Schema

from waybill_ingress.core.rows import RowReader, row_refusal
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16
BLOCK_BYTES_MAX: Final = 4_000_000  # unpacked: twenty-five times of what writers make
HEADER_BYTES_MAX: Final = 1_000_000
ENTRIES_MAX: Final = 1_000
VARINT_BYTES_MAX: Final = 10
RAW_DEFLATE: Final = -15


def read_avro(pieces: Iterable[bytes], rows: RowReader) -> None:
    source = _Source(pieces)
    schema, unpack, sync = _header(source)
    _check(schema, rows)
    block = 0
    while not source.at_end():
        block += 1
        count, size = source.long(), source.long()
        packed = source.take(size, BLOCK_BYTES_MAX)
        if source.take(SYNC_BYTES) != sync:
            raise _wrong(f"block {block} does not end where it should")
        _take_block(count, unpack(packed), schema, rows, block)


def _take_block(count: int, data: bytes, schema: Schema, rows: RowReader, block: int) -> None:
    values = BytesIO(data)
    for _ in range(count):
        try:
            record = fastavro.schemaless_reader(values, schema, None)
        except (EOFError, ValueError, IndexError, OverflowError, TypeError, KeyError) as error:
            reason = str(error) or type(error).__name__
            raise _wrong(f"block {block} is not what its schema says: {reason:.200}") from error
        _take(record, rows)
    if values.read(1):
        raise _wrong(f"block {block} has more than its {count} records")


def _take(record: object, rows: RowReader) -> None:
    try:
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=_plain)
        raw = text.encode()
    except (TypeError, UnicodeEncodeError) as error:
        rows.reject(str(error))
        return
    rows.take_line(raw)


def _plain(value: object) -> object:
    """What JSON has no form of its own for."""
    match value:
        case datetime():
            text = value.isoformat()
            return text.replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)  # as a DECIMAL column takes it, with all its digits
        case UUID():
            return str(value)
        case _:
            kind = "bytes" if isinstance(value, bytes) else type(value).__name__
            raise TypeError(f"a value of Avro's type {kind} is taken by no column")


class _Source:
    """The body, read as far as is asked for."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held = b""
        self._at = 0

    def at_end(self) -> bool:
        return not self._has(1)

    def take(self, size: int, most: int | None = None) -> bytes:
        if size < 0 or (most is not None and size > most):
            raise _wrong(f"a part of {size} bytes, where {most} is the most")
        if not self._has(size):
            raise _wrong("it is cut off")
        taken = self._held[self._at : self._at + size]
        self._at += size
        return taken

    def long(self) -> int:
        """Zigzag, seven bits a byte."""
        value = 0
        for shift in range(VARINT_BYTES_MAX):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << (7 * shift)
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise _wrong("a number in it does not end")

    def _has(self, size: int) -> bool:
        if len(self._held) - self._at >= size:
            return True
        held = [self._held[self._at :]]
        have = len(held[0])
        while have < size and (piece := next(self._pieces, None)) is not None:
            held.append(piece)
            have += len(piece)
        self._held, self._at = b"".join(held), 0
        return have >= size


Unpack = Callable[[bytes], bytes]


def _header(source: _Source) -> tuple[Schema, Unpack, bytes]:
    if source.at_end() or source.take(len(MAGIC)) != MAGIC:
        raise _wrong("it does not begin as one")
    entries: dict[str, bytes] = {}
    while count := source.long():
        if count < 0:
            count = -count
            source.long()  # the size in bytes
        for _ in range(count):
            name = source.take(source.long(), HEADER_BYTES_MAX).decode(errors="replace")
            entries[name] = source.take(source.long(), HEADER_BYTES_MAX)
            if len(entries) > ENTRIES_MAX:
                raise _wrong("its header does not end")
    codec = entries.get("avro.codec", b"null").decode(errors="replace")
    if codec not in CODECS:
        hint = f"write it with one of {', '.join(CODECS)}, or pack the request's body"
        reason = f"the body is packed with Avro's codec {codec!r:.50}, which is not taken"
        raise row_refusal(Slug.BODY_NOT_AVRO, reason, hint=hint)
    try:
        schema = fastavro.parse_schema(json.loads(entries.get("avro.schema", b"")))
    except (ValueError, RecursionError, fastavro.schema.SchemaParseException) as error:
        raise _wrong(f"its schema is none: {error!s:.200}") from error
    except fastavro.schema.UnknownType as error:
        raise _wrong(f"its schema is none: unknown type {error.name!r:.100}") from error
    return schema, CODECS[codec], source.take(SYNC_BYTES)


def _inflate(packed: bytes) -> bytes:
    stream = zlib.decompressobj(RAW_DEFLATE)
    try:
        unpacked = stream.decompress(packed, BLOCK_BYTES_MAX)
    except zlib.error as error:
        raise _wrong(f"a block cannot be unpacked: {error}") from error
    if stream.unconsumed_tail:
        raise _wrong(f"a block has more than {BLOCK_BYTES_MAX} bytes when it is unpacked")
    return unpacked


CODECS: Final[dict[str, Unpack]] = {"null": lambda packed: packed, "deflate": _inflate}


def _check(schema: Schema, rows: RowReader) -> None:
    """Refuse what cannot become a record of the input, before any of it is read."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise _wrong("its schema is not that of a record")
    names = [field["name"] for field in schema["fields"]]
    lacking = [c.name for c in rows.rule.columns if c.required and c.name not in names]
    if lacking:
        reason = f"the writer's schema lacks {', '.join(map(repr, lacking)):.300}"
        hint = "the columns that are NOT NULL need a field of the same name"
        raise row_refusal(Slug.BODY_NOT_AVRO, reason, hint=hint)
    _Types().take_bytes(schema)


class _Types:
    """Looks at the types of a schema. Refuses those of which a few bytes can hold any number of
    values, or nest without end."""

    def __init__(self) -> None:
        self._named: dict[str, object] = {}

    def take_bytes(self, schema: object, inside: tuple[str, ...] = ()) -> bool:
        """Whether a value of it takes any."""
        match schema:
            case str():
                return self._named_type(schema, inside)
            case list():
                for each in schema:
                    self.take_bytes(each, inside)
            case {"type": "record", "name": str() as name, "fields": list() as fields}:
                self._named[name] = schema
                taken = [self.take_bytes(field["type"], (*inside, name)) for field in fields]
                return any(taken)
            case {"type": "fixed", "name": str() as name, "size": size}:
                self._named[name] = schema
                return bool(size)
            case {"type": "array", "items": items}:
                if not self.take_bytes(items, inside):
                    raise _wrong("its schema has an array of items without any bytes")
            case {"type": "map", "values": values}:
                self.take_bytes(values, inside)
            case {"type": kind}:
                return self.take_bytes(kind, inside)
        return True

    def _named_type(self, name: str, inside: tuple[str, ...]) -> bool:
        if name in inside:
            raise _wrong(f"its schema has type {name!r:.100} inside of itself")
        if name in self._named:
            return self.take_bytes(self._named[name], inside)
        return name != "null"


def _wrong(reason: str) -> Refusal:
    return row_refusal(Slug.BODY_NOT_AVRO, f"the body is no Avro container that is taken: {reason}")
