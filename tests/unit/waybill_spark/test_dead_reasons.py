"""Why a record is malformed is said as `ingress` says it to its sender."""

import json

import pytest

from accepted_values import accepted_values
from unit.ingress.bodies import rows_of
from waybill_ingress.core.bodies.lines import read_ndjson
from waybill_ingress.core.rows import RowLimits, RowRule
from waybill_shared.contract.manifest.columns import parse_columns
from waybill_spark.driver.reading.dead_reasons import OTHERWISE, why_malformed
from waybill_spark.driver.reading.inputs import DecodedInput
from waybill_spark.tracking.dead_letters.records import MESSAGE_CHARACTERS_MAX

LIMITS = RowLimits(records_max=1, record_bytes_max=1_000_000, bytes_max=10_000_000)
REFUSED = [
    (case.type, case.record)
    for case in accepted_values()
    if case.gives is None and case.record is not None
]
ONE_LINE = [(kind, record) for kind, record in REFUSED if record.strip() and b"\n" not in record]
COLUMNS = "order_id BIGINT NOT NULL, amount DECIMAL(10,2), price DOUBLE, s STRUCT<x: INT>"


def make_input(
    columns: str = COLUMNS, *, own_output: bool = False, strict: bool = False
) -> DecodedInput:
    return DecodedInput(
        name="orders", topic="orders.in", columns=columns, own_output=own_output, strict=strict
    )


def said_over_http(value: bytes, columns: str, *, strict: bool = False) -> str:
    rule = RowRule(columns=parse_columns(columns), key=None, strict=strict)
    (rejection,) = rows_of(read_ndjson, value, rule, LIMITS).rejected
    return rejection.reason


@pytest.mark.parametrize(("kind", "record"), REFUSED)
def test_of_each_value_that_is_refused_there_is_a_reason(kind: str, record: bytes) -> None:
    assert why_malformed(record, make_input(f"c {kind}")) not in ("", OTHERWISE)


@pytest.mark.parametrize(("kind", "record"), [each for each in ONE_LINE if len(each[1]) < 200])
def test_the_reason_is_the_one_that_ingress_tells(kind: str, record: bytes) -> None:
    reason = why_malformed(record, make_input(f"c {kind}"))
    assert reason == said_over_http(record, f"c {kind}")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"order_id": 7, "amount": "x"}', "amount: DECIMAL(10,2) takes a number, this is the st"),
        (b'{"order_id": 7, "s": {"x": 1.5}}', "s: x: INT takes a whole number, this is the number"),
        (b'{"amount": 1}', "order_id: is missing, and the column is NOT NULL"),
        (b"[]", "a record is a JSON object, this is an array"),
        (b'{"order_id": 7} 8', "not JSON at character 17: Extra data"),
        (b'{"order_id": 7, "price": NaN}', "NaN is not JSON"),
        (b'{"order_id": "\xff"}', "byte 15 is not UTF-8"),
    ],
)
def test_the_reason_names_the_column_and_what_does_not_fit(value: bytes, reason: str) -> None:
    assert why_malformed(value, make_input()).startswith(reason)
    assert why_malformed(value, make_input()) == said_over_http(value, COLUMNS)


def test_a_field_that_is_no_column_is_named_where_the_input_is_strict() -> None:
    value = b'{"order_id": 7, "amout": 1}'
    reason = why_malformed(value, make_input(strict=True))
    assert reason == said_over_http(value, COLUMNS, strict=True)
    assert reason.startswith("field 'amout' is no column: did you mean 'amount'?")


def test_what_has_no_value_says_so() -> None:
    assert why_malformed(None, make_input()) == "it has no value"
    assert why_malformed(b"", make_input()).startswith("not JSON at character 1")


@pytest.mark.parametrize(
    "value",
    [
        b'{"order_id": 7}',
        json.dumps({"order_id": 7, "more": "1" * 2_000}).encode(),
        b'{"order_id": 1e999999999999999999999}',
        b'{"order_id": ' + b"9" * 5_000 + b"}",
    ],
    ids=["good", "good and long", "an exponent", "digits"],
)
def test_where_nothing_else_is_found_a_general_sentence_is_said(value: bytes) -> None:
    assert why_malformed(value, make_input()) == OTHERWISE


def test_a_nest_without_end_has_a_reason_too() -> None:
    assert why_malformed(b"[" * 100_000, make_input()) == "it is nested too deep"


def test_what_our_own_sink_writes_for_no_number_is_not_named() -> None:
    written = "`order_id` bigint, `price` double"
    value = json.dumps({"order_id": "x", "price": "NaN"}).encode()
    assert why_malformed(value, make_input(written, own_output=True)).startswith("order_id: BIGINT")


def test_of_a_topic_with_types_that_no_input_has_a_general_sentence_is_said() -> None:
    assert why_malformed(b'{"raw": 1}', make_input("`raw` smallint", own_output=True)) == OTHERWISE


def test_a_reason_is_short() -> None:
    names = ", ".join(f"column_{number} INT" for number in range(200))
    reason = why_malformed(b'{"zzz": 1}', make_input(names, strict=True))
    assert len(reason) <= MESSAGE_CHARACTERS_MAX
