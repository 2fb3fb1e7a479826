"""Opens what `waybill send` reads: a file, standard input, or JSON from the command line.

It unpacks gzip.
"""

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import BinaryIO, cast

import typer

from waybill.cli import render
from waybill.cli.sending.formats import FORMATS, GZIP_ENDING, Format, FormatName, format_of
from waybill.cli.sending.units import Unit, Units
from waybill.errors import WaybillError

STDIN = "-"
HINT = "FILE|-|RECORD"
EXPECTED = "give a file, - for standard input, or JSON objects"
JSON_BEGINS = ("{", "[")
GZIP_MAGIC = b"\x1f\x8b"
BUFFER_BYTES = 1_000_000
LOOK_BYTES = 64  # far enough past leading spaces


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSource:
    """Records to send; `size` is that of the file in bytes, or None if it is no file."""

    format: Format
    options: Mapping[str, str]
    units: Units
    size: int | None
    raw: BinaryIO

    def position(self) -> int:
        """Return how many bytes of the file were read, packed or not."""
        return self.raw.tell()


@contextmanager
def open_source(
    source: str, given: FormatName | None, options: Mapping[str, str | None]
) -> Iterator[OpenedSource]:
    """Open the source in the format that is `given`, or that it seems to have."""
    with _raw(source) as raw:
        with _translate_errors(source):
            inline = source.lstrip().startswith(JSON_BEGINS)
            name = given or (FormatName.JSON if inline else format_of(source))
            file = _unpack(raw) if _is_packed(raw, source, name, given) else raw
            if given is None and name is FormatName.NDJSON and _begins_array(file):
                name = FormatName.JSON
            form = FORMATS[name]
            applied = form.options(options)
            units = form.read(file, applied)
        yield OpenedSource(
            format=form,
            options=applied,
            units=replace(units, each=_guard(units.each, source)),
            size=_size(raw),
            raw=raw,
        )


def _guard(units: Iterator[Unit], source: str) -> Iterator[Unit]:
    with _translate_errors(source):
        yield from units


@contextmanager
def _translate_errors(source: str) -> Iterator[None]:
    """Turn what goes wrong while the source is read into an error with its name."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        name = "standard input" if source == STDIN else source
        raise WaybillError(f"cannot read {name}: {error}") from error


@contextmanager
def _raw(source: str) -> Iterator[io.BufferedReader]:
    if source == STDIN:
        if sys.stdin.isatty():
            render.talk("reading records from the terminal, one JSON object a line; Ctrl-D ends")
        yield _peekable(sys.stdin.buffer)
    elif source.lstrip().startswith(JSON_BEGINS):
        yield _peekable(io.BytesIO(source.encode()))
    else:
        with _open(source) as file:
            yield file


def _peekable(file: object) -> io.BufferedReader:
    if isinstance(file, io.BufferedReader):
        return file
    return io.BufferedReader(cast(io.RawIOBase, file))


def _open(source: str) -> io.BufferedReader:
    try:
        return io.BufferedReader(io.FileIO(source), BUFFER_BYTES)
    except OSError as error:
        message = f"cannot read {source}: {error.strerror}; {EXPECTED}"
        raise typer.BadParameter(message, param_hint=HINT) from error


def _is_packed(
    file: io.BufferedReader, source: str, name: FormatName, given: FormatName | None
) -> bool:
    """Return True if the file must be unpacked.

    No text and no Avro begins like gzip, but a raw record may.
    """
    if name is FormatName.RAW:
        return given is None and source.endswith(GZIP_ENDING)
    return file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)


def _unpack(file: io.BufferedReader) -> io.BufferedReader:
    return io.BufferedReader(_Unpacked(file), BUFFER_BYTES)


class _Unpacked(io.RawIOBase):
    """A gzip file in small reads, because a read that fails drops all that it has unpacked."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = gzip.GzipFile(fileobj=file)

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        found = self._file.read1(len(into))
        into[: len(found)] = found
        return len(found)


def _begins_array(file: io.BufferedReader) -> bool:
    return file.peek(LOOK_BYTES)[:LOOK_BYTES].lstrip().startswith(b"[")


def _size(file: io.BufferedReader) -> int | None:
    try:
        found = os.fstat(file.fileno())
    except (OSError, io.UnsupportedOperation):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
