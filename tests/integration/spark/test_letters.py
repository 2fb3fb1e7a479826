"""Records of letters, processed again by the plan of their stage."""

from typing import cast

import pytest
from pyspark.sql import SparkSession

from batch_reading import tables_of
from integration.spark.manifests import LAKE_SINK
from integration.spark.test_rows import make_stage, raw_order
from waybill_shared.contract.events import Range
from waybill_shared.contract.words import DeadReason
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_spark.driver.letters import SparkLetters
from waybill_spark.tracking.dead_letters.records import (
    NOTHING,
    QueryFailed,
    RawRecord,
    RejectedRecord,
    ReplayedAt,
)

TOPIC = "orders.in"
REPLAYS = "waybill.replays"
SAME = "SELECT order_id FROM orders"
DIVIDED = "SELECT order_id, 100 DIV (order_id - 3) AS part FROM orders"


def letters_of(spark: SparkSession, sql: str = SAME) -> SparkLetters:
    stage = make_stage(spark, sql, sinks=(LAKE_SINK,))
    return SparkLetters(cast(KafkaAdmin, None), spark, stage, absent_s=0)


def record(offset: int, value: bytes | None = None, *, number: int = 0) -> RawRecord:
    """The record that died at this offset, in the message of that number."""
    at = ReplayedAt(topic=REPLAYS, topic_id="P", partition=3, offset=number, source_id="T")
    given = raw_order(order_id=offset) if value is None else value
    return RawRecord(
        topic=TOPIC,
        partition=0,
        offset=offset,
        key=b"k",
        value=given,
        headers=(("trace", b"1"), ("none", None)),
        replayed=at,
    )


def test_they_give_their_rows_wherever_they_died(spark: SparkSession) -> None:
    found = letters_of(spark).rows([record(41), record(7), record(1_000_000)])
    rows = tables_of(found)["lake"].column("order_id").to_pylist()
    assert sorted(map(int, rows)) == [7, 41, 1_000_000]
    assert not found.dead


def test_who_does_not_fit_is_found_where_it_died(spark: SparkSession) -> None:
    letters = letters_of(spark)
    found = letters.rows([record(41), record(7, b"no order")])
    assert found.by_sink["lake"].num_rows == 1
    (rejected,) = found.dead
    assert rejected == RejectedRecord(topic=TOPIC, partition=0, offset=7, verdict=rejected.verdict)
    dead = letters.die(record(7, b"no order", number=12), rejected.verdict)
    assert dead.cause.reason == DeadReason.MALFORMED
    assert dead.record.place == (REPLAYS, 3, 12)


def test_who_does_not_fit_is_found_where_the_query_gives_no_row(spark: SparkSession) -> None:
    letters = letters_of(spark, f"{SAME} WHERE order_id = NULL")
    assert len(letters.rows([record(7, b"no order")]).dead) == 1


def test_none_at_all_give_no_row(spark: SparkSession) -> None:
    assert letters_of(spark).rows([]).by_sink["lake"].num_rows == 0


def test_a_value_ends_the_query(spark: SparkSession) -> None:
    with pytest.raises(QueryFailed, match="Division by zero"):
        letters_of(spark, DIVIDED).rows([record(2), record(3)])


def test_a_search_finds_them_at_their_messages(spark: SparkSession) -> None:
    letters = letters_of(spark, DIVIDED)
    records = [record(40, number=5), record(3, number=6), record(1, number=9)]
    planned = letters.plan_records(records)
    assert planned is not None
    run = Range(topic=REPLAYS, topic_id="P", partition=3, start=5, end=10)
    with pytest.raises(QueryFailed):
        planned.check((run,), NOTHING)
    planned.check((run,), {(REPLAYS, 3): frozenset([6])})
