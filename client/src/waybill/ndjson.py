"""Writes records as lines of JSON.

Never reads a record's meaning: Waybill reports what is wrong in it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass

from waybill.errors import Unusable
from waybill.values import Dataclass, write

Record = Mapping[str, object] | Dataclass | bytes


def encode(records: Iterable[Record]) -> bytes:
    """Return one line per record; a record that is bytes goes as it is."""
    if isinstance(records, Mapping | bytes | str) or is_dataclass(records):
        raise TypeError("records should be an iterable: put a single record into a list")
    return b"".join(_line(index, record) for index, record in enumerate(records))


def _line(index: int, record: Record) -> bytes:
    if isinstance(record, bytes):
        line = record.rstrip(b"\r\n")
        if not line.strip():
            raise Unusable(f"record {index} is blank: leave it out")
        if b"\n" in line:
            raise Unusable(f"record {index} has a line break: one record is one line")
        return line + b"\n"
    return write(record, f"record {index}") + b"\n"
