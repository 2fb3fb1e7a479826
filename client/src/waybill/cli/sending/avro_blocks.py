"""Reads an Avro object container block by block, so that it can be sent in parts.

Each block has its number of records, its size and, at its end, the sync marker of the file. The
header goes in front of each part.
"""

from collections.abc import Iterator, Mapping
from typing import BinaryIO

from waybill.cli.sending.units import BYTES_MAX, Unit, Units
from waybill.errors import WaybillError

MAGIC = b"Obj\x01"
MARK_BYTES = 16
LONG_BYTES_MAX = 10


def read_avro(file: BinaryIO, options: Mapping[str, str]) -> Units:
    source = _Source(file)
    if source.take(len(MAGIC)) != MAGIC:
        raise WaybillError("not an Avro object container: it does not begin as one")
    _pass_metadata(source)
    mark = source.take(MARK_BYTES)
    return Units(each=_blocks(source, mark), head=source.drain())


def _pass_metadata(source: "_Source") -> None:
    while count := source.long():
        if count < 0:
            source.long()  # their size in bytes
        for _ in range(2 * abs(count)):  # names and values
            source.take(source.long())


def _blocks(source: "_Source", mark: bytes) -> Iterator[Unit]:
    block, records = 0, 0
    while source.more():
        block += 1
        count, size = source.long(), source.long()
        source.take(size)
        if count < 0 or source.take(MARK_BYTES) != mark:
            raise WaybillError(f"not an Avro object container: block {block} is damaged")
        yield source.drain(), count, records + 1
        records += count


class _Source:
    """The file, read as far as is asked for, and the bytes that `drain` has not returned yet."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._parts: list[bytes] = []
        self._ahead = b""

    def take(self, size: int) -> bytes:
        if not 0 <= size <= BYTES_MAX:
            raise WaybillError(f"not an Avro object container: it has a part of {size} bytes")
        found = self._ahead + self._file.read(size - len(self._ahead))
        self._ahead = b""
        if len(found) < size:
            raise WaybillError("the Avro object container is cut off")
        self._parts.append(found)
        return found

    def long(self) -> int:
        """Read a number in zigzag, seven bits a byte."""
        value = 0
        for shift in range(LONG_BYTES_MAX):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << (7 * shift)
            if byte < 0x80:
                break
        return (value >> 1) ^ -(value & 1)

    def more(self) -> bool:
        """Return True if the file goes on."""
        self._ahead = self._file.read(1)
        return bool(self._ahead)

    def drain(self) -> bytes:
        found, self._parts = b"".join(self._parts), []
        return found
