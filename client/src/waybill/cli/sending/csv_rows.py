"""Rows of CSV as they stand in the file, found by the parser that Waybill itself uses: a line end
in quotes ends no row. The header goes in front of each part."""

import codecs
import csv
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from waybill.cli.sending.units import BYTES_MAX, Unit, Units
from waybill.errors import WaybillError

CHARACTERS = {"tab": "\t", "space": " ", "none": ""}
READ_BYTES = 65_536
UTF_8 = ("utf-8", "utf8")
Lines = Iterator[tuple[bytes, str]]


def read_csv(file: BinaryIO, options: Mapping[str, str]) -> Units:
    """Read rows in UTF-8, whatever the file is in."""
    encoding = options.get("encoding", "utf-8")
    rows = _Rows(
        _plain(file) if encoding.lower() in UTF_8 else _transcoded(file, encoding), options
    )
    head = b""
    if options.get("header", "present") == "present":
        head = next((unit.content for unit in rows if unit.records), b"")
    return Units(each=rows, head=head)


class _Rows:
    """An iterator of the rows, and of the empty lines between them, which are counted as lines."""

    def __init__(self, lines: Lines, options: Mapping[str, str]) -> None:
        self._lines = lines
        self._taken: list[bytes] = []
        self._size = 0
        self._begun = 1
        csv.field_size_limit(max(csv.field_size_limit(), BYTES_MAX))
        delimiter, quote, escape = characters_of(options)
        self._parsed = csv.reader(
            self._texts(),
            delimiter=delimiter,
            quotechar=quote or None,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
            escapechar=escape or None,
            strict=True,
        )

    def __iter__(self) -> Iterator[Unit]:
        return self

    def __next__(self) -> Unit:
        try:
            fields = next(self._parsed)
        except csv.Error as error:
            raise self._wrong(str(error)) from error
        unit = Unit(b"".join(self._taken), 1 if fields else 0, self._begun)
        self._begun += len(self._taken)
        self._taken, self._size = [], 0
        return unit

    def _texts(self) -> Iterator[str]:
        for raw, text in self._lines:
            self._taken.append(raw)
            self._size += len(raw)
            if self._size > BYTES_MAX:
                raise self._wrong(f"has more than {BYTES_MAX} bytes: is a quote never closed?")
            yield text

    def _wrong(self, reason: str) -> WaybillError:
        return WaybillError(f"not CSV: the record that begins at line {self._begun}: {reason}")


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


def _plain(file: BinaryIO) -> Lines:
    """What is not UTF-8 passes: Waybill names its line."""
    for number, line in enumerate(file):
        raw = line if number else line.removeprefix(codecs.BOM_UTF8)
        yield raw, raw.decode("utf-8", "surrogateescape")


def _transcoded(file: BinaryIO, encoding: str) -> Lines:
    decoder = codecs.getincrementaldecoder(encoding)()
    text = ""
    try:
        while piece := file.read(READ_BYTES):
            *lines, text = (text + decoder.decode(piece)).split("\n")
            yield from ((f"{line}\n".encode(), f"{line}\n") for line in lines)
        text += decoder.decode(b"", final=True)
    except UnicodeError as error:
        raise WaybillError(f"the file is not {encoding}: {error}") from error
    if text:
        yield text.encode(), text
