"""Finds the records of a batch that its counts call dead, and says of each what is wrong with it.

A second reading of the same ranges, which only a batch with such records costs.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from waybill_shared.contract.words import DeadReason
from waybill_spark.dead_letters.records import (
    MESSAGE_CHARACTERS_MAX,
    BuriedRecord,
    Death,
    RawRecord,
)
from waybill_spark.driver.decode import OFFSET, PARTITION, VERDICT, DecodedInput, judge
from waybill_spark.driver.judging import MalformedRecord, RuleBroken
from waybill_spark.driver.reasons import why_malformed

CARRIED: Final = ("key", "value", "headers")
ORDER: Final = ("topic", "partition", "offset")


def find_dead(
    raw: DataFrame, sources: Sequence[DecodedInput], limit: int
) -> tuple[BuriedRecord, ...]:
    """The first of them by topic, partition and offset. `raw` has keys and headers too."""
    frames = [_dead_of(raw, source) for source in sources if source.verdicts("dead_letter")]
    if not frames:
        return ()
    table = reduce(DataFrame.union, frames).orderBy(*ORDER).limit(limit).toArrow()
    by_topic = {source.topic: source for source in sources}
    return tuple(_dead(row, by_topic[row["topic"]]) for row in _rows(table))


def _dead_of(raw: DataFrame, source: DecodedInput) -> DataFrame:
    carried = {name: f"{name}_of_{VERDICT}" for name in CARRIED}
    judged = judge(raw, source, [F.col(name).alias(other) for name, other in carried.items()])
    return judged.where(F.col(VERDICT).isin(source.verdicts("dead_letter"))).select(
        F.lit(source.topic).alias("topic"),
        F.col(PARTITION).alias("partition"),
        F.col(OFFSET).alias("offset"),
        F.col(VERDICT).alias("death"),
        *(F.col(other).alias(name) for name, other in carried.items()),
    )


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _dead(row: dict[str, Any], source: DecodedInput) -> BuriedRecord:
    headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
    record = RawRecord(
        topic=row["topic"],
        partition=row["partition"],
        offset=row["offset"],
        key=row["key"],
        value=row["value"],
        headers=headers,
    )
    return BuriedRecord(record=record, death=_verdict(row["death"], record.value, source))


def _verdict(number: int, value: bytes | None, source: DecodedInput) -> Death:
    if number == 0:
        return Death(
            reason=DeadReason.MALFORMED,
            message=why_malformed(value, source),
            error=MalformedRecord.__name__,
        )
    rule = source.rules[number - 1]
    expected = " ".join(rule.expect.split())
    return Death(
        reason=DeadReason.VIOLATED,
        message=f"it breaks rule {rule.name}: {expected}"[:MESSAGE_CHARACTERS_MAX],
        rule=rule.name,
        error=RuleBroken.__name__,
    )
