"""Records of Avro: one value each, without its schema, which the input has."""

import json
from functools import reduce
from math import log10
from operator import and_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.classic.column import Column as ClassicColumn

from waybill_shared.contract.formats.avro_reader import ValueReader
from waybill_shared.contract.formats.avro_schemas import DIGITS_MAX, known_keys
from waybill_spark.driver.reading.formats.names import (
    END,
    EXTRA_COLUMNS,
    MALFORMED,
    OFFSET,
    PARTITION,
    TEXT,
    no_unknown,
    place,
)
from waybill_spark.driver.reading.inputs import DecodedInput

END_AS_AVRO: Final = bytes([2 * len(END)]) + END.encode()
"""Follows the value, as a second one: it is read completely only if the first ends where it
should.
"""
FIRST_AND_LAST_DAY: Final = ("0001-01-01", "9999-12-31")


def read(raw: DataFrame, source: DecodedInput) -> DataFrame:
    value = F.col("value")
    declared = T.StructType.fromDDL(source.columns.replace(" NOT NULL", ""))
    fields = [
        {"name": "record", "type": _widen(known_keys(source.keys.avro_schema))},
        {"name": "end", "type": "string"},
    ]
    schema = {"type": "record", "name": f"wrapped_{END}", "fields": fields}
    wrapped = F.concat(value, F.lit(END_AS_AVRO))
    parsed = raw.select(
        *place(),
        value.alias(TEXT),
        _from_avro(raw.sparkSession, wrapped, json.dumps(schema)).alias("parsed"),
    )
    record = F.col("parsed.record")
    sound = record.isNotNull() & F.col("parsed.end").eqNullSafe(END) & _is_sound(record, declared)
    looked_at = parsed.select(
        PARTITION,
        OFFSET,
        TEXT,
        (~sound).alias(MALFORMED),
        no_unknown(),
        F.when(sound, record).cast(declared).alias("record"),
    )
    return looked_at.select(*EXTRA_COLUMNS, "record.*")


def why(value: bytes, source: DecodedInput) -> str | None:
    try:
        ValueReader(source.keys.avro_schema or {}).read(value)
    except ValueError as error:
        return str(error)
    return None


def _from_avro(spark: SparkSession, value: Column, schema: str) -> Column:
    """Return the expression of `from_avro`.

    No query may call it, because it is removed from the registry.
    """
    jvm = spark._jvm
    assert jvm is not None
    columns = jvm.org.apache.spark.sql.classic.ExpressionUtils
    options = jvm.PythonUtils.toScalaMap({"mode": "PERMISSIVE"})
    found = jvm.org.apache.spark.sql.avro.AvroDataToCatalyst(
        columns.expression(value._jc), schema, options
    )
    return ClassicColumn(columns.column(found))


def _widen(part: Any) -> object:  # noqa: ANN401 - JSON, as it is
    """Give decimals as many digits as they may have.

    If they have 18 or fewer, Spark keeps only the last bits of a larger number.
    """
    match part:
        case {"logicalType": "decimal", "precision": int() as precision}:
            size = part.get("size")
            digits = DIGITS_MAX if size is None else int(log10(2) * (8 * size - 1))
            return {**part, "precision": max(precision, min(digits, DIGITS_MAX))}
        case dict():
            return {
                key: value if key == "default" else _widen(value) for key, value in part.items()
            }
        case list():
            return [_widen(each) for each in part]
        case _:
            return part


def _is_sound(value: Column, kind: T.DataType) -> Column:
    """Return a column that is False for values that Spark accepts and sinks do not: invalid text,
    years beyond the calendar, too many digits.
    """
    found = _check(value, kind)
    return F.lit(True) if found is None else F.coalesce(found, F.lit(True))


def _check(value: Column, kind: T.DataType) -> Column | None:
    """Return the check of a value, or None if there is nothing to check.

    The column is null where there is no value.
    """
    match kind:
        case T.StringType():
            return F.is_valid_utf8(value)
        case T.DateType() | T.TimestampType():
            return value.cast("date").between(*(F.lit(d).cast("date") for d in FIRST_AND_LAST_DAY))
        case T.DecimalType():
            return value.try_cast(kind).isNotNull() | value.isNull()
        case T.StructType():
            parts = [
                F.coalesce(found, F.lit(True))
                for field in kind
                if (found := _check(value.getField(field.name), field.dataType)) is not None
            ]
            return reduce(and_, parts) if parts else None
        case T.ArrayType():
            return _all(value, kind.elementType)
        case T.MapType():
            names = F.forall(F.map_keys(value), F.is_valid_utf8)
            values = _all(F.map_values(value), kind.valueType)
            return names if values is None else names & values
    return None


def _all(values: Column, kind: T.DataType) -> Column | None:
    if _check(F.lit(None), kind) is None:
        return None
    return F.forall(values, lambda value: _is_sound(value, kind))
