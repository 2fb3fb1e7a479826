"""Reads Avro object containers: each record becomes the JSON object that it represents.

The blocks are split here and not by the library, which unpacks a block of any size at once.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any, Final
from uuid import UUID

import fastavro
from fastavro.read import SchemaResolutionError
from fastavro.types import Schema

from waybill_ingress.core.encoders.avro_records import AvroRecords
from waybill_ingress.core.rows import RowReader, row_refusal
from waybill_shared.contract.errors import ContractError, Refusal
from waybill_shared.contract.formats.avro_schemas import PARSED_MARK
from waybill_shared.contract.formats.avro_values import NoValue
from waybill_shared.contract.problems import Slug

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16
BLOCK_BYTES_MAX: Final = 2_000_000  # unpacked: writers make 16 to 64 kB
NESTED_BYTES_MAX: Final = 200_000  # where each byte may be an array or a map of its own
FREE_BYTES: Final = 100_000  # of a block are not limited by the ratio
RATIO_MAX: Final = 200
HEADER_BYTES_MAX: Final = 1_000_000
DEPTH_MAX: Final = 64
VARINT_BYTES_MAX: Final = 10
RAW_DEFLATE: Final = -15
CHECK_SUM_BYTES: Final = 4  # which some writers leave at the end
PRIMITIVES: Final = {"boolean", "int", "long", "float", "double", "bytes", "string"}
NO_COLUMN: Final = ("timestamp-nanos", "local-timestamp-nanos")


def read_avro(pieces: Iterable[bytes], rows: RowReader) -> None:
    source = _Source(pieces)
    schema, unpack, sync = _header(source)
    most = _check(schema, rows)
    records = _Records(schema, rows)
    block = 0
    while not source.at_end():
        block += 1
        count, size = source.long(), source.long()
        if count < 0:
            raise _wrong(f"block {block} says that it has {count} records")
        packed = source.take(size, most)
        if source.take(SYNC_BYTES) != sync:
            raise _wrong(f"block {block} does not end where it should")
        records.take(count, unpack(packed, most), block)
    records.end()


class _Records:
    """Records of the blocks of one body.

    A record that the input's schema cannot read (a null, or a symbol that it lacks) is rejected
    alone. If that is true of all records, the body is refused.
    """

    def __init__(self, schema: Schema, rows: RowReader) -> None:
        self._schema = schema
        self._rows = rows
        form = rows.rule.form
        self._wanted = form.schema if isinstance(form, AvroRecords) else None
        self._unreadable = 0
        self._first = ""

    def take(self, count: int, data: bytes, block: int) -> None:
        values = BytesIO(data)
        try:
            for _ in range(count):
                self._take_one(values)
        except (ContractError, AssertionError):
            raise
        except Exception as error:
            raise _wrong(f"block {block} is not what its schema says") from error
        if values.read(1):
            raise _wrong(f"block {block} has more than its {count} records")

    def end(self) -> None:
        if self._unreadable and self._unreadable == self._rows.count:
            raise _unreadable(self._first)

    def _take_one(self, values: BytesIO) -> None:
        begin = values.tell()
        try:
            record = fastavro.schemaless_reader(values, self._schema, self._wanted)
        except SchemaResolutionError as error:
            values.seek(begin)
            fastavro.schemaless_reader(values, self._schema, None)
            self._unreadable += 1
            self._first = self._first or str(error)  # the error would keep the block in memory
            self._rows.reject(f"it cannot be read as the input's avroSchema: {error!s:.200}")
        else:
            _take(record, self._rows)


def _take(record: object, rows: RowReader) -> None:
    if isinstance(rows.rule.form, AvroRecords):
        _take_value(record, rows, rows.rule.form)
        return
    try:
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=_plain)
        raw = text.encode()
    except (TypeError, UnicodeEncodeError) as error:
        rows.reject(str(error))
        return
    rows.take_line(raw)


def _take_value(record: object, rows: RowReader, form: AvroRecords) -> None:
    """Keep a record of an Avro input: it was read by the input's schema, and is written by it."""
    try:
        raw, key = form.taken(record, rows.rule.key)
    except ValueError as error:
        rows.reject(str(error))
    else:
        rows.take_checked(raw, key)


def _plain(value: object) -> object:
    """Convert values that JSON has no form for."""
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)  # with all its digits, as a DECIMAL column accepts it
        case NoValue(reason):
            raise TypeError(reason)
        case _:
            kind = "bytes" if isinstance(value, bytes) else type(value).__name__
            raise TypeError(f"a value of Avro's type {kind} is taken by no column")


class _Source:
    """The body, read as far as it is asked for."""

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
        """Read a number: zigzag, with seven bits in a byte."""
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


Unpack = Callable[[bytes, int], bytes]
"""Unpacks a block to at most so many bytes."""


def _header(source: _Source) -> tuple[Schema, Unpack, bytes]:
    if source.at_end() or source.take(len(MAGIC)) != MAGIC:
        raise _wrong("it does not begin as one")
    entries: dict[bytes, bytes] = {}
    left = HEADER_BYTES_MAX
    while count := source.long():
        if count < 0:
            count = -count
            source.long()  # the size in bytes
        for _ in range(count):
            name = source.take(source.long(), left)
            value = source.take(source.long(), left - len(name))
            left -= len(name) + len(value) + 1
            if name in (b"avro.codec", b"avro.schema"):
                entries[name] = value
    codec = entries.get(b"avro.codec", b"null").decode(errors="replace")
    if codec not in CODECS:
        hint = f"write it with one of {', '.join(CODECS)}, or pack the request's body"
        reason = f"the body is packed with Avro's codec {codec!r:.50}, which is not taken"
        raise row_refusal(Slug.BODY_NOT_AVRO, reason, hint=hint)
    return _schema(entries.get(b"avro.schema", b"")), CODECS[codec], source.take(SYNC_BYTES)


def _schema(text: bytes) -> Schema:
    try:
        return fastavro.parse_schema(json.loads(text, object_pairs_hook=_object))
    except Refusal:
        raise
    except Exception as error:
        raise _wrong(f"its schema is none ({type(error).__name__}: {error!s:.200})") from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if any(name.startswith(PARSED_MARK) for name in found):
        raise _wrong("its schema has names that are not taken")
    kind = found.get("logicalType")
    if kind in NO_COLUMN:
        raise _wrong(f"its schema has {kind}, which no column takes")
    return found


def _inflate(packed: bytes, most: int) -> bytes:
    stream = zlib.decompressobj(RAW_DEFLATE)
    try:
        unpacked = stream.decompress(packed, most)
    except zlib.error as error:
        raise _wrong("a block cannot be unpacked") from error
    if stream.unconsumed_tail or len(unpacked) > max(FREE_BYTES, RATIO_MAX * len(packed)):
        raise _wrong(f"a block has more than {most} bytes, or too many, when it is unpacked")
    if not stream.eof or len(stream.unused_data) > CHECK_SUM_BYTES:
        raise _wrong("a block cannot be unpacked: it does not end where it should")
    return unpacked


CODECS: Final[dict[str, Unpack]] = {"null": lambda packed, _: packed, "deflate": _inflate}


def _check(schema: Schema, rows: RowReader) -> int:
    """Refuse a schema that cannot become records of the input, before any record is read.

    Return how large a block may be.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise _wrong("its schema is not that of a record")
    if not isinstance(rows.rule.form, AvroRecords):  # else Avro itself decides what fits
        _refuse_lacking(schema, rows)
    types = _Types()
    types.depth(schema)
    return NESTED_BYTES_MAX if types.nested else BLOCK_BYTES_MAX


def _refuse_lacking(schema: Mapping[str, Any], rows: RowReader) -> None:
    names = {field["name"] for field in schema["fields"]}
    columns = rows.rule.columns
    lacking = [c.name for c in columns if c.required and c.name not in names]
    if lacking or not any(column.name in names for column in columns):
        missing = lacking or [column.name for column in columns]
        reason = f"the writer's schema lacks {', '.join(map(repr, missing)):.300}"
        hint = "columns are fields of the same name, and those that are NOT NULL must be there"
        raise row_refusal(Slug.BODY_NOT_AVRO, reason, hint=hint)


class _Types:
    """The types of a schema, checked so that each value needs bytes.

    Of a type that needs none, or that contains itself, a few bytes could have any number of values.
    """

    def __init__(self) -> None:
        self.nested = False
        """True if there are arrays or maps."""
        self._depths: dict[str, int] = {}

    def depth(self, schema: object, inside: tuple[str, ...] = ()) -> int:
        found = self._depth(schema, inside) if len(inside) <= DEPTH_MAX else DEPTH_MAX + 1
        if found > DEPTH_MAX:
            raise _wrong(f"its schema is nested deeper than {DEPTH_MAX}")
        return found

    def _depth(self, schema: object, inside: tuple[str, ...]) -> int:
        match schema:
            case str() as name:
                return self._named(name, inside)
            case list() as kinds if kinds:
                some = [each for each in kinds if each not in ("null", {"type": "null"})]
                return max((self.depth(each, inside) for each in some), default=0)
            case {"type": "record", "name": str() as name, "fields": list() as fields} if fields:
                within = (*inside, name)
                if len({each["name"] for each in fields}) < len(fields):
                    raise _wrong(f"its schema has a field twice in {name!r:.100}")
                self._depths[name] = 1 + max(self.depth(each["type"], within) for each in fields)
                return self._depths[name]
            case {"type": "array", "items": items} | {"type": "map", "values": items}:
                self.nested = True
                return 1 + self.depth(items, (*inside, ""))
            case {"type": dict() | list() as inner}:
                return self.depth(inner, (*inside, ""))
        return self._plain(schema)

    def _plain(self, schema: object) -> int:
        match schema:
            case {"type": "fixed", "name": str() as name, "size": int() as size} if size > 0:
                self._depths[name] = 0
            case {"type": "enum", "name": str() as name}:
                self._depths[name] = 0
            case {"type": str() as kind} if kind in PRIMITIVES:
                pass
            case _:
                raise _wrong(f"its schema has a type that is not taken: {schema!r:.100}")
        return 0

    def _named(self, name: str, inside: tuple[str, ...]) -> int:
        if name in inside:
            raise _wrong(f"its schema has type {name!r:.100} inside of itself")
        if name in PRIMITIVES:
            return 0
        if name not in self._depths:
            raise _wrong(f"its schema has a type that is not taken: {name!r:.100}")
        return self._depths[name]


def _unreadable(error: str) -> Refusal:
    reason = f"the writer's schema cannot be read as the input's avroSchema: {error:.300}"
    hint = "fields that the writer does not have need a default there"
    return row_refusal(Slug.BODY_NOT_AVRO, reason, hint=hint)


def _wrong(reason: str) -> Refusal:
    return row_refusal(Slug.BODY_NOT_AVRO, f"the body is no Avro container that is taken: {reason}")
