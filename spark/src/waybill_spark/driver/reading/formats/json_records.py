"""Records of JSON: one object each."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.columns import Column as Declared
from waybill_shared.contract.manifest.columns import refusal, unknown_field
from waybill_shared.contract.manifest.values import FROM_JSON_OPTIONS
from waybill_spark.driver.reading.formats.conditions import only_where
from waybill_spark.driver.reading.formats.names import (
    END,
    EXTRA_COLUMNS,
    MALFORMED,
    OFFSET,
    PARTITION,
    TEXT,
    UNKNOWN,
    place,
)
from waybill_spark.driver.reading.inputs import DecodedInput

# Spark ignores what follows a value. In here, anything after the record makes it malformed:
# more text breaks the array, brackets that close it early lose `end`, or make more than two keys.
BEFORE: Final = '{"record":['
AFTER: Final = f'],"end":"{END}"}}'
RECORD: Final = "get(parsed.record, 0)"  # null where an index would raise
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
        F.from_json(_wrap(text), WRAPPED.format(source.columns), options).alias("parsed"),
    )
    malformed = _is_malformed(source)
    looked_at = parsed.select(
        PARTITION,
        OFFSET,
        TEXT,
        malformed.alias(MALFORMED),
        _unknown_for_reports(source, ~malformed).alias(UNKNOWN),
        F.expr(RECORD).alias("record"),
    )
    return looked_at.select(*EXTRA_COLUMNS, "record.*")


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


def _wrap(text: Column) -> Column:
    return F.concat(F.lit(BEFORE), text, F.lit(AFTER))


def _is_malformed(source: DecodedInput) -> Column:
    text = F.col(TEXT)
    conditions = [
        f"NOT (parsed.`end` <=> '{END}')",
        "size(parsed.record) <> 1",
        f"{RECORD} IS NULL",
        f"NOT is_valid_utf8({TEXT})",
    ]
    if not source.own_output:  # a stage writes its own columns, and none is NOT NULL
        required = [column.name for column in source.columns_to_parse() if column.required]
        conditions += [f"{_field(name)} IS NULL" for name in required]  # from_json itself takes it
    malformed = F.expr(" OR ".join(conditions)) | only_where(
        text.contains("]"), _more_keys(F.json_object_keys(_wrap(text)))
    )
    if source.own_output or not source.strict:
        return malformed
    return malformed | F.coalesce(F.size(_unknown(source)) > 0, F.lit(True))


def _more_keys(keys: Column) -> Column:
    return F.coalesce(F.size(keys) != 2, F.lit(True))


def _unknown_for_reports(source: DecodedInput, well_formed: Column) -> Column:
    """Return the names of fields that are no columns, where people get a report of them."""
    if source.own_output or source.strict:
        return F.lit(None).cast("array<string>")
    return F.when(well_formed, _unknown(source))


def _unknown(source: DecodedInput) -> Column:
    names = [column.name for column in source.columns_to_parse()]
    found = F.array_except(F.json_object_keys(TEXT), F.lit(names))
    return F.when(_only_columns(names), F.lit([]).cast("array<string>")).otherwise(found)


def _only_columns(names: list[str]) -> Column:
    """Return an expression that is True if a cheap look shows that there is no other field: every
    column has a value, and there are no more colons than columns.
    """
    has_all = " AND ".join(f"{_field(name)} IS NOT NULL" for name in names)
    # as many as there are in times; those of keys follow their quotation mark
    apart = " OR ".join(f"contains({TEXT}, '{each}')" for each in APART)
    plain, close = _no_more(":", len(names)), _no_more('":', len(names))
    return F.expr(f"{has_all} AND ({plain} OR {close} AND NOT ({apart}))")


def _no_more(mark: str, count: int) -> str:
    before_one_more = f"substring_index({TEXT}, '{mark}', {count + 1})"
    return f"octet_length({before_one_more}) = octet_length({TEXT})"


def _field(name: str) -> str:
    return f"{RECORD}.`{name}`"


def _refusal(row: object, source: DecodedInput) -> str | None:
    columns = source.columns_to_parse()
    if source.own_output:
        columns = tuple(each for each in columns if not _not_finite(row, each))
    reason = refusal(columns, row)
    if reason is None and source.strict and isinstance(row, Mapping):
        return unknown_field(columns, row)
    return reason


def _not_finite(row: object, column: Declared) -> bool:
    """Return True if the value is what our own sink writes for a number that is not finite."""
    return isinstance(row, Mapping) and row.get(column.name) in NOT_FINITE
