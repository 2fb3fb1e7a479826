"""Which types of Postgres take which types of rows, so that no value changes on the way."""

from typing import Final

import pyarrow as pa

TEXTS: Final = ("text", "character varying", "character", "citext", "uuid", "json", "jsonb")
"""Postgres judges each text: not every one is a UUID."""
WIDER: Final = {
    "smallint": ("smallint", "integer", "bigint"),
    "integer": ("integer", "bigint"),
    "bigint": ("bigint",),
    "real": ("real", "double precision"),
    "double precision": ("double precision",),
    "text": TEXTS,
    "jsonb": ("jsonb", "json"),
}
"""The types that can store every value of a type, without what is in brackets."""
DIGITS: Final = {"smallint": 5, "integer": 10, "bigint": 19}
SIMPLE: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.binary(): "bytea",
    pa.large_binary(): "bytea",
    pa.date32(): "date",
}


def column_type(given: pa.DataType) -> str | None:
    """Return the type of the column that is made for it; None if there is none."""
    if pa.types.is_decimal(given):
        return f"numeric({given.precision},{given.scale})"
    if pa.types.is_timestamp(given):
        return "timestamp with time zone" if given.tz else "timestamp without time zone"
    if pa.types.is_nested(given):
        return "jsonb"
    return SIMPLE.get(given)


def takes(column: str, given: str, *, enumerated: bool) -> bool:
    """Return True if a column of the type `column` can store every value of the type `given`.

    Both are named as in Postgres; with `enumerated` it is an enum of the database.
    """
    kind, limits = _split(column)
    wanted, digits = _split(given)
    if kind == "numeric" and (wanted == "numeric" or wanted in DIGITS):
        whole, scale = (digits[0] - digits[1], digits[1]) if digits else (DIGITS[wanted], 0)
        return not limits or (limits[0] - limits[1] >= whole and limits[1] >= scale)
    if wanted == "text" and enumerated:
        return True
    return kind in WIDER.get(wanted, (wanted,))


def _split(name: str) -> tuple[str, tuple[int, ...]]:
    """Split a type such as `numeric(10,2)` into its kind and its limits.

    Limits of a length are ignored here.
    """
    kind, _, rest = name.partition("(")
    if kind != "numeric" or not rest:
        return _bare(name), ()
    precision, _, scale = rest.rstrip(")").partition(",")
    return kind, (int(precision), int(scale or 0))


def _bare(name: str) -> str:
    """Remove a length or the digits of a second: `character varying(20)`, `timestamp(3) with …`"""
    before, bracket, after = name.partition("(")
    return before + after.partition(")")[2] if bracket else before
