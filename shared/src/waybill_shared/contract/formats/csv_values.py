"""What a field of CSV is: by the type of its column, and strictly.

Ingress makes JSON of it, and fields of JSON. What stages make of it in a CSV input is tested with
the same table, `tests/accepted_csv_values.yaml`.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Final

from waybill_shared.contract.manifest.columns import Column
from waybill_shared.contract.manifest.values import NUMERIC

WHOLE: Final = re.compile(r"[+-]?\d+", re.ASCII)
AS_IN_JSON: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
DIGITS_MAX: Final = 1_000  # as in JSON; no column takes as many
BOOLEANS: Final = {"true": True, "false": False}

ToJson = Callable[[str], tuple[str, str | None]]
"""The JSON text of a field; or why it has none."""
Read = Callable[[str], tuple[object, str] | None]
"""The value that a text represents, and its JSON text; None if it represents none."""


def converter(column: Column) -> ToJson:
    kind = re.split(r"[(<]", column.type)[0].strip()
    if kind not in KINDS:
        return lambda _: ("", f"{column.name}: a field of a CSV file cannot be {kind}")
    read, expected = KINDS[kind]
    check = column.check

    def convert(text: str) -> tuple[str, str | None]:
        found = read(text)
        if found is None:
            return "", f"{column.name}: {kind} takes {expected}, this is {text[:40]!r}"
        value, json = found
        reason = check(value)
        return (json, None) if reason is None else ("", f"{column.name}: {reason}")

    return convert


def _whole(text: str) -> tuple[object, str] | None:
    if not WHOLE.fullmatch(text) or len(text) > DIGITS_MAX:
        return None
    value = int(text)
    return value, str(value)


def _number(text: str) -> tuple[object, str] | None:
    if not NUMERIC.fullmatch(text) or len(text) > DIGITS_MAX:
        return None
    value = Decimal(text)
    return value, text if AS_IN_JSON.fullmatch(text) else str(value)


def _boolean(text: str) -> tuple[object, str] | None:
    value = BOOLEANS.get(text.lower())
    return None if value is None else (value, text.lower())


def _text(text: str) -> tuple[object, str]:
    return text, encode_basestring(text)


WHOLE_NUMBER: Final = (_whole, "a whole number")
NUMBER: Final = (_number, "a number")
TEXT: Final = (_text, "text")
KINDS: Final[dict[str, tuple[Read, str]]] = {
    "BOOLEAN": (_boolean, "true or false"),
    "INT": WHOLE_NUMBER,
    "INTEGER": WHOLE_NUMBER,
    "BIGINT": WHOLE_NUMBER,
    "LONG": WHOLE_NUMBER,
    "FLOAT": NUMBER,
    "DOUBLE": NUMBER,
    "DECIMAL": NUMBER,
    "STRING": TEXT,
    "DATE": TEXT,
    "TIMESTAMP": TEXT,
}
