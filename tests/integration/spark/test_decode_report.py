"""What becomes of records that are malformed or break a rule: counted once, and no rows."""

import json
from collections.abc import Callable, Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession

from batch_reading import tables_of
from integration.spark.conftest import RawFrame
from integration.spark.manifests import LAKE_SINK, make_manifest
from waybill_shared.contract.driver_news import IgnoredFields
from waybill_shared.contract.manifest.inputs import Expectation
from waybill_spark.driver.reading.decode import decode
from waybill_spark.driver.reading.decode_report import MalformedRecord, RuleBroken, look
from waybill_spark.driver.reading.inputs import DecodedInput
from waybill_spark.driver.sql.compile import CompiledStage, compile_pipeline
from waybill_spark.guard.allowed import read_allowed
from waybill_spark.tracking.batch_rows import BatchRows
from waybill_spark.tracking.dead_letters.records import QueryFailed

ALL = "SELECT order_id FROM orders"
TWO_VIEWS = (
    "{name: one, from: step_0, iceberg: {table: raw.one}}",
    "{name: two, from: step_1, iceberg: {table: raw.two}}",
)
MIXED = [
    b'{"order_id": 1, "amount": 5}',
    b"{",
    b'{"order_id": 3, "amount": -5}',
    b'{"order_id": 4}',
    b'{"order_id": "5"}',
    b'{"order_id": 6, "amount": 500}',
]
POSITIVE = "name: positive, expect: amount > 0"


@pytest.fixture(autouse=True, params=["here", "spread"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What executors keep is judged as what comes here."""
    if request.param == "spread":
        monkeypatch.setattr(CompiledStage, "rows", CompiledStage.distribute)


def make_stage(
    spark: SparkSession,
    *steps: str,
    sinks: tuple[str, ...] = (LAKE_SINK,),
    orders: str = "",
    others: str = "",
) -> CompiledStage:
    manifest = make_manifest(*steps, sinks=sinks, orders=orders, others=others)
    (compiled,) = compile_pipeline(spark, manifest, read_allowed())
    return compiled


def rows_of(
    raw_frame: RawFrame, compiled: CompiledStage, records: Sequence[bytes | None]
) -> BatchRows:
    return compiled.rows(
        raw_frame([("orders.in", 0, offset, value) for offset, value in enumerate(records)])
    )


def numbers(rows: BatchRows, sink: str = "lake") -> list[int]:
    if not rows.by_sink[sink].num_rows:
        return []
    found: list[int] = tables_of(rows)[sink].column("order_id").to_pylist()
    return found


def told(compiled: CompiledStage) -> IgnoredFields:
    (found,) = compiled.ignored.inputs()
    return found


def test_malformed_records_are_dead_and_the_others_are_rows(
    spark: SparkSession, raw_frame: RawFrame
) -> None:
    rows = rows_of(raw_frame, make_stage(spark, ALL), MIXED)
    assert (numbers(rows), rows.dropped) == ([1, 3, 4, 6], {})
    assert [(each.topic, each.partition, each.offset, each.verdict) for each in rows.dead] == [
        ("orders.in", 0, 1, 0),
        ("orders.in", 0, 4, 0),
    ]


def test_malformed_records_are_dropped_where_the_input_says_so(
    spark: SparkSession, raw_frame: RawFrame
) -> None:
    compiled = make_stage(spark, ALL, orders="onMalformed: drop")
    rows = rows_of(raw_frame, compiled, MIXED)
    assert (numbers(rows), rows.dead) == ([1, 3, 4, 6], [])
    assert rows.dropped == {"orders.malformed": 2}
    assert told(compiled).dropped == {"malformed": 2}


def test_malformed_records_end_the_stage_where_the_input_says_so(
    spark: SparkSession, raw_frame: RawFrame
) -> None:
    compiled = make_stage(spark, ALL, orders="onMalformed: fail")
    with pytest.raises(MalformedRecord, match=r"2 record\(s\) .* orders\.in\[0\]@1: \{"):
        rows_of(raw_frame, compiled, MIXED)


@pytest.mark.parametrize(
    ("action", "kept", "dead", "dropped"),
    [
        ("dead_letter", [1, 6], 4, {}),
        ("drop", [1, 6], 2, {"orders.positive": 2}),
        ("warn", [1, 3, 4, 6], 2, {}),
    ],
)
def test_a_record_that_breaks_a_rule_or_of_which_it_is_null_is_treated_as_the_rule_says(
    spark: SparkSession,
    raw_frame: RawFrame,
    action: str,
    kept: list[int],
    dead: int,
    dropped: dict[str, int],
) -> None:
    rule = f"expectations: [{{{POSITIVE}, onViolation: {action}}}]"
    compiled = make_stage(spark, ALL, orders=rule)
    rows = rows_of(raw_frame, compiled, MIXED)
    assert (numbers(rows), len(rows.dead), rows.dropped) == (kept, dead, dropped)
    if action == "warn":
        assert (told(compiled).warned, told(compiled).dropped) == (
            {"positive": 2},
            {},
        )
    rows_of(raw_frame, compiled, MIXED)
    if action == "drop":
        assert (told(compiled).warned, told(compiled).dropped) == (
            {},
            {"positive": 4},
        )


def test_a_broken_rule_ends_the_stage_where_it_says_so(
    spark: SparkSession, raw_frame: RawFrame
) -> None:
    rule = f"expectations: [{{{POSITIVE}, onViolation: fail}}]"
    compiled = make_stage(spark, ALL, orders=rule)
    said = r"input orders: 2 record\(s\) break rule positive; the first is orders\.in\[0\]@2$"
    with pytest.raises(RuleBroken, match=said):
        rows_of(raw_frame, compiled, MIXED)


def test_a_record_is_judged_by_the_first_that_applies(
    spark: SparkSession, raw_frame: RawFrame
) -> None:
    """And by no other. What only warns lets it pass to the next, and counts what passed all."""
    rules = (
        "{name: odd, expect: order_id % 2 = 1, onViolation: warn}",
        "{name: known, expect: order_id < 6, onViolation: drop}",
        f"{{{POSITIVE}}}",
        "{name: some, expect: amount IS NOT NULL, onViolation: fail}",
    )
    compiled = make_stage(
        spark, ALL, orders=f"onMalformed: drop, expectations: [{', '.join(rules)}]"
    )
    records = [*MIXED, b'{"order_id": 8, "amount": -1}', b'{"order_id": 2, "amount": 1}']
    rows = rows_of(raw_frame, compiled, records)
    assert numbers(rows) == [1, 2]
    assert (len(rows.dead), rows.dropped) == (2, {"orders.malformed": 2, "orders.known": 2})
    assert told(compiled).warned == {"odd": 1}


def test_what_several_views_read_is_counted_once(spark: SparkSession, raw_frame: RawFrame) -> None:
    rules = f"{{{POSITIVE}}}, {{name: few, expect: amount < 100, onViolation: drop}}"
    compiled = make_stage(
        spark,
        "SELECT order_id FROM orders UNION ALL SELECT order_id FROM orders",
        "SELECT order_id + 10 AS order_id FROM orders UNION ALL SELECT order_id FROM others",
        sinks=TWO_VIEWS,
        orders=f"expectations: [{rules}]",
    )
    mixed = [("orders.in", 0, offset, value) for offset, value in enumerate(MIXED)]
    rows = compiled.rows(raw_frame([*mixed, ("others.in", 1, 7, b"x"), ("others.in", 1, 8, b"{}")]))
    assert (sorted(numbers(rows, "one")), numbers(rows, "two")) == ([1, 1], [11, None])
    assert (len(rows.dead), rows.dropped) == (4 + 1, {"orders.few": 1})
    assert {each.input: each.dropped for each in compiled.ignored.inputs()} == {
        "orders": {"few": 1}
    }


NEVER = ("amount = NULL", "1 = 0", "order_id <> order_id", "amount > 3 AND NOT (amount > 3)")


@pytest.mark.parametrize("never", NEVER)
def test_records_die_also_where_the_query_can_give_no_row(
    spark: SparkSession, raw_frame: RawFrame, never: str
) -> None:
    """Spark does not read then: of what is at rest it knows that before."""
    compiled = make_stage(spark, f"{ALL} WHERE {never}")
    rows = rows_of(raw_frame, compiled, MIXED)
    assert (numbers(rows), [each.offset for each in rows.dead]) == ([], [1, 4])
    failing = make_stage(spark, f"{ALL} WHERE {never}", orders="onMalformed: fail")
    with pytest.raises(MalformedRecord, match=r"2 record"):
        rows_of(raw_frame, failing, MIXED)


def test_an_input_that_one_of_two_queries_cannot_get_a_row_of_is_judged(
    spark: SparkSession, raw_frame: RawFrame
) -> None:
    compiled = make_stage(
        spark,
        "SELECT order_id FROM orders UNION ALL SELECT order_id FROM others WHERE 1 = 0",
        "SELECT order_id FROM orders",
        sinks=TWO_VIEWS,
    )
    rows = compiled.rows(raw_frame([("orders.in", 0, 0, MIXED[0]), ("others.in", 1, 7, b"x")]))
    assert [(each.topic, each.offset) for each in rows.dead] == [("others.in", 7)]


def test_a_query_does_not_see_what_breaks_a_rule(spark: SparkSession, raw_frame: RawFrame) -> None:
    sql = "SELECT 100 / order_id AS part, order_id FROM orders WHERE 1 / order_id < 5"
    compiled = make_stage(
        spark, sql, orders="expectations: [{name: no_zero, expect: order_id <> 0}]"
    )
    rows = rows_of(raw_frame, compiled, [b'{"order_id": 0}', b'{"order_id": 1}'])
    assert (numbers(rows), len(rows.dead)) == ([1], 1)


def test_columns_may_be_called_as_what_is_known_of_a_record(raw_frame: RawFrame) -> None:
    names = ("partition", "offset", "text", "value", "key", "parsed", "record", "malformed")
    source = DecodedInput(
        name="orders",
        topic="orders.in",
        columns=", ".join(f"{name} INT" for name in names),
        own_output=False,
        rules=tuple(Expectation(name=name, expect=f"{name} >= 0") for name in names),
    )
    good, bad = dict.fromkeys(names, 7), dict.fromkeys(names, 7) | {"record": -1}
    records = [json.dumps(each).encode() for each in (good, bad)]
    raw = raw_frame([("orders.in", 0, number, value) for number, value in enumerate(records)])
    decoded = decode(raw, source)
    assert [row.asDict() for row in decoded.collect()] == [good]
    (dead,) = look(decoded._jdf.queryExecution(), (source,))["orders"].dead
    assert (dead.offset, dead.verdict) == (1, 1 + names.index("record"))


@pytest.mark.parametrize(
    ("query", "value", "said", "error"),
    [
        ("CAST(customer AS INT)", "abc", "'abc' of the type", "NumberFormatException"),
        ("100 / order_id", 0, "Division by zero", "ArithmeticException"),
        ("order_id * 9223372036854775807", 2, "long overflow", "ArithmeticException"),
    ],
)
def test_a_value_that_ends_the_query_is_no_fault_of_the_world(
    spark: SparkSession, raw_frame: RawFrame, query: str, value: object, said: str, error: str
) -> None:
    compiled = make_stage(spark, f"SELECT {query} AS found FROM orders")
    column = "order_id" if isinstance(value, int) else "customer"
    good = json.dumps({"order_id": 1, "customer": "1"}).encode()
    with pytest.raises(QueryFailed) as raised:
        rows_of(raw_frame, compiled, [good, json.dumps({column: value}).encode(), good])
    assert str(raised.value).startswith("step step_0 ends at a value: ")
    assert said in str(raised.value)
    assert raised.value.error == error
    assert rows_of(raw_frame, compiled, [good, good]).dead == []


@pytest.mark.parametrize("reading", [CompiledStage.rows, CompiledStage.distribute])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"order_id": 1, "customer": "ada"}, "step step_0 ends at a value: The value 'ada'"),
        ({"order_id": 7, "customer": "1"}, "step step_1 ends at a value: Division by zero"),
    ],
)
def test_the_step_in_which_a_value_ends_the_query_is_named(
    spark: SparkSession,
    raw_frame: RawFrame,
    reading: Callable[[CompiledStage, DataFrame], BatchRows],
    value: dict[str, object],
    said: str,
) -> None:
    compiled = make_stage(
        spark,
        "SELECT '😀' AS mood, order_id - 7 AS rest, CAST(customer AS INT) AS number FROM orders",
        "SELECT 100 / rest AS part, number FROM step_0",
    )
    raw = raw_frame([("orders.in", 0, 0, json.dumps(value).encode())])
    with pytest.raises(QueryFailed) as raised:
        reading(compiled, raw)
    assert str(raised.value).startswith(said)
