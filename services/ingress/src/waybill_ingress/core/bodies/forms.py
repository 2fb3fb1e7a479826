"""Which format a body is in, by its media type and the parameters that go with that."""

import codecs
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from waybill_ingress.core.bodies.avro import read_avro
from waybill_ingress.core.bodies.csv_rows import CsvOptions, read_csv
from waybill_ingress.core.bodies.lines import read_ndjson
from waybill_ingress.core.bodies.packed import ENCODINGS
from waybill_ingress.core.bodies.raw import read_raw
from waybill_ingress.core.bodies.values import read_values
from waybill_ingress.core.rows import RowReader
from waybill_shared.contract.errors import Refusal, UserError
from waybill_shared.contract.events import Problem
from waybill_shared.contract.problems import Slug

Reader = Callable[[Iterable[bytes], RowReader], None]
"""Reads a body to its end; what it raises is of the body as a whole."""
Parameters = Mapping[str, str]

NAMES: Final = {"tab": "\t", "space": " ", "none": ""}
"""What cannot be seen in an address, or cannot be there."""
ENCODING_PROBE: Final = "a,1\n"
EMPTY_MAX: Final = 1_000  # characters of what stands for null


def form_of(content_type: str, parameters: Parameters) -> Reader:
    """The parameters are those of the query; the ones of other formats are refused."""
    media_type = content_type.partition(";")[0].strip().lower()
    form = FORMS.get(media_type)
    if form is None:
        detail = f"content type {media_type!r:.100} is not taken: send {', '.join(FORMS)}"
        raise Refusal(Slug.UNSUPPORTED_MEDIA_TYPE, detail, taken=list(FORMS))
    takes, read = form
    for name in parameters:
        if name in OF_FORMATS and name not in takes:
            raise _invalid(name, f"it does not go with {media_type}", "leave it out")
    return read(parameters)


def encoding_of(header: str) -> str:
    if not header:
        return "identity"
    encoding = header.strip().lower() or "identity"
    if encoding not in ENCODINGS:
        taken = [name for name in ENCODINGS if name != "identity"]
        detail = f"content encoding {encoding!r:.100} is not taken: send {' or '.join(taken)}"
        raise Refusal(Slug.UNSUPPORTED_ENCODING, detail, taken=taken)
    return encoding


def _csv(parameters: Parameters) -> Reader:
    delimiter = _character(parameters, "delimiter", ",")
    quote = _character(parameters, "quote", '"', may_lack=True)
    escape = _character(parameters, "escape", "", may_lack=True)
    if len({delimiter, quote, escape} - {""}) < 1 + bool(quote) + bool(escape):
        raise _invalid("delimiter", "delimiter, quote and escape are not different", "")
    header = parameters.get("header", "present")
    if header not in ("present", "absent"):
        raise _invalid("header", f"{header!r:.80} is neither present nor absent", "")
    null = parameters.get("null", "")
    if len(null) > EMPTY_MAX:
        raise _invalid("null", f"has more than {EMPTY_MAX} characters", "")
    options = CsvOptions(
        delimiter=delimiter,
        quote=quote,
        escape=escape,
        header=header == "present",
        null=null,
        encoding=_encoding(parameters.get("encoding", "utf-8")),
    )
    return partial(read_csv, options=options)


def _character(parameters: Parameters, name: str, usual: str, *, may_lack: bool = False) -> str:
    text = parameters.get(name, usual)
    character = NAMES.get(text, text)
    if len(character) > 1 or character in ("\r", "\n") or not (character or may_lack):
        hint = f"give one character, or one of {', '.join(NAMES)}"
        raise _invalid(name, f"{text!r:.80} is not one character", hint)
    return character


def _encoding(name: str) -> str:
    try:
        made = codecs.lookup(name)
        if made.name != "utf-7" and ENCODING_PROBE.encode(name).decode(name) == ENCODING_PROBE:
            return made.name
    except (LookupError, ValueError, UnicodeError):
        pass
    hint = "utf-8, utf-16, iso-8859-1 and windows-1252 are some that are"
    raise _invalid("encoding", f"{name!r:.80} is no encoding of text that is known", hint)


def _raw(parameters: Parameters) -> Reader:
    return partial(read_raw, key=parameters.get("key"))


def _invalid(name: str, message: str, hint: str) -> UserError:
    return UserError([Problem(message=message, hint=hint, path=f"query.{name}")])


OF_CSV: Final = frozenset({"delimiter", "quote", "escape", "header", "null", "encoding"})
OF_RAW: Final = frozenset({"key"})
OF_FORMATS: Final = OF_CSV | OF_RAW
NONE: Final[frozenset[str]] = frozenset()
FORMS: Final[Mapping[str, tuple[frozenset[str], Callable[[Parameters], Reader]]]] = {
    "application/x-ndjson": (NONE, lambda _: read_ndjson),
    "application/json": (NONE, lambda _: read_values),
    "text/csv": (OF_CSV, _csv),
    "application/vnd.apache.avro": (NONE, lambda _: read_avro),
    "application/octet-stream": (OF_RAW, _raw),
}
