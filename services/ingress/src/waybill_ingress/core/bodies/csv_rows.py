"""Reads CSV: each row becomes the JSON object that it represents.

What is no CSV is refused completely: after a wrong quote nobody knows where a row is.
"""

import codecs
import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from json.encoder import encode_basestring
from typing import Final

from waybill_ingress.core.rows import NAME_CHARACTERS_MAX, RowReader, row_refusal
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.formats.csv_values import ToJson, converter
from waybill_shared.contract.problems import Slug

UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BOM: Final = "\ufeff"
FIELDS_MAX: Final = 10_000
UNENDED: Final = "unexpected end of data"
OTHER_DELIMITERS: Final = {";": "%3B", "\t": "tab", "|": "%7C"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions:
    """The options that say how to read the body.

    `header`: the first row names the columns; else the fields are those of the manifest, in their
    order. `null`: the text of a field without a value. `line`: the line number of the first row in
    the file that the body is part of. Reasons count from it; None counts from the start of the
    body.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    header: bool = True
    null: str = ""
    encoding: str = "utf-8"
    line: int | None = None


def read_csv(pieces: Iterable[bytes], rows: RowReader, options: CsvOptions) -> None:
    lines = _Lines(pieces, rows, options)
    parsed = csv.reader(
        lines,
        delimiter=options.delimiter,
        quotechar=options.quote or None,
        quoting=csv.QUOTE_MINIMAL if options.quote else csv.QUOTE_NONE,
        escapechar=options.escape or None,
        strict=True,
    )
    csv.field_size_limit(max(csv.field_size_limit(), lines.most))
    table: _Table | None = None
    if not options.header:
        table = _Table(_declared(rows), rows, options.null)
        lines.count_from(options.line)
    try:
        for fields in parsed:
            if not fields:
                pass  # an empty line
            elif table is None:
                table = _Table(_named(fields, rows, lines.start), rows, options.null)
                lines.count_from(options.line)
            else:
                table.take(fields, lines.start)
            lines.begin()
    except csv.Error as error:
        reason = str(error)
        if reason == UNENDED:
            reason = "a quote is opened and never closed, or nothing follows an escape"
        elif "universal-newline" in reason:
            reason = "a line ends with CR alone"
        raise _wrong(f"{reason}, in the record that begins at line {lines.start}") from error


class _Lines:
    """Counted lines of the text. `start` is the first line of the record that is being read."""

    def __init__(self, pieces: Iterable[bytes], rows: RowReader, options: CsvOptions) -> None:
        self.most = 2 * rows.limits.record_bytes_max
        decoder = codecs.getincrementaldecoder(options.encoding)()
        self._lines = self._split(pieces, decoder, options.encoding)
        self._delimiter = options.delimiter
        self._number = 0
        self._size = 0
        self.start = 1

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._number += 1
            self._size += len(line)
            self._check(self._size)
            if line.count(self._delimiter) > FIELDS_MAX:
                raise _wrong(f"line {self._number} has more than {FIELDS_MAX} fields")
            yield line

    def count_from(self, line: int | None) -> None:
        """Give the next line this number, if the sender has named one."""
        if line is not None:
            self._number = line - 1
            self.start = line

    def begin(self) -> None:
        """Start another record."""
        self.start = self._number + 1
        self._size = 0

    def _split(
        self, pieces: Iterable[bytes], decoder: codecs.IncrementalDecoder, encoding: str
    ) -> Iterator[str]:
        rest, first, final = "", True, False
        for piece in _with_end(pieces):
            final = piece is None
            try:
                text = decoder.decode(piece or b"", final)
            except UnicodeDecodeError as error:
                if first and encoding == "utf-8" and error.object[:2] in UTF_16:
                    raise _wrong("the body is UTF-16: name it, `encoding=utf-16`") from error
                before = error.object[: error.start].decode(encoding, "ignore").count("\n")
                wrong = self._number + before + 1
                raise _wrong(f"line {wrong}: there is a byte that is not {encoding}") from error
            except UnicodeError as error:
                raise _wrong(f"the body is not {encoding}: {error}") from error
            if first and text:
                text, first = text.removeprefix(BOM), False
            *whole, rest = (rest + text).split("\n")
            for line in whole:
                yield line + "\n"
            self._check(len(rest))
        if rest:
            yield rest

    def _check(self, size: int) -> None:
        if size > self.most:
            raise _wrong(
                f"the record that begins at line {self.start} has more than {self.most} characters"
            )


class _Table:
    """Rows with these fields. `names` are the names of the fields."""

    def __init__(self, names: list[str], rows: RowReader, null: str) -> None:
        columns = {column.name: column for column in rows.rule.columns}
        self._rows = rows
        self._null = null
        self._width = len(names)
        self._fields: list[tuple[str, ToJson, str | None]] = []
        for name in names:
            column = columns.get(name)
            absent = None
            if column is not None and column.required:
                absent = f"{name}: is null, and the column is NOT NULL"
            convert = converter(column) if column else _unknown
            self._fields.append((f"{encode_basestring(name)}:", convert, absent))
        self._key = names.index(rows.rule.key) if rows.rule.key is not None else None

    def take(self, fields: list[str], line: int) -> None:
        if len(fields) != self._width:
            some = f"{len(fields)} field{'s' if len(fields) != 1 else ''}"
            self._reject(fields, f"line {line}: {some}, where {self._width} are expected")
            return
        parts, null = [], self._null
        for number, (text, (name, convert, absent)) in enumerate(
            zip(fields, self._fields, strict=True), 1
        ):
            if text == null:
                if absent is not None:
                    self._reject(fields, f"line {line}, field {number}: {absent}")
                    return
                parts.append(f"{name}null")
                continue
            json, reason = convert(text)
            if reason is not None:
                self._reject(fields, f"line {line}, field {number}: {reason}")
                return
            parts.append(name + json)
        raw = f"{{{','.join(parts)}}}".encode()
        if len(raw) > self._rows.limits.record_bytes_max:
            self._reject(fields, f"line {line}: {self._rows.too_long(len(raw))}")
        else:
            self._rows.take_made(raw, self._key_of(fields, parts))

    def _reject(self, fields: list[str], reason: str) -> None:
        text = StringIO()
        csv.writer(text, lineterminator="").writerow(fields)
        self._rows.reject(reason, text.getvalue().encode(errors="replace"))

    def _key_of(self, fields: list[str], parts: list[str]) -> bytes | None:
        """Return the key as for a record sent as JSON: the text of a string, a number as it is
        written.
        """
        at = self._key
        if at is None or fields[at] == self._null:
            return None
        name = self._fields[at][0]
        json = parts[at][len(name) :]
        return (fields[at] if json.startswith('"') else json).encode()


def _declared(rows: RowReader) -> list[str]:
    return [column.name for column in rows.rule.columns]


def _named(names: list[str], rows: RowReader, line: int) -> list[str]:
    """Check the header: it must have every column, and each name once."""
    declared = _declared(rows)
    given, known = set(names), set(declared)
    if len(given) < len(names):
        (twice, _), *_ = Counter(names).most_common(1)
        raise _wrong(f"line {line}: the header has {twice[:100]!r} twice")
    for name in names:
        if len(name) > NAME_CHARACTERS_MAX:
            most = NAME_CHARACTERS_MAX
            raise _wrong(f"line {line}: the header has a name of more than {most} characters")
        if rows.rule.strict and name not in known:
            raise _wrong(
                f"line {line}: the header has {name[:100]!r}, and the input has no such column"
            )
    lacking = [name for name in declared if name not in given]
    if lacking:
        reason = f"line {line}: the header lacks {', '.join(map(repr, lacking)):.300}"
        hint = f"its columns are {', '.join(declared):.300}"
        if not given & known:
            hint += _guess(names)
        raise row_refusal(Slug.BODY_NOT_CSV, reason, hint=hint)
    return names


def _guess(names: list[str]) -> str:
    for delimiter, written in OTHER_DELIMITERS.items():
        if len(names) == 1 and delimiter in names[0]:
            return f"; it looks as if fields end with {delimiter!r}: add `delimiter={written}`"
    return "; a body without a header is sent with `header=absent`"


def _unknown(text: str) -> tuple[str, str | None]:
    return encode_basestring(text), None


def _wrong(reason: str) -> Refusal:
    return row_refusal(Slug.BODY_NOT_CSV, reason)


def _with_end(pieces: Iterable[bytes]) -> Iterator[bytes | None]:
    yield from pieces
    yield None
