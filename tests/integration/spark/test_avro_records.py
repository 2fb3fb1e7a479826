"""Records of Avro inputs: Spark reads what writers of Avro write, and what ingress writes."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from itertools import groupby
from operator import itemgetter
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from integration.spark.conftest import RawFrame
from integration.spark.test_decode import rows_of
from waybill_ingress.core.encoders.avro_records import AvroRecords
from waybill_shared.contract.formats.avro_schemas import columns_of
from waybill_shared.contract.manifest.columns import parse_columns, refusal
from waybill_shared.contract.manifest.formats import RecordKeys
from waybill_spark.driver.reading.dead_reasons import OTHERWISE, why_malformed
from waybill_spark.driver.reading.decode import decode
from waybill_spark.driver.reading.decode_report import MalformedRecord
from waybill_spark.driver.reading.inputs import DecodedInput

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
SIZE = {"type": "enum", "name": "size", "symbols": ["S", "L"]}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": ["null", DECIMAL]},
        {"name": "size", "type": SIZE, "default": "S"},
        {"name": "other_size", "type": ["null", "size"]},
        {"name": "placed_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "seen_at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "on", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {
            "name": "line",
            "type": ["null", {"type": "record", "name": "line", "fields": [
                {"name": "price", "type": "double"},
                {"name": "weight", "type": ["null", "float"]},
            ]}],
        },
        {"name": "raw", "type": "bytes"},
        {"name": "mark", "type": ["null", {"type": "fixed", "name": "mark", "size": 2}]},
        {"name": "uid", "type": ["null", {"type": "string", "logicalType": "uuid"}]},
        {"name": "paid", "type": "boolean"},
    ],
}  # fmt: skip
UID = "9f1c5a52-3a0c-4a0e-9f5c-5e6a4d3c2b1a"
VALUE: dict[str, Any] = {
    "id": 2**63 - 1,
    "customer": "ädä",
    "amount": Decimal("-1.50"),
    "size": "L",
    "other_size": "S",
    "placed_at": datetime(2026, 11, 21, 9, 0, 0, 123456, UTC),
    "seen_at": datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
    "on": date(1, 1, 1),
    "tags": ["a", None],
    "counts": {"x": -1},
    "line": {"price": 1e300, "weight": None},
    "raw": b"\x00\xff",
    "mark": b"ab",
    "uid": UID,
    "paid": True,
}
READ = {
    **VALUE,
    "amount": -1.5,
    "placed_at": "2026-11-21T09:00:00.123456Z",
    "seen_at": "1969-12-31T23:59:59.999000Z",
    "on": "0001-01-01",
    "raw": "AP8=",
    "mark": "YWI=",
}
ROW = {**READ, "amount": Decimal("-1.50"), "line": {"price": Decimal("1e300"), "weight": None}}
TEXT = {"type": "record", "name": "r", "fields": [{"name": "c", "type": "string"}]}
LIST = {"type": "array", "items": "string"}
ITEMS = {"type": "record", "name": "r", "fields": [{"name": "c", "type": LIST}]}
NESTED = {"type": "record", "name": "r", "fields": [
    {"name": "c", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
]}  # fmt: skip
DAY = {"type": "record", "name": "r", "fields": [
    {"name": "c", "type": {"type": "int", "logicalType": "date"}},
]}  # fmt: skip


def avro_input(schema: dict[str, Any]) -> DecodedInput:
    return DecodedInput(
        name="orders",
        topic="orders.in",
        columns=columns_of(schema),
        own_output=False,
        keys=RecordKeys(format="avro", avro_schema=schema),
        on_malformed="fail",
    )


def written(schema: dict[str, Any], value: object) -> bytes:
    target = BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(schema), value)
    return target.getvalue()


def long(value: int) -> bytes:
    return written({"type": "long"}, value)


def of(kind: object) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": "c", "type": kind}]}


WHOLE = written(SCHEMA, VALUE)
TOO_LARGE = b"\x12\x01" + bytes(7) + b"\x96"  # 2**64 + 150, of which 64 bits are 1.50
COIN = {**DECIMAL, "type": "fixed", "name": "coin", "size": 9}
BAD = [
    (SCHEMA, WHOLE[:-1]),
    (SCHEMA, WHOLE + b"\x00"),
    (SCHEMA, WHOLE + WHOLE),
    (SCHEMA, b""),
    (SCHEMA, b"{}"),
    (TEXT, long(-1)),
    (TEXT, long(1_000_000_000) + b"a"),
    (TEXT, long(2**62) + b"a"),
    (TEXT, long(2) + b"\xff\xfe"),
    (ITEMS, long(1_000_000_000) + long(1) + b"a" + long(0)),
    (ITEMS, long(2**61)),
    (ITEMS, long(1) + long(1) + b"\xff" + long(0)),
    (NESTED, long(1) + long(1) + b"k" + long(1) + long(1) + b"\xff" + long(0) + long(0)),
    (NESTED, long(1) + long(1) + b"\xff" + long(0) + long(0)),
    (of(DECIMAL), TOO_LARGE),
    (of(DECIMAL), b"\x0a\x02\x54\x0b\xe4\x00"),
    (of(COIN), TOO_LARGE[1:]),
    (of({"type": "array", "items": ["null", DECIMAL]}), long(1) + b"\x02" + TOO_LARGE + long(0)),
    (of({"type": "map", "values": DECIMAL}), long(1) + b"\x02a" + TOO_LARGE + long(0)),
    (of({**of(DECIMAL), "name": "inner"}), TOO_LARGE),
    (DAY, long(4_000_000)),
    (DAY, long(-4_000_000)),
]


def test_columns_are_those_of_the_schema(raw_frame: RawFrame) -> None:
    source = avro_input(SCHEMA)
    frame = decode(raw_frame([("orders.in", 0, 0, WHOLE)]), source)
    declared = [(each.name, each.type.lower().replace(", ", ",").replace(": ", ":"))
                for each in source.columns_to_parse()]  # fmt: skip
    assert [(f.name, f.dataType.simpleString()) for f in frame.schema] == declared


def test_a_value_is_read_as_it_was_written(raw_frame: RawFrame) -> None:
    assert rows_of(raw_frame, avro_input(SCHEMA), [WHOLE]) == [READ]


def test_a_row_of_json_becomes_the_same_value(raw_frame: RawFrame) -> None:
    assert refusal(parse_columns(columns_of(SCHEMA), binary=True), ROW) is None
    assert AvroRecords(SCHEMA).write(ROW) == WHOLE


def test_a_field_that_lacks_has_its_default(raw_frame: RawFrame) -> None:
    few = {
        k: v for k, v in ROW.items() if k in ("id", "placed_at", "tags", "counts", "raw", "paid")
    }
    (row,) = rows_of(raw_frame, avro_input(SCHEMA), [AvroRecords(SCHEMA).write(few)])
    assert row == {**dict.fromkeys(READ), **{name: READ[name] for name in few}, "size": "S"}


@pytest.mark.parametrize(
    ("schema", "values"),
    [(schema, [value for _, value in cases]) for schema, cases in groupby(BAD, itemgetter(0))],
)
def test_what_is_no_value_of_the_schema_is_malformed(
    raw_frame: RawFrame, schema: dict[str, Any], values: list[bytes]
) -> None:
    source = avro_input(schema)
    with pytest.raises(MalformedRecord, match=rf" {len(values)} record\(s\) "):
        rows_of(raw_frame, source, values)
    assert {"", OTHERWISE}.isdisjoint(why_malformed(value, source) for value in values)


def test_the_first_malformed_one_is_shown_as_bytes(raw_frame: RawFrame) -> None:
    with pytest.raises(MalformedRecord, match="FF00FF"):
        rows_of(raw_frame, avro_input(SCHEMA), [WHOLE, b"\xff\x00\xff"])


EARLY, LATE = datetime.fromisoformat("0001-01-02"), datetime.fromisoformat("9999-12-30")
ROWS = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "customer": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        "amount": st.none() | st.decimals(-1000, 1000, places=2),
        "placed_at": st.datetimes(EARLY, LATE).map(
            lambda at: f"{at.isoformat(timespec='microseconds')}Z"
        ),
        "on": st.none() | st.dates().map(str),
        "tags": st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=3)),
        "counts": st.dictionaries(st.text("ab", max_size=2), st.integers(-9, 9)),
        "paid": st.booleans(),
    }
)


@settings(max_examples=2, deadline=None, suppress_health_check=[*HealthCheck])
@given(rows=st.lists(ROWS, min_size=20, max_size=40))
def test_what_ingress_writes_comes_out_of_spark(
    raw_frame: RawFrame, rows: Iterable[dict[str, Any]]
) -> None:
    form = AvroRecords(SCHEMA)
    sent = [{**row, "raw": ""} for row in rows]
    found = rows_of(raw_frame, avro_input(SCHEMA), [form.write(row) for row in sent])
    for row, read in zip(sent, found, strict=True):
        amount = row["amount"]
        expected = {**row, "amount": None if amount is None else float(amount)}
        assert {name: read[name] for name in row} == expected
