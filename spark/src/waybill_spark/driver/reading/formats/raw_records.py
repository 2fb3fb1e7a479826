"""Records as Kafka has them: any bytes are one."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from waybill_spark.driver.reading.formats.names import (
    EXTRA_COLUMNS,
    MALFORMED,
    TEXT,
    no_unknown,
    place,
)
from waybill_spark.driver.reading.inputs import DecodedInput

HEADERS: Final = "map<string, binary>"


def read(raw: DataFrame, source: DecodedInput) -> DataFrame:
    return raw.select(
        *place(),
        F.col("value").alias(TEXT),
        F.lit(False).alias(MALFORMED),
        no_unknown(),
        "key",
        "value",
        _as_map(F.col("headers")).alias("headers"),
        "timestamp",
    ).select(*EXTRA_COLUMNS, "key", "value", "headers", "timestamp")


def why(value: bytes, source: DecodedInput) -> str | None:
    return None


def _as_map(headers: Column) -> Column:
    """Convert headers to a map.

    If several have one name the last counts, as for Kafka's own clients. They are sorted first, so
    that those of one name are neighbours and a record with very many costs little.
    """
    ordered = F.array_sort(F.transform(headers, _number))
    following = F.slice(ordered, F.lit(2), F.size(ordered))
    last = F.filter(F.zip_with(ordered, following, _unless_again), lambda each: each.isNotNull())
    pairs = F.transform(last, lambda each: F.struct(each["key"], each["value"]))
    return F.coalesce(F.map_from_entries(pairs), F.create_map().cast(HEADERS))


def _number(header: Column, number: Column) -> Column:
    return F.struct(
        header["key"].alias("key"), number.alias("number"), header["value"].alias("value")
    )


def _unless_again(header: Column, next_: Column) -> Column:
    return F.when(~header["key"].eqNullSafe(next_["key"]), header)
