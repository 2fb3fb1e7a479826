"""Streams that stand for a stage's inputs while its SQL is analyzed. They are never run."""

from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from waybill_spark.driver.decode import DecodedInput, decode

RAW_COLUMNS: Final = "topic STRING, partition INT, offset BIGINT, value BINARY"


def stand_in(spark: SparkSession, source: DecodedInput) -> DataFrame:
    """A stream with the columns of the input: how records are decoded is judged once, with what
    runs, and not again with each query; its rules by themselves."""
    schema = decode(_streaming_raw(spark), replace(source, rules=())).schema
    rate = spark.readStream.format("rate").load()
    return rate.select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in schema))


def _streaming_raw(spark: SparkSession) -> DataFrame:
    """Raw records that need no Kafka."""
    rate = spark.readStream.format("rate").load()
    fields = [field.strip().split(" ") for field in RAW_COLUMNS.split(",")]
    return rate.select(*(F.lit(None).cast(kind).alias(name) for name, kind in fields))
