"""Records of JSON: one object each."""

import json
from collections.abc import Mapping
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.columns import Column as Declared
from waybill_shared.contract.manifest.columns import refusal, unknown_field
from waybill_shared.contract.manifest.values import FROM_JSON_OPTIONS
from waybill_spark.driver.forms.conditions import only_where
from waybill_spark.driver.forms.names import (
    BESIDE,
    END,
    MALFORMED,
    OFFSET,
    PARTITION,
    TEXT,
    UNKNOWN,
    place,
)
from waybill_spark.driver.inputs import DecodedInput

# Spark ignores what stands behind a value. In here, anything behind the record makes it malformed:
# more text breaks the array, brackets that close it early lose `end`, or make more than two keys.
BEFORE: Final = '{"record":['
BEHIND: Final = f'],"end":"{END}"}}'
WRAPPED: Final = "struct<record: array<struct<{}>>, end: string>"
APART: Final = (" :", "\t:", "\n:", "\r:")
NOT_FINITE: Final = frozenset({"NaN", "Infinity", "-Infinity"})


def read(raw: DataFrame, source: DecodedInput) -> DataFrame:
    options = dict(FROM_JSON_OPTIONS)
    if source.own_output:
        options["allowNonNumericNumbers"] = "true"  # our own sink may have written NaN
    text = F.col("value").cast("string")
    parsed = raw.select(
        *place(),
        text.alias(TEXT),
        F.from_json(_wrapped(text), WRAPPED.format(source.columns), options).alias("parsed"),
    )
    record, malformed = _record().alias("record"), _malformed(source)
    looked_at = parsed.select(
        PARTITION,
        OFFSET,
        TEXT,
        malformed.alias(MALFORMED),
        _told(source, ~malformed).alias(UNKNOWN),
        record,
    )
    return looked_at.select(*BESIDE, "record.*")


def why(value: bytes, source: DecodedInput) -> str | None:
    constants: list[str] = []
    decoder = json.JSONDecoder(parse_float=Decimal, parse_constant=constants.append)
    try:
        row = decoder.decode(value.decode())
    except UnicodeDecodeError as error:
        return f"byte {error.start + 1} is not UTF-8"
    except json.JSONDecodeError as error:
        return f"not JSON at character {error.pos + 1}: {error.msg}"
    except RecursionError:
        return "it is nested too deep"
    except (ArithmeticError, ValueError):  # an exponent, or digits, beyond what Python reads
        return None
    if constants:
        return f"{constants[0]} is not JSON"
    try:
        return _refusal(row, source)
    except UserError:  # what a stage writes may have types that no input has
        return None


def _record() -> Column:
    return F.get("parsed.record", F.lit(0))  # null where an index would raise


def _wrapped(text: Column) -> Column:
    return F.concat(F.lit(BEFORE), text, F.lit(BEHIND))


def _malformed(source: DecodedInput) -> Column:
    text = F.col(TEXT)
    malformed = (
        ~F.col("parsed.end").eqNullSafe(END)
        | (F.size("parsed.record") != 1)
        | _record().isNull()
        | ~F.is_valid_utf8(text)
        | only_where(text.contains("]"), _more_keys(F.json_object_keys(_wrapped(text))))
    )
    if source.own_output:
        return malformed  # a stage writes its own columns, and none is NOT NULL
    for column in source.parsed_columns():
        if column.required:  # from_json itself takes null for it
            malformed |= _record().getField(column.name).isNull()
    if source.strict:
        malformed |= F.coalesce(F.size(_unknown(source)) > 0, F.lit(True))
    return malformed


def _more_keys(keys: Column) -> Column:
    return F.coalesce(F.size(keys) != 2, F.lit(True))


def _told(source: DecodedInput, well_formed: Column) -> Column:
    """The names of fields that are no columns, where people hear of them."""
    if source.own_output or source.strict:
        return F.lit(None).cast("array<string>")
    return F.when(well_formed, _unknown(source))


def _unknown(source: DecodedInput) -> Column:
    found = F.array_except(F.json_object_keys(TEXT), _names(source))
    return F.when(_only_columns(source), F.lit([]).cast("array<string>")).otherwise(found)


def _only_columns(source: DecodedInput) -> Column:
    """Whether it is plain without a second look at the text that there is no other field: every
    column has a value, and there are no more colons than columns. To find them is cheap."""
    columns = source.parsed_columns()
    has_all = [_record().getField(column.name).isNotNull() for column in columns]
    plain = _no_more(":", len(columns))
    # as many as there are in times; those of keys follow their quotation mark
    close = _no_more('":', len(columns)) & ~reduce(or_, map(F.col(TEXT).contains, APART))
    return reduce(and_, has_all) & (plain | close)


def _no_more(mark: str, count: int) -> Column:
    before_one_more = F.substring_index(TEXT, mark, count + 1)
    return F.octet_length(before_one_more) == F.octet_length(TEXT)


def _names(source: DecodedInput) -> Column:
    return F.array(*(F.lit(column.name) for column in source.parsed_columns()))


def _refusal(row: object, source: DecodedInput) -> str | None:
    columns = source.parsed_columns()
    if source.own_output:
        columns = tuple(each for each in columns if not _not_finite(row, each))
    reason = refusal(columns, row)
    if reason is None and source.strict and isinstance(row, Mapping):
        return unknown_field(columns, row)
    return reason


def _not_finite(row: object, column: Declared) -> bool:
    """What our own sink writes where a number is none."""
    return isinstance(row, Mapping) and row.get(column.name) in NOT_FINITE
