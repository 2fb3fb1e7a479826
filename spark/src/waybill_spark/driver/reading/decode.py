"""From raw Kafka records to the columns of an input. A record that does not parse never becomes
a row of nulls, and one that breaks a rule becomes none: the same pass says which they are."""

from collections.abc import Iterator
from importlib import import_module
from typing import Final, Protocol, cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from waybill_shared.contract.manifest.formats import FORMATS
from waybill_shared.contract.manifest.inputs import Expectation
from waybill_spark.driver.reading.formats.names import (
    END,
    EXTRA_COLUMNS,
    MALFORMED,
    OFFSET,
    PARTITION,
    TEXT,
    UNKNOWN,
)
from waybill_spark.driver.reading.ignored import NAME_CHARACTERS, NAMES_MAX
from waybill_spark.driver.reading.inputs import DecodedInput

PREVIEW_CHARACTERS: Final = 200
VERDICT: Final = f"verdict_{END}"
"""Null: the record is a row. 0: it is malformed. 1 and more: it breaks the rule of that number."""


class RecordReader(Protocol):
    """A module that decodes the records of one format."""

    def read(self, raw: DataFrame, source: DecodedInput) -> DataFrame:
        """Return the columns of each record, and EXTRA_COLUMNS. It is done in steps of a plan that
        Spark does not unite, so that a record is parsed once.
        """

    def why(self, value: bytes, source: DecodedInput) -> str | None:
        """Return what is wrong with a malformed record, as far as it is known."""


def reader_of(source: DecodedInput) -> RecordReader:
    return cast(RecordReader, import_module(FORMATS[source.keys.format].reader))


def decode(raw: DataFrame, source: DecodedInput) -> DataFrame:
    """Return the rows of one input's topic in `raw`, observed under the input's name."""
    own = raw.where(F.col("topic") == source.topic)
    judged = reader_of(source).read(own, source).withColumn(VERDICT, _verdict(source))
    observed = judged.observe(observation(source), _observe(source))
    return observed.where(F.col(VERDICT).isNull()).drop(*EXTRA_COLUMNS, VERDICT)


def observation(source: DecodedInput) -> str:
    return f"decode:{source.name}"


def _verdict(source: DecodedInput) -> Column:
    """Return the first verdict that applies.

    No rule checks a record that is malformed or has a verdict already.
    """
    verdict = F.when(F.col(MALFORMED), F.lit(0))
    for number, rule in enumerate(source.rules, 1):
        if rule.on_violation != "warn":
            verdict = verdict.when(_mark_broken(rule), F.lit(number))
    return verdict


def _mark_broken(rule: Expectation) -> Column:
    return ~F.coalesce(F.expr(rule.expect), F.lit(False))


def _observe(source: DecodedInput) -> Column:
    ignored = f"{VERDICT} IS NULL AND size({UNKNOWN}) > 0"
    some = (
        f"transform(slice({UNKNOWN}, 1, {NAMES_MAX}), name -> substr(name, 1, {NAME_CHARACTERS}))"
    )
    names = f"CASE WHEN {ignored} THEN {some} END"
    seen = F.struct(
        F.expr("count(1)").alias("records"),
        F.expr(f"max(octet_length({TEXT}))").alias("largest"),
        *_counts(source),
        *_dead(source),
        *_first(source),
        F.expr(f"count_if({ignored})").alias("ignored"),
        F.expr(f"min({names})").alias("some"),  # to gather all is not deterministic
        F.expr(f"max({names})").alias("others"),
    )
    return F.to_json(seen).alias("seen")


def count_name(verdict: int) -> str:
    return f"count_{verdict}"


def _counts(source: DecodedInput) -> Iterator[Column]:
    """Yield a column that counts for each verdict.

    Rules that only warn are checked on records that become rows.
    """
    for number in source.counted:
        found = F.col(VERDICT) == number
        if source.actions[number] == "warn":
            found = F.col(VERDICT).isNull() & _mark_broken(source.rules[number - 1])
        yield F.count_if(found).alias(count_name(number))


def _dead(source: DecodedInput) -> Iterator[Column]:
    """Yield the positions of the records that go to a dead-letter topic, in no order.

    They need less memory than as many rows.
    """
    deadly = ", ".join(map(str, source.verdicts("dead_letter")))
    if deadly:
        position = f"array(CAST({PARTITION} AS bigint), {OFFSET}, CAST({VERDICT} AS bigint))"
        dead = f"CASE WHEN {VERDICT} IN ({deadly}) THEN {position} END"
        yield F.expr(f"collect_list({dead})").alias("dead")


def _first(source: DecodedInput) -> Iterator[Column]:
    """Yield the first record with a verdict that ends the stage."""
    fatal = source.verdicts("fail")
    if fatal:
        verdict = F.col(VERDICT)
        preview = F.coalesce(_preview(source), F.lit("<null>"))
        position = F.struct(
            verdict.alias("verdict"),
            F.col(PARTITION).alias("partition"),
            F.col(OFFSET).alias("offset"),
            preview.alias("text"),
        )
        yield F.min(F.when(verdict.isin(fatal), position)).alias("first")


def _preview(source: DecodedInput) -> Column:
    if FORMATS[source.keys.format].text:
        return F.make_valid_utf8(F.substring(TEXT, 1, PREVIEW_CHARACTERS))
    return F.hex(F.substring(TEXT, 1, PREVIEW_CHARACTERS // 2))
