"""Reads Avro object containers: each record becomes the JSON object that it represents.

The blocks are split here and not by the library, which unpacks a block of any size at once.
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
from fastavro.read import SchemaResolutionError
from fastavro.types import Schema

from waybill_ingress.core.bodies.avro_schema import check_schema, wrong_container
from waybill_ingress.core.encoders.avro_records import AvroRecords
from waybill_ingress.core.rows import RowReader, row_refusal
from waybill_shared.contract.errors import ContractError, Refusal
from waybill_shared.contract.formats.avro_schemas import PARSED_MARK
from waybill_shared.contract.formats.avro_values import NoValue
from waybill_shared.contract.problems import Slug

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16
FREE_BYTES: Final = 100_000  # of a block are not limited by the ratio
RATIO_MAX: Final = 200
HEADER_BYTES_MAX: Final = 1_000_000
VARINT_BYTES_MAX: Final = 10
RAW_DEFLATE: Final = -15
CHECK_SUM_BYTES: Final = 4  # which some writers leave at the end
NO_COLUMN: Final = ("timestamp-nanos", "local-timestamp-nanos")


def read_avro(pieces: Iterable[bytes], rows: RowReader) -> None:
    source = _Source(pieces)
    schema, unpack, sync = _header(source)
    most = check_schema(schema, rows)
    records = _Records(schema, rows)
    block = 0
    while not source.at_end():
        block += 1
        count, size = source.long(), source.long()
        if count < 0:
            raise wrong_container(f"block {block} says that it has {count} records")
        packed = source.take(size, most)
        if source.take(SYNC_BYTES) != sync:
            raise wrong_container(f"block {block} does not end where it should")
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
            raise wrong_container(f"block {block} is not what its schema says") from error
        if values.read(1):
            raise wrong_container(f"block {block} has more than its {count} records")

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
        raw, key = form.write_value(record, rows.rule.key)
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
            raise TypeError(f"no column accepts a value of Avro's type {kind}")


class _Source:
    """The body, read as far as it is asked for."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._buffer = b""
        self._at = 0

    def at_end(self) -> bool:
        return not self._has(1)

    def take(self, size: int, most: int | None = None) -> bytes:
        if size < 0 or (most is not None and size > most):
            raise wrong_container(f"a part of {size} bytes, where {most} is the most")
        if not self._has(size):
            raise wrong_container("it is cut off")
        read = self._buffer[self._at : self._at + size]
        self._at += size
        return read

    def long(self) -> int:
        """Read a number: zigzag, with seven bits in a byte."""
        value = 0
        for shift in range(VARINT_BYTES_MAX):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << (7 * shift)
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise wrong_container("a number in it does not end")

    def _has(self, size: int) -> bool:
        if len(self._buffer) - self._at >= size:
            return True
        pieces_read = [self._buffer[self._at :]]
        have = len(pieces_read[0])
        while have < size and (piece := next(self._pieces, None)) is not None:
            pieces_read.append(piece)
            have += len(piece)
        self._buffer, self._at = b"".join(pieces_read), 0
        return have >= size


Unpack = Callable[[bytes, int], bytes]
"""Unpacks a block to at most so many bytes."""


def _header(source: _Source) -> tuple[Schema, Unpack, bytes]:
    if source.at_end() or source.take(len(MAGIC)) != MAGIC:
        raise wrong_container("it does not begin as one")
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
        reason = f"the body is packed with Avro's codec {codec!r:.50}, which is not accepted"
        raise row_refusal(Slug.BODY_NOT_AVRO, reason, hint=hint)
    return _schema(entries.get(b"avro.schema", b"")), CODECS[codec], source.take(SYNC_BYTES)


def _schema(text: bytes) -> Schema:
    try:
        return fastavro.parse_schema(json.loads(text, object_pairs_hook=_object))
    except Refusal:
        raise
    except Exception as error:
        raise wrong_container(
            f"its schema is none ({type(error).__name__}: {error!s:.200})"
        ) from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if any(name.startswith(PARSED_MARK) for name in found):
        raise wrong_container("its schema has names that are not accepted")
    kind = found.get("logicalType")
    if kind in NO_COLUMN:
        raise wrong_container(f"its schema has {kind}, which no column takes")
    return found


def _inflate(packed: bytes, most: int) -> bytes:
    stream = zlib.decompressobj(RAW_DEFLATE)
    try:
        unpacked = stream.decompress(packed, most)
    except zlib.error as error:
        raise wrong_container("a block cannot be unpacked") from error
    if stream.unconsumed_tail or len(unpacked) > max(FREE_BYTES, RATIO_MAX * len(packed)):
        raise wrong_container(
            f"a block has more than {most} bytes, or too many, when it is unpacked"
        )
    if not stream.eof or len(stream.unused_data) > CHECK_SUM_BYTES:
        raise wrong_container("a block cannot be unpacked: it does not end where it should")
    return unpacked


CODECS: Final[dict[str, Unpack]] = {"null": lambda packed, _: packed, "deflate": _inflate}


def _unreadable(error: str) -> Refusal:
    reason = f"the writer's schema cannot be read as the input's avroSchema: {error:.300}"
    hint = "fields that the writer does not have need a default there"
    return row_refusal(Slug.BODY_NOT_AVRO, reason, hint=hint)
