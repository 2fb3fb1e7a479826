"""Streams that replace a stage's inputs while its SQL is analyzed. They are never run."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from waybill_spark.driver.reading.inputs import DecodedInput


def schema_stream(spark: SparkSession, source: DecodedInput) -> DataFrame:
    """Return a stream with the columns of the input.

    How its records are decoded is judged once, with what runs, and not again with each query; its
    rules by themselves.
    """
    rate = spark.readStream.format("rate").load()
    record = F.from_json(F.lit("{}"), source.columns).alias("record")
    schema = rate.select(record).select("record.*").schema
    return rate.select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in schema))
