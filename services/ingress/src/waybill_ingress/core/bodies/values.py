"""Reads JSON: an array of objects, or objects one after the other.

What is not well-formed is refused completely, because nobody knows where its next record starts.
"""

import codecs
import json
from collections.abc import Iterable
from typing import Final

from waybill_ingress.core.rows import TOO_DEEP, RowReader, row_refusal
from waybill_ingress.core.scanning import end_of_number, skip_space
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug

NOT_JSON: Final = "the body is no JSON array of objects, and not JSON objects one after the other"
MORE_MAX: Final = 100_000  # characters read of a value too large for a record, to find its end


def read_values(pieces: Iterable[bytes], rows: RowReader) -> None:
    Values(rows).read(pieces)


class Values:
    """A reader in steps. Each step reads one thing of the text, and returns True if the next step
    may follow.

    It returns False if more of the text is needed first. A subclass may start differently, and may
    handle values, also malformed ones, in its own way.
    """

    def __init__(self, rows: RowReader) -> None:
        self.rows = rows
        self._most = rows.limits.record_bytes_max + MORE_MAX
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._bytes = 0
        self._text = ""
        self._at = 0
        self._line, self._column = 1, 1  # where the text starts, as editors count
        self._counted = (0, 1, 1)  # an index in the text, and its line and column
        self._final = False
        self._awaited = 0  # length of text before the next attempt: else long values would be slow
        self._array = False
        self._step = self._begin
        rows.where = lambda: f"line {self._place(self._at)[0]}"

    def read(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self._feed(piece)
        self._feed(b"", final=True)

    def _take(self, raw: str, value: object) -> None:
        self.rows.take(raw.encode(), value)

    def _handle_malformed(self, reason: str, at: int) -> bool:
        """Handle a value that is not well-formed; the fault is `at` that index."""
        raise self._wrong(reason, at)

    def _feed(self, piece: bytes, *, final: bool = False) -> None:
        self._line, self._column = self._place(self._at)
        self._counted = (0, self._line, self._column)
        self._text = self._text[self._at :] + self._decode(piece, final=final)
        self._at, self._final = 0, final
        if final or len(self._text) >= self._awaited:
            self._awaited = 0
            while self._step():
                pass

    def _decode(self, piece: bytes, *, final: bool) -> str:
        undecoded = len(self._decoder.getstate()[0])
        try:
            return self._decoder.decode(piece, final)
        except UnicodeDecodeError as error:
            at = self._bytes - undecoded + error.start + 1
            raise row_refusal(Slug.BODY_NOT_JSON, f"byte {at} is not UTF-8") from error
        finally:
            self._bytes += len(piece)

    def _begin(self) -> bool:
        if not self._next():
            return False
        self._array = self._text[self._at] == "["
        self._at += self._array
        self._step = self._first if self._array else self._value
        return True

    def _first(self) -> bool:
        if not self._next():
            return self._await_end()
        if self._text[self._at] == "]":
            self._at += 1
            self._step = self._after_array
        else:
            self._step = self._value
        return True

    def _value(self) -> bool:
        if not self._next():
            return self._array and self._await_end()
        text, at = self._text, self._at
        try:
            value, end = self.rows.decode_next(text, at)
        except json.JSONDecodeError as error:
            if self._may_go_on():
                self._awaited = min(2 * (len(text) - at), self._most + 1)
                return False
            return self._handle_malformed(error.msg, error.pos)
        except RecursionError as error:
            raise self._wrong(f"a value is {TOO_DEEP}", at) from error
        if end - at > self._most:
            raise self._wrong("a value is too large", at)
        if text[end - 1] not in '}]"' and end_of_number(text, end) == len(text) and not self._final:
            return False  # it may have more digits
        self._take(text[at:end], value)
        self._at = end
        self._step = self._mark if self._array else self._value
        return True

    def _mark(self) -> bool:
        if not self._next():
            return self._await_end()
        mark = self._text[self._at]
        if mark not in ",]":
            raise self._wrong("expected , or ]", self._at)
        self._at += 1
        self._step = self._after_array if mark == "]" else self._value
        return True

    def _after_array(self) -> bool:
        if self._next():
            raise self._wrong("something follows the array", self._at)
        return False

    def _next(self) -> bool:
        """Return True if there is more than space."""
        self._at = skip_space(self._text, self._at)
        return self._at < len(self._text)

    def _may_go_on(self) -> bool:
        return not self._final and len(self._text) - self._at <= self._most

    def _await_end(self) -> bool:
        if not self._may_go_on():
            raise self._wrong("a value in it does not end", self._at)
        return False

    def _wrong(self, reason: str, at: int) -> Refusal:
        line, column = self._place(at)
        where = f"{reason} at line {line}, column {column}"
        detail = f"{NOT_JSON}: {where}"
        return row_refusal(Slug.BODY_NOT_JSON, detail, line=line, column=column)

    def _place(self, at: int) -> tuple[int, int]:
        begin, line, column = self._counted
        if at < begin:
            begin, line, column = 0, self._line, self._column
        lines = self._text.count("\n", begin, at)
        column = at - self._text.rfind("\n", begin, at) if lines else column + at - begin
        self._counted = (at, line + lines, column)
        return line + lines, column
