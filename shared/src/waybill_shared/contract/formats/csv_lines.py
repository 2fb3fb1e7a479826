"""A record of CSV as it is written in Kafka: one line, without a header.

Stages read it with Spark's `from_csv`. This module reads and writes the same form, for ingress, and
to explain what is wrong with a record.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, model_validator

from waybill_shared.contract.manifest.fields import Strict

NAMES: Final = {"tab": "\t", "space": " ", "none": ""}
"""Names for characters that nobody can see in a manifest, or that cannot be in it."""
NO_TEXT: Final = "\uffff"
"""Ends a line where Spark must accept no other end. It is no valid character."""
NULL_CHARACTERS_MAX: Final = 1_000
FIELDS_MAX: Final = 20_000  # more than columns can be


def character(text: str) -> str:
    """Return the character that `text` is or names. Raise ValueError if CSV cannot use it."""
    found = NAMES.get(text, text)
    if len(found) > 1 or found in ("\r", "\n"):
        raise ValueError(f"{text!r:.80} is not one character; take one, or {', '.join(NAMES)}")
    return found


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(text: str) -> str:
    found = character(text)
    if not _is_text(found):
        raise ValueError(f"{text!r} is no character")
    if found and (found.isalnum() or not "\t" <= found < "\ufffe" or found in "+-."):
        raise ValueError(f"{text!r} can be in a number or in a word: take another character")
    return found


Character = Annotated[str, AfterValidator(_plain)]


class CsvForm(Strict):
    """Without `quote` no field has a delimiter in it; without `escape` a quote is doubled. What is
    `nullText`, in quotes or not, is null."""

    delimiter: Character = ","
    quote: Character = '"'
    escape: Character = ""
    null_text: str = Field(default="", max_length=NULL_CHARACTERS_MAX)

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.delimiter in ("", "\\"):
            raise ValueError("the delimiter is one character, and no backslash")
        if self.escape and not self.quote:
            raise ValueError("escape is for a quote inside of quotes, and there is no quote")
        if len({self.delimiter, self.quote, self.escape} - {""}) < 1 + bool(self.quote) + bool(
            self.escape
        ):
            raise ValueError("delimiter, quote and escape are not different")
        if any("\t" <= each <= " " for each in (self.quote, self.escape)):
            raise ValueError("quote and escape are no blank and no tab")
        if NO_TEXT in self.null_text or not _is_text(self.null_text):
            raise ValueError("nullText has a character that is none")
        if self._must_be_quoted(self.null_text):
            raise ValueError(
                f"nullText {self.null_text!r:.80} cannot stand in a line without quotes"
            )
        return self

    def split(self, line: str) -> list[str | None]:
        """Return the fields of a record. Raise ValueError with the place if it is none."""
        return list(self._split(line))

    def join(self, fields: Iterable[str | None]) -> str:
        """Return the record that `split` reads as these fields.

        Raise ValueError with the place if there is none.
        """
        return self.delimiter.join(
            self.null_text if field is None else self._written(number, field)
            for number, field in enumerate(fields, 1)
        )

    def _split(self, line: str) -> Iterator[str | None]:
        if NO_TEXT in line:
            raise ValueError("there is U+FFFF in it, which is no character")
        if line.endswith("\n"):
            line = line[:-1].removesuffix("\r")
        at, number = 0, 1
        while True:
            found = _field(self).match(line, at)
            if found is None:
                what = "a quote that is not closed, or text behind it, or a second line"
                raise ValueError(f"field {number}: {what}")
            quoted, plain = found.groups()
            text = plain if quoted is None else self._unescape(quoted)
            yield None if text == self.null_text else text
            if found.end() == len(line):
                return
            at, number = found.end() + 1, number + 1
            if number > FIELDS_MAX:
                raise ValueError(f"it has more than {FIELDS_MAX} fields")

    def _unescape(self, quoted: str) -> str:
        if not self.escape:
            return quoted.replace(self.quote * 2, self.quote)
        some = re.escape(self.quote + self.escape)
        return re.sub(f"{re.escape(self.escape)}([{some}])", r"\1", quoted)

    def _written(self, number: int, text: str) -> str:
        if text == self.null_text:
            raise ValueError(f"field {number}: the text {text!r:.40} stands for null in this input")
        if NO_TEXT in text:
            raise ValueError(f"field {number}: there is U+FFFF in it, which is no character")
        if not self._must_be_quoted(text):
            return text
        if not self.quote:
            what = "the delimiter or an end of line in it, and the input has no quote"
            raise ValueError(f"field {number}: there is {what}")
        escape = self.escape or self.quote
        text = text.replace(escape, escape * 2)
        if self.escape:
            text = text.replace(self.quote, escape + self.quote)
        return f"{self.quote}{text}{self.quote}"

    def _must_be_quoted(self, text: str) -> bool:
        begins = bool(self.quote) and text.startswith(self.quote)
        return begins or any(each in text for each in (self.delimiter, "\n", "\r"))


def inside_quotes(form: CsvForm) -> str:
    """Return a pattern, also for Java, of the text that is allowed between two quotes."""
    quote, escape = re.escape(form.quote), re.escape(form.escape)
    if not escape:
        return rf"(?:[^{quote}]++|{quote}{quote})*+"
    return rf"(?:[^{quote}{escape}]++|{escape}{quote}|{escape}{escape}|{escape})*+"


@cache
def _field(form: CsvForm) -> re.Pattern[str]:
    """Return a pattern of a field, in quotes or not, up to a delimiter or the end.

    No part can match in two ways.
    """
    delimiter, quote = re.escape(form.delimiter), re.escape(form.quote)
    end = rf"(?={delimiter}|\Z)"
    if not form.quote:
        return re.compile(rf"(?!)()|([^{delimiter}\n]*+){end}")
    inside = inside_quotes(form)
    blanks = rf"(?:(?!{delimiter})[ \t])*+"
    plain = rf"(?!{quote})[^{delimiter}\n]*+"
    return re.compile(rf"{quote}({inside}){quote}{blanks}{end}|({plain}){end}")
