"""Reads rows of CSV as they are in the file, with the parser that Waybill itself uses.

A line end in quotes ends no row. The header goes in front of each part.
"""

import codecs
import csv
import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import BinaryIO

from waybill.cli.sending.units import BYTES_MAX, Unit, Units
from waybill.errors import WaybillError

CHARACTERS = {"tab": "\t", "space": " ", "none": ""}
READ_BYTES = 65_536
UTF_8 = ("utf-8", "utf8")
EMPTY_LINES = (b"\n", b"\r\n")


def read_csv(file: BinaryIO, options: Mapping[str, str]) -> Units:
    """Read rows in UTF-8, whatever the encoding of the file is."""
    encoding = options.get("encoding", "utf-8")
    lines = _plain(file) if encoding.lower() in UTF_8 else _transcode(file, encoding)
    rows = _Rows(lines, options).each()
    head = b""
    if options.get("header", "present") == "present":
        head = next((row for row, records, _ in rows if records), b"")
    return Units(each=rows, head=head)


class _Rows:
    """The rows, and the empty lines between them, which are counted as lines."""

    def __init__(self, lines: Iterator[bytes], options: Mapping[str, str]) -> None:
        self._lines = lines
        csv.field_size_limit(max(csv.field_size_limit(), BYTES_MAX))
        delimiter, quote, escape = characters_of(options)
        marks = [re.escape(mark.encode()) for mark in (quote, escape) if mark]
        self._marked = re.compile(b"|".join(marks) or b"(?!)").search
        self._reader = partial(
            csv.reader,
            delimiter=delimiter,
            quotechar=quote or None,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
            escapechar=escape or None,
            strict=True,
        )

    def each(self) -> Iterator[Unit]:
        """Yield the rows; only one with a quote or an escape in it may have several lines."""
        marked, line = self._marked, 1
        for row in self._lines:
            if marked(row):
                lines = self._lines_of(row, line)
                yield b"".join(lines), 1, line
                line += len(lines)
            else:
                yield row, 0 if row in EMPTY_LINES else 1, line
                line += 1

    def _lines_of(self, first: bytes, number: int) -> list[bytes]:
        """Return the lines of the row that starts with `first`, as far as the parser asks for them.

        Bytes that are not UTF-8 are sent as they are: Waybill names the row.
        """
        found: list[bytes] = []

        def texts() -> Iterator[str]:
            size = 0
            for line in chain((first,), self._lines):
                found.append(line)
                size += len(line)
                if size > BYTES_MAX:
                    raise csv.Error(f"more than {BYTES_MAX} bytes: is a quote never closed?")
                yield line.decode("utf-8", "surrogateescape")

        try:
            next(self._reader(texts()))
        except csv.Error as error:
            where = f"the record that begins at line {number}"
            raise WaybillError(f"not CSV: {where}: {error}") from error
        return found


def check_csv(options: Mapping[str, str]) -> None:
    """Raise ValueError or LookupError for options that no file can be read with."""
    characters_of(options)
    "".encode(options.get("encoding", "utf-8"))


def characters_of(options: Mapping[str, str]) -> tuple[str, str, str]:
    """Return delimiter, quote and escape; the last two may be empty."""
    found = []
    for name, usual in (("delimiter", ","), ("quote", '"'), ("escape", "none")):
        given = options.get(name, usual)
        character = CHARACTERS.get(given, given)
        if len(character) > 1 or character in ("\r", "\n"):
            words = ", ".join(CHARACTERS)
            raise ValueError(f"{name} {given!r} is not one character; give one, or {words}")
        found.append(character)
    delimiter, quote, escape = found
    if not delimiter or delimiter in (quote, escape) or quote == escape != "":
        raise ValueError("delimiter, quote and escape should be different characters")
    return delimiter, quote, escape


def _plain(file: BinaryIO) -> Iterator[bytes]:
    first = file.readline().removeprefix(codecs.BOM_UTF8)
    return chain((first,) if first else (), file)


def _transcode(file: BinaryIO, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    text = ""
    try:
        while piece := file.read(READ_BYTES):
            *lines, text = (text + decoder.decode(piece)).split("\n")
            yield from (f"{line}\n".encode() for line in lines)
        text += decoder.decode(b"", final=True)
    except UnicodeError as error:
        raise WaybillError(f"the file is not {encoding}: {error}") from error
    if text:
        yield text.encode()
