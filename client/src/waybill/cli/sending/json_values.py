"""Reads JSON values, one after the other or in an array; each is sent as it is in the file."""

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from waybill.cli.sending.units import BYTES_MAX, Unit, Units
from waybill.errors import WaybillError

READ_BYTES = 1_000_000
GOES_ON = ("", *".0123456789eE+-")  # after a value: the end of the text, or more of a number
SPACE = re.compile(r"[ \t\n\r]*")


def read_values(file: BinaryIO, options: Mapping[str, str]) -> Units:
    return Units(each=_Values(file).each())


class _Values:
    """The text that is not parsed yet; more of the file is read when a value needs it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        self._parse = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
        self._text = ""
        self._at = 0
        self._ended = False
        self._count = 0

    def each(self) -> Iterator[Unit]:
        array = self._next() == "["
        self._at += array
        if not array or self._next() != "]":
            while self._next():
                yield self._value()
                if array and not self._go_on():
                    break
            else:
                self._refuse_if(array, "the array has no end")
        self._at += array
        self._refuse_if(array and bool(self._next()), "something follows the array")

    def _value(self) -> Unit:
        """Read the value that starts here; it has ended for sure only where something follows
        it."""
        self._count += 1
        while True:
            try:
                _, end = self._parse(self._text, self._at)
                reason = ""
            except (ValueError, RecursionError) as error:
                end, reason = len(self._text), getattr(error, "msg", "it is nested too deep")
            ended = self._text[end : end + 1] not in GOES_ON
            if ended or not self._read_on():
                break
        self._refuse_if(bool(reason), reason)
        content = self._text[self._at : end].encode("utf-8", "surrogateescape")
        self._at = end
        return content + b"\n", 1, self._count

    def _go_on(self) -> bool:
        """Return True if another value of the array follows."""
        mark = self._next()
        self._refuse_if(not mark, "the array has no end")
        self._refuse_if(mark not in (",", "]"), "the array goes on with neither , nor ]")
        self._at += mark == ","
        return mark == ","

    def _next(self) -> str:
        """Return the next character that is no space; empty at the end."""
        while True:
            space = SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or not self._read_on():
                return self._text[self._at : self._at + 1]

    def _read_on(self) -> bool:
        """Read more of the file; return False at its end, or if a value is too large for
        Waybill."""
        if self._ended or len(self._text) - self._at > BYTES_MAX:
            return False
        piece = self._file.read(max(READ_BYTES, len(self._text) - self._at))
        self._ended = not piece
        self._text = self._text[self._at :] + self._decode(piece, final=not piece)
        self._at = 0
        return True

    def _refuse_if(self, wrong: bool, reason: str) -> None:
        if wrong:
            raise WaybillError(f"not JSON at record {self._count}: {reason}")
