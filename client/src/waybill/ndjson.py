"""Turns records into lines, and lines into requests of a bounded size.

Never reads a record's meaning: what is wrong in it, Waybill says.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass

from waybill.errors import Unusable
from waybill.values import Dataclass, write

CHUNK_RECORDS_MAX = 1_000  # one request stays quick to answer
CHUNK_BYTES_MAX = 1_000_000  # well under the cap of ingress

Record = Mapping[str, object] | Dataclass | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Lines for one request; `line_numbers` has the source's line, from 1, of each."""

    lines: tuple[bytes, ...]
    line_numbers: tuple[int, ...]


def encode(records: Iterable[Record]) -> bytes:
    """One line per record; a record that is bytes goes as it is."""
    if isinstance(records, Mapping | bytes | str) or is_dataclass(records):
        raise TypeError("records should be an iterable: put a single record into a list")
    return b"".join(_line(index, record) for index, record in enumerate(records))


def chunks(
    lines: Iterable[bytes],
    *,
    records_max: int = CHUNK_RECORDS_MAX,
    bytes_max: int = CHUNK_BYTES_MAX,
) -> Iterator[Chunk]:
    """Groups the lines that are not blank; a line longer than `bytes_max` goes alone."""
    taken: list[bytes] = []
    numbers: list[int] = []
    size = 0
    for number, line in enumerate(lines, start=1):
        record = line.strip()
        if not record:
            continue
        if taken and (len(taken) == records_max or size + len(record) + 1 > bytes_max):
            yield Chunk(lines=tuple(taken), line_numbers=tuple(numbers))
            taken, numbers, size = [], [], 0
        taken.append(record)
        numbers.append(number)
        size += len(record) + 1
    if taken:
        yield Chunk(lines=tuple(taken), line_numbers=tuple(numbers))


def _line(index: int, record: Record) -> bytes:
    if isinstance(record, bytes):
        line = record.rstrip(b"\r\n")
        if not line.strip():
            raise Unusable(f"record {index} is blank: leave it out")
        if b"\n" in line:
            raise Unusable(f"record {index} has a line break: one record is one line")
        return line + b"\n"
    return write(record, f"record {index}") + b"\n"
