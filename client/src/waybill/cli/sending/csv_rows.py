"""Rows of CSV as they stand in the file, found by the parser that Waybill itself uses: a line end
in quotes ends no row. The header goes in front of each part."""

import csv
import io
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from waybill.cli.sending.units import BYTES_MAX, Unit, Units
from waybill.errors import WaybillError

CHARACTERS = {"tab": "\t", "space": " ", "none": ""}
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
        quote = character(options.get("quote", '"'))
        self._parsed = csv.reader(
            self._texts(),
            delimiter=character(options.get("delimiter", ",")),
            quotechar=quote or None,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
            escapechar=character(options.get("escape", "none")) or None,
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


def character(text: str) -> str:
    """The character that an option names; ValueError if it is not one."""
    found = CHARACTERS.get(text, text)
    if len(found) > 1 or found in ("\r", "\n"):
        raise ValueError(f"{text!r} is not one character; give one, or {', '.join(CHARACTERS)}")
    return found


def _plain(file: BinaryIO) -> Lines:
    """What is not UTF-8 passes: Waybill names its line."""
    for number, line in enumerate(file):
        raw = line if number else line.removeprefix(BOM_UTF8)
        yield raw, raw.decode("utf-8", "surrogateescape")


def _transcoded(file: BinaryIO, encoding: str) -> Lines:
    text = io.TextIOWrapper(file, encoding, newline="\n")
    try:
        for line in text:
            yield line.encode(), line
    except UnicodeError as error:
        raise WaybillError(f"the file is not {encoding}: {error}") from error
