"""Records that are lines of JSON, and files that are one record."""

from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

from waybill.cli.sending.units import Unit, Units


def read_ndjson(file: BinaryIO, options: Mapping[str, str]) -> Units:
    return Units(each=_lines(file))


def read_raw(file: BinaryIO, options: Mapping[str, str]) -> Units:
    content = file.read()
    return Units(each=iter([(content, 1, 1)] if content else []))


def _lines(file: Iterable[bytes]) -> Iterator[Unit]:
    for number, line in enumerate(file, start=1):
        if record := line.strip():
            yield record + b"\n", 1, number
