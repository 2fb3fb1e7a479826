"""Which JSON values a plain column type accepts.

The stage decodes with Spark's `from_json`. This module accepts the same as that function with
`FROM_JSON_OPTIONS`, so that ingress refuses what would stop a stage. Tests compare both with the
table `tests/accepted_values.yaml`.
"""

import re
from base64 import b64decode
from collections.abc import Callable
from datetime import date
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from typing import Final

JsonValue = object
ValueCheck = Callable[[JsonValue], str | None]
"""Returns None if the value is accepted, else the reason."""

FROM_JSON_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "allowNonNumericNumbers": "false",
    "allowSingleQuotes": "false",
    "dateFormat": "yyyy-MM-dd",
    "timestampFormat": "yyyy-MM-dd[' ']['T']HH:mm:ss[.SSSSSSSSS][XXX]",
}
TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d) ?T?([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
NUMERIC = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
EPOCH_SECONDS = range(-62_135_596_800, 253_402_300_800)  # years 1 to 9999, as in the text form
DOUBLE_LIMIT = Decimal(2**1024 - 2**970)  # from here on the nearest number is Infinity
FLOAT_LIMIT = Decimal(2**128 - 2**103)
DECIMAL_CONTEXT = Context(prec=39, Emax=MAX_EMAX, Emin=MIN_EMIN)  # 38 digits and a carry
EXPONENT_MAX = 9_999  # Spark takes ten seconds to round 1e-9999999
OFFSET_HOURS_MAX = 18


def kind_of(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return f"the string {value[:40]!r}"
        case int() | Decimal():
            return f"the number {value!s:.40}"
        case list():
            return "an array"
        case _:
            return "an object"


def _integer(name: str, bits: int) -> ValueCheck:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def check(value: JsonValue) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return f"{name} takes a whole number, this is {kind_of(value)}"
        if low <= value <= high:
            return None
        return f"{name} takes {low} to {high}, this is {value!s:.40}"

    return check


def _boolean(value: JsonValue) -> str | None:
    if isinstance(value, bool):
        return None
    return f"BOOLEAN takes true or false, this is {kind_of(value)}"


def _check_float(name: str, limit: Decimal) -> ValueCheck:
    def check(value: JsonValue) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            return f"{name} takes a number, this is {kind_of(value)}"
        # Spark would store Infinity and say nothing.
        fits = Decimal(value).copy_abs() < limit
        return None if fits else f"{name} is too small for {kind_of(value)}"

    return check


def _string(value: JsonValue) -> str | None:
    """Check a STRING. Spark keeps a value of another kind as text, and a fraction as the text of
    the nearest double.
    """
    if not isinstance(value, str) or value.isascii():
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return "STRING takes Unicode text, this has half of a surrogate pair"
    return None


def take_binary(value: JsonValue) -> str | None:
    try:
        b64decode(value if isinstance(value, str) else "!", validate=True)
    except ValueError:
        return f"BINARY takes bytes in base64, this is {kind_of(value)}"
    return None


def _date(value: JsonValue) -> str | None:
    if isinstance(value, str) and DATE.fullmatch(value) and _calendar_day(value):
        return None
    return f'DATE takes "2026-11-21", this is {kind_of(value)}'


def _calendar_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _timestamp(value: JsonValue) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        if value in EPOCH_SECONDS:
            return None
        return (
            f"TIMESTAMP takes seconds since the epoch, {value!s:.40} is outside the years 1 to 9999"
        )
    found = TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if found is not None and _calendar_day(found[1]) and _offset_in_range(found[4]):
        return None
    return f'TIMESTAMP takes "2026-11-21T09:00:00Z", this is {kind_of(value)}'


def _offset_in_range(zone: str | None) -> bool:
    if zone is None or zone == "Z":
        return True
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    return minutes < 60 and hours * 60 + minutes <= OFFSET_HOURS_MAX * 60


def decimal(precision: int, scale: int) -> ValueCheck:
    unit = Decimal(1).scaleb(-scale)
    limit = Decimal(10) ** (precision - scale)

    def check(value: JsonValue) -> str | None:
        if isinstance(value, str) and NUMERIC.fullmatch(value):
            value = Decimal(value)
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            return f"DECIMAL({precision},{scale}) takes a number, this is {kind_of(value)}"
        number = Decimal(value)
        # Compared before it is rounded: rounding 1e999999 would write out a million digits.
        fits = (
            abs(number.adjusted()) <= EXPONENT_MAX
            and number.copy_abs() < limit
            and number.quantize(unit, ROUND_HALF_UP, DECIMAL_CONTEXT).copy_abs() < limit
        )
        return None if fits else f"{value!s:.40} does not fit DECIMAL({precision},{scale})"

    return check


SIMPLE: Final[dict[str, ValueCheck]] = {
    "BOOLEAN": _boolean,
    "INT": _integer("INT", 32),
    "INTEGER": _integer("INT", 32),
    "BIGINT": _integer("BIGINT", 64),
    "LONG": _integer("BIGINT", 64),
    "FLOAT": _check_float("FLOAT", FLOAT_LIMIT),
    "DOUBLE": _check_float("DOUBLE", DOUBLE_LIMIT),
    "STRING": _string,
    "DATE": _date,
    "TIMESTAMP": _timestamp,
}
