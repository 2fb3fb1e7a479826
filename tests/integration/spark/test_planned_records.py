"""Records that are planned once for a search: a few of them are read as if from Kafka."""

import pytest
from pyspark.sql import SparkSession

from batch_reading import tables_of
from integration.spark.conftest import RawFrame
from integration.spark.manifests import KAFKA_SINK, LAKE_SINK
from integration.spark.test_rows import make_stage, raw_order
from waybill_shared.contract.events import Range
from waybill_spark.driver.sql.planned_records import SparkRecords, plan_records
from waybill_spark.sinks.kafka.sending import KEY
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.records import NOTHING, QueryFailed
from waybill_spark.tracking.pieces import Ranges

TOPIC = "orders.in"
DIVIDED = "SELECT order_id, 100 DIV (order_id - 3) AS part FROM orders"
TWICE = f"{DIVIDED} UNION ALL SELECT order_id + 10, CAST(0 AS BIGINT) FROM orders"


def run_of(start: int, end: int) -> Ranges:
    return (Range(topic=TOPIC, topic_id="T", partition=0, start=start, end=end),)


def without(*found: int) -> dict[tuple[str, int], frozenset[int]]:
    return {(TOPIC, 0): frozenset(found)}


def numbers(rows: SparkRecords, ranges: Ranges, *left_out: int) -> list[int]:
    table = tables_of(rows.read(ranges, without(*left_out)))["lake"]
    return [*map(int, table.column("order_id").to_pylist())]


def plan(spark: SparkSession, raw_frame: RawFrame, sql: str, *bad: int) -> SparkRecords:
    """Records 0 to 5; the query ends at the order 3, which is record 3."""
    stage = make_stage(spark, sql, sinks=(LAKE_SINK,))
    records = [(TOPIC, 0, n, b"no order" if n in bad else raw_order(order_id=n)) for n in range(6)]
    found = stage.plan_records(raw_frame(records))
    assert found is not None
    return found


@pytest.mark.parametrize("sql", [DIVIDED, TWICE])
def test_a_record_that_ends_the_query_ends_only_what_it_is_in(
    spark: SparkSession, raw_frame: RawFrame, sql: str
) -> None:
    rows = plan(spark, raw_frame, sql)
    for start, end in [(0, 6), (3, 4), (2, 5)]:
        with pytest.raises(QueryFailed, match="step step_0 ends at a value: Division by zero"):
            rows.check(run_of(start, end), without())
    rows.check(run_of(0, 3), without())
    rows.check(run_of(4, 6), without())
    rows.check(run_of(0, 6), without(1, 3))


@pytest.mark.parametrize("sql", [DIVIDED, TWICE])
@pytest.mark.parametrize("records", [3, 70])
def test_those_that_end_the_query_are_found_each_by_its_own_error(
    spark: SparkSession, raw_frame: RawFrame, sql: str, records: int
) -> None:
    bad = {*range(0, records, 9)}
    stage = make_stage(spark, sql, sinks=(LAKE_SINK,))
    orders = [(TOPIC, 0, n, raw_order(order_id=3 if n in bad else 9)) for n in range(records)]
    rows = stage.plan_records(raw_frame(orders))
    assert rows is not None
    found = [*rows.find_failing(run_of(0, records), without(0))]
    assert [each.place for each in found] == [(TOPIC, 0, n) for n in sorted(bad - {0})]
    assert all("Division by zero" in str(each.why) for each in found)
    left = [each.left for each in found]
    assert left == sorted(left, reverse=True), "it comes nearer to the end"


def test_each_record_has_its_rows(spark: SparkSession, raw_frame: RawFrame) -> None:
    sql = (
        "SELECT order_id FROM orders UNION ALL SELECT order_id + 10 FROM orders WHERE order_id > 2"
    )
    rows = plan(spark, raw_frame, sql, 4)
    assert sorted(numbers(rows, run_of(0, 6))) == [0, 1, 2, 3, 5, 13, 15]
    assert sorted(numbers(rows, run_of(3, 6), 5)) == [3, 13]
    assert numbers(rows, run_of(4, 5)) == [], "it has no rows"


def test_sinks_of_several_views_get_their_own(spark: SparkSession, raw_frame: RawFrame) -> None:
    out = KAFKA_SINK.replace("{name: out", "{name: out, from: step_0")
    steps = ("SELECT order_id FROM orders", "SELECT order_id + 10 AS order_id FROM orders")
    stage = make_stage(spark, *steps, sinks=(out, LAKE_SINK))
    records = [(TOPIC, 0, n, raw_order(order_id=n)) for n in range(3)]
    planned = stage.plan_records(raw_frame(records))
    assert planned is not None
    by_sink = tables_of(planned.read(run_of(1, 3), NOTHING))
    assert by_sink["out"].column(KEY).to_pylist() == ["1", "2"]
    assert by_sink["lake"].column("order_id").to_pylist() == [11, 12]


def test_records_that_meet_others_are_not_planned(raw_frame: RawFrame) -> None:
    raw = raw_frame([(TOPIC, 0, n, raw_order(order_id=n)) for n in range(3)])
    found = plan_records(
        raw, ["any"], lambda frame, _: frame.repartition(3), lambda _: BatchRows({}), steps=()
    )
    assert found is None
