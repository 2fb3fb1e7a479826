"""Streams that stand for a stage's inputs while its SQL is analyzed. They are never run."""

from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from waybill_spark.driver.decode import decode
from waybill_spark.driver.inputs import DecodedInput

RAW_DDL: Final = (
    "topic STRING, partition INT, offset BIGINT, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>, timestamp TIMESTAMP"
)


def stand_in(spark: SparkSession, source: DecodedInput) -> DataFrame:
    """A stream with the columns of the input: how records are decoded is judged once, with what
    runs, and not again with each query; its rules by themselves."""
    schema = decode(_streaming_raw(spark), replace(source, rules=())).schema
    rate = spark.readStream.format("rate").load()
    return rate.select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in schema))


def _streaming_raw(spark: SparkSession) -> DataFrame:
    """Raw records that need no Kafka."""
    rate = spark.readStream.format("rate").load()
    empty = F.from_json(F.lit("{}"), RAW_DDL).alias("raw")
    return rate.select(empty).select("raw.*")
