"""The rows of a batch: what each sink gets, and that one action serves all sinks of a view."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from batch_reading import tables_of
from integration.spark.conftest import RawFrame
from integration.spark.manifests import KAFKA_SINK, LAKE_SINK, make_manifest
from memory_sink.kind import MEMORY
from waybill_shared.contract.manifest.sinks import KINDS
from waybill_spark.driver.reading.decode import decode
from waybill_spark.driver.reading.decode_report import look
from waybill_spark.driver.reading.inputs import DecodedInput
from waybill_spark.driver.sql.compile import CompiledStage, compile_pipeline
from waybill_spark.guard.allowed import read_allowed
from waybill_spark.sinks.kafka.sending import KEY, VALUE

ORDER = {
    "order_id": 7,
    "customer": "Ada",
    "amount": "12.34",
    "placed_at": "2026-11-21T09:00:00.123456Z",
    "tags": ["new", None],
}
EXTREMES = [
    "0001-01-01T00:00:00Z",
    "1582-10-10T12:00:00.000001Z",
    "1969-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59.999999Z",
]


def make_stage(spark: SparkSession, *steps: str, sinks: tuple[str, ...]) -> CompiledStage:
    (compiled,) = compile_pipeline(spark, make_manifest(*steps, sinks=sinks), read_allowed())
    return compiled


def raw_order(**changes: object) -> bytes:
    return json.dumps({**ORDER, **changes}).encode()


def test_a_kind_that_only_tests_have_gets_its_rows_with_the_others(
    spark: SparkSession, raw_frame: RawFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "memory", MEMORY)
    kept = "{name: kept, memory: {shelf: top}}"
    compiled = make_stage(spark, "SELECT order_id FROM orders", sinks=(KAFKA_SINK, kept))
    rows = tables_of(compiled.rows(raw_frame([("orders.in", 0, 0, raw_order())])))
    assert rows["kept"].to_pydict() == {"order_id": [7]}
    assert rows["out"].column(KEY).to_pylist() == ["7"]


def test_one_action_serves_a_kafka_and_an_iceberg_sink(
    spark: SparkSession, raw_frame: RawFrame
) -> None:
    sql = "SELECT order_id, amount, placed_at FROM orders"
    compiled = make_stage(spark, sql, sinks=(KAFKA_SINK, LAKE_SINK))
    frame = raw_frame(
        [("orders.in", 0, 5, raw_order()), ("orders.in", 1, 9, raw_order(order_id=8))]
    )
    spark.sparkContext.setJobGroup("rows", "the rows of one batch")
    tables = tables_of(compiled.rows(frame))
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("rows")) == 1
    assert tables["lake"].column_names == ["order_id", "amount", "placed_at"]
    assert tables["lake"].select(compiled.schemas["lake"].names).schema == compiled.schemas["lake"]
    assert tables["lake"].to_pylist()[0] == {
        "order_id": 7,
        "amount": Decimal("12.34"),
        "placed_at": datetime(2026, 11, 21, 9, 0, 0, 123456, tzinfo=UTC),
    }
    assert tables["out"].column_names == [KEY, VALUE]
    assert [row[KEY] for row in tables["out"].to_pylist()] == ["7", "8"]


def test_kafka_sink_alone_gets_its_rows_as_json(spark: SparkSession, raw_frame: RawFrame) -> None:
    compiled = make_stage(spark, "SELECT * FROM orders", sinks=(KAFKA_SINK,))
    (row,) = tables_of(compiled.rows(raw_frame([("orders.in", 0, 0, raw_order())])))[
        "out"
    ].to_pylist()
    assert row[KEY] == "7"
    assert json.loads(row[VALUE], parse_float=Decimal) == {**ORDER, "amount": Decimal("12.34")}


def test_rows_of_two_inputs_meet_in_one_view(spark: SparkSession, raw_frame: RawFrame) -> None:
    sql = "SELECT order_id FROM orders UNION ALL SELECT order_id FROM others"
    compiled = make_stage(spark, sql, sinks=(LAKE_SINK,))
    frame = raw_frame([("orders.in", 0, 0, raw_order()), ("others.in", 0, 3, b'{"order_id": 9}')])
    assert tables_of(compiled.rows(frame))["lake"].column("order_id").to_pylist() == [7, 9]


def test_batch_without_rows_gives_empty_tables(spark: SparkSession, raw_frame: RawFrame) -> None:
    compiled = make_stage(
        spark, "SELECT * FROM orders WHERE amount > 100", sinks=(KAFKA_SINK, LAKE_SINK)
    )
    tables = tables_of(compiled.rows(raw_frame([("orders.in", 0, 0, raw_order())])))
    assert {name: table.num_rows for name, table in tables.items()} == {"out": 0, "lake": 0}


def test_timestamps_decode_to_themselves_behind_a_kafka_sink(
    spark: SparkSession, raw_frame: RawFrame
) -> None:
    sql = "SELECT order_id, placed_at FROM orders"
    compiled = make_stage(spark, sql, sinks=(KAFKA_SINK, LAKE_SINK))
    values = [raw_order(placed_at=value) for value in EXTREMES]
    tables = tables_of(compiled.rows(raw_frame(numbered("orders.in", values))))
    written = [value.as_py().encode() for value in tables["out"].column(VALUE)]
    source = DecodedInput(
        name="out", topic="orders.out", columns=compiled.columns["out"], own_output=True
    )
    decoded = decode(raw_frame(numbered("orders.out", written)), source)
    again = decoded.toArrow()
    assert look(decoded._jdf.queryExecution(), (source,))["out"].dead == ()
    assert again.column("placed_at") == tables["lake"].column("placed_at")
    assert again.column("placed_at").to_pylist() == [*map(datetime.fromisoformat, EXTREMES)]


def numbered(topic: str, values: Sequence[bytes]) -> list[tuple[str, int, int, bytes | None]]:
    return [(topic, 0, offset, value) for offset, value in enumerate(values)]
