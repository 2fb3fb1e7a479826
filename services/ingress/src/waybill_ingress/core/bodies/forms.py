"""Finds the format of a body by its media type and parameters."""

import codecs
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from waybill_ingress.core.bodies.avro import read_avro
from waybill_ingress.core.bodies.csv_rows import CsvOptions, read_csv
from waybill_ingress.core.bodies.lines import read_ndjson
from waybill_ingress.core.bodies.packed import ENCODINGS
from waybill_ingress.core.bodies.raw import read_raw
from waybill_ingress.core.bodies.values import read_values
from waybill_ingress.core.encoders.raw_records import RawRecords
from waybill_ingress.core.rows import RowReader
from waybill_shared.contract.errors import Problem, Refusal, UserError
from waybill_shared.contract.formats.csv_lines import NAMES, character
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.suggestions import nearest

Reader = Callable[[Iterable[bytes], RowReader], None]
"""Reads a body to its end. What it raises concerns the complete body."""
Parameters = Mapping[str, str]

RAW: Final = "application/octet-stream"
USUAL: Final = ("utf-8", "utf-16", "iso-8859-1", "iso-8859-15", "windows-1252")
ENCODINGS_OF_TEXT: Final = frozenset(
    {
        *USUAL, "utf8", "utf-16-le", "utf-16-be", "utf-16le", "utf-16be", "utf-32", "us-ascii",
        "ascii", "latin1", "latin-1", "cp437", "cp850", "cp852", "koi8-r", "koi8-u", "macintosh",
        "shift-jis", "euc-jp", "iso-2022-jp", "gb18030", "gbk", "gb2312", "big5", "euc-kr",
        *(f"iso-8859-{number}" for number in range(1, 17) if number != 12),
        *(f"{name}125{number}" for name in ("cp", "windows-") for number in range(9)),
    }
)  # fmt: skip
"""Only text encodings. Python has others, which may run for long or do not produce text."""
CHARSET: Final = re.compile(r"charset\s*=\s*\"?([^\s\";]+)", re.IGNORECASE)
EMPTY_MAX: Final = 1_000  # characters of the text for null
LINE_DIGITS_MAX: Final = 18


def form_of(content_type: str, given: Sequence[tuple[str, str]]) -> Reader:
    """Return the reader for this content type. `given` are all parameters of the query. Raises
    Refusal and UserError.
    """
    media_type, _, more = content_type.partition(";")
    media_type = media_type.strip().lower()
    form = FORMS.get(media_type)
    if form is None:
        detail = f"content type {media_type!r:.100} is not accepted: send {', '.join(FORMS)}"
        hint = "name the format of the body in the header Content-Type"
        raise Refusal(Slug.UNSUPPORTED_MEDIA_TYPE, detail, supported=list(FORMS), hint=hint)
    takes, read = form
    parameters: dict[str, str] = {}
    for name, value in given:
        if name in parameters:
            raise invalid(name, "it is there more than once", "")
        if name not in takes | OF_ALL:
            some = nearest(name, sorted(takes | OF_ALL))
            hint = f"did you mean {some}?" if some else f"it does not go with {media_type}"
            raise invalid(name, "there is no such parameter here", hint)
        parameters[name] = value
    charset = CHARSET.search(more)
    if charset is not None:
        _of_charset(charset[1], media_type, parameters)
    reader = read(parameters)
    return reader if media_type == RAW else of_rows(reader)


def of_rows(read: Reader) -> Reader:
    """Return a reader of rows that refuses a raw input, which has no rows."""
    return partial(_read_rows, read=read)


def _read_rows(pieces: Iterable[bytes], rows: RowReader, read: Reader) -> None:
    if isinstance(rows.rule.form, RawRecords):
        detail = f"the input is raw, so a request is one record: send it as {RAW}"
        raise Refusal(Slug.UNSUPPORTED_MEDIA_TYPE, detail, supported=[RAW])
    read(pieces, rows)


def _of_charset(charset: str, media_type: str, parameters: dict[str, str]) -> None:
    """Check the charset of the header, which may name the encoding as the parameter does."""
    if "encoding" in FORMS[media_type][0]:
        parameters.setdefault("encoding", charset)
    elif charset.lower() not in ("utf-8", "us-ascii"):
        detail = f"{media_type} is accepted in UTF-8 only, this says {charset!r:.80}"
        raise Refusal(Slug.UNSUPPORTED_MEDIA_TYPE, detail, supported=list(FORMS))


def encoding_of(header: str) -> str:
    if not header:
        return "identity"
    encoding = header.strip().lower() or "identity"
    if encoding not in ENCODINGS:
        accepted = [name for name in ENCODINGS if name != "identity"]
        detail = f"content encoding {encoding!r:.100} is not accepted: send {' or '.join(accepted)}"
        raise Refusal(Slug.UNSUPPORTED_ENCODING, detail, supported=accepted)
    return encoding


def _csv(parameters: Parameters) -> Reader:
    delimiter = character_of(parameters, "delimiter", ",")
    quote = character_of(parameters, "quote", '"', may_lack=True)
    escape = character_of(parameters, "escape", "", may_lack=True)
    if len({delimiter, quote, escape} - {""}) < 1 + bool(quote) + bool(escape):
        hint = "give each another character"
        raise invalid("delimiter", "delimiter, quote and escape are not different", hint)
    header = parameters.get("header", "present")
    if header not in ("present", "absent"):
        raise invalid(
            "header",
            f"{header!r:.80} is neither present nor absent",
            "leave it out, or give one of these",
        )
    null = parameters.get("null", "")
    if len(null) > EMPTY_MAX:
        raise invalid("null", f"has more than {EMPTY_MAX} characters", "give a shorter one")
    options = CsvOptions(
        delimiter=delimiter,
        quote=quote,
        escape=escape,
        header=header == "present",
        null=null,
        encoding=_read_encoding(parameters.get("encoding", "utf-8")),
        line=_line(parameters),
    )
    return partial(read_csv, options=options)


def _line(parameters: Parameters) -> int | None:
    text = parameters.get("line")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= LINE_DIGITS_MAX and int(text)):
        hint = "give the number that the first row's line has in its file, from 1"
        raise invalid("line", f"{text!r:.80} is not the number of a line", hint)
    return int(text)


def character_of(parameters: Parameters, name: str, usual: str, *, may_lack: bool = False) -> str:
    text = parameters.get(name, usual)
    hint = f"give one character, or one of {', '.join(NAMES)}"
    try:
        found = character(text)
    except ValueError as error:
        raise invalid(name, f"{text!r:.80} is not one character", hint) from error
    if not found and not may_lack:
        raise invalid(name, f"{text!r:.80} is not one character", hint)
    return found


def _read_encoding(name: str) -> str:
    if name.lower().replace("_", "-") not in ENCODINGS_OF_TEXT:
        raise invalid(
            "encoding", f"{name!r:.80} is not an accepted encoding", f"use {', '.join(USUAL)}"
        )
    return codecs.lookup(name).name


def _raw(parameters: Parameters) -> Reader:
    return partial(read_raw, key=parameters.get("key"))


def invalid(name: str, message: str, hint: str) -> UserError:
    return UserError([Problem(message=message, hint=hint, path=f"query.{name}")])


OF_CSV: Final = frozenset({"delimiter", "quote", "escape", "header", "null", "encoding", "line"})
OF_RAW: Final = frozenset({"key"})
OF_ALL: Final = frozenset({"atomic"})
NONE: Final[frozenset[str]] = frozenset()
FORMS: Final[Mapping[str, tuple[frozenset[str], Callable[[Parameters], Reader]]]] = {
    "application/x-ndjson": (NONE, lambda _: read_ndjson),
    "application/json": (NONE, lambda _: read_values),
    "text/csv": (OF_CSV, _csv),
    "application/vnd.apache.avro": (NONE, lambda _: read_avro),
    RAW: (OF_RAW, _raw),
}
