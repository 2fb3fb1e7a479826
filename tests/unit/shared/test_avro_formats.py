"""Avro by the letter: which schemas and defaults are taken, and which bytes are a value."""

from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.ingress.bodies import rows_of
from waybill_ingress.core.bodies.avro import read_avro
from waybill_ingress.core.encoders.avro_records import AvroRecords
from waybill_ingress.core.rows import RowLimits, RowRule
from waybill_shared.contract.errors import Refusal, UserError
from waybill_shared.contract.formats.avro_reader import ValueReader
from waybill_shared.contract.formats.avro_schemas import columns_of
from waybill_shared.contract.manifest.columns import parse_columns

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
COIN = {"type": "fixed", "name": "coin", "size": 4, "logicalType": "decimal", "precision": 5}
SIZE = {"type": "enum", "name": "size", "symbols": ["S", "L"]}
LINE = {
    "type": "record",
    "name": "line",
    "fields": [
        {"name": "n", "type": "int", "default": 7},
        {"name": "raw", "type": "bytes", "default": "\u00fe"},
    ],
}
LIMITS = RowLimits(records_max=1_000, record_bytes_max=1_000, bytes_max=100_000)
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": list(fields)}


def of(kind: object, **more: object) -> dict[str, Any]:
    return record({"name": "c", "type": kind, **more})


def made(schema: dict[str, Any], row: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever stands there
    return ValueReader(schema).read(AvroRecords(schema).write(row))["c"]


@pytest.mark.parametrize(
    ("kind", "raw", "reason"),
    [
        (DECIMAL, b"\x12\x01" + bytes(7) + b"\x96", "between 1 and 10 digits"),
        (DECIMAL, b"\x00", "between 1 and 10 digits"),
        ("int", b"\x80\x80\x80\x80\x20", "more than 32 bits"),
        ("int", b"\x80\x80\x80\x80\x80\x20", "no value"),
        ("long", b"\xff" * 9 + b"\x7f", "more than 64 bits"),
        ("long", b"\xff" * 11, "no value"),
        ("boolean", b"\x02", "no value"),
        (SIZE, b"\x01", "no value"),
        (SIZE, b"\x04", "no value"),
        (["null", "string"], b"\x01\x02a", "no value"),
        ("string", b"\x02\xff", "not UTF-8"),
        ("string", b"\x01", "no value"),
        ({"type": "map", "values": "int"}, b"\x04\x02a\x02\x02a\x04\x00", "twice"),
        ({"type": "array", "items": "int"}, b"\x02", "cut off"),
        (MILLIS, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "out of its range"),
        ("long", b"\x02\x02", "1 bytes stand behind"),
    ],
)
def test_what_no_correct_writer_makes_is_no_value(kind: object, raw: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ValueReader(of(kind)).read(raw)


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [
        ("boolean", True, True),
        ("bytes", "\u00ff", b"\xff"),
        (DECIMAL, "\u0096", Decimal("-1.06")),
        (COIN, "\u0000\u0000\u0000\u0007", Decimal(7)),
        ({"type": "fixed", "name": "f", "size": 2}, "ab", b"ab"),
        (SIZE, "L", "L"),
        ({"type": "int", "logicalType": "date"}, 0, datetime(1970, 1, 1, tzinfo=UTC).date()),
        (MILLIS, 1_000, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ({"type": "map", "values": "bytes"}, {"a": "\u0001"}, {"a": b"\x01"}),
        ({"type": "array", "items": LINE}, [{}], [{"n": 7, "raw": b"\xfe"}]),
        (["bytes", "null"], "\u0001", b"\x01"),
        (["null", "string"], None, None),
        (LINE, {"n": 1}, {"n": 1, "raw": b"\xfe"}),
    ],
)
def test_a_field_that_lacks_has_its_default(kind: object, default: object, value: object) -> None:
    schema = of(kind, default=default)
    assert made(schema, {}) == value
    if not isinstance(kind, list):
        assert made(schema, {"c": None}) == value
    written, writer = BytesIO(), record({"name": "other", "type": "int"})
    fastavro.schemaless_writer(written, fastavro.parse_schema(writer), {"other": 1})
    reading = AvroRecords(schema)
    read = fastavro.schemaless_reader(
        BytesIO(written.getvalue()), fastavro.parse_schema(writer), reading.schema
    )
    assert ValueReader(schema).read(reading.write_value(read, None)[0])["c"] == value


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (SIZE, "B"), ("int", 2**31), ("bytes", "\u0100"), ("boolean", 1), ("string", 1),
        (["null", "int"], 1), ({"type": "fixed", "name": "f", "size": 2}, "a"), (LINE, {"n": "x"}),
        ({"type": "array", "items": "int"}, {}), ("double", float("nan")),
    ],
)  # fmt: skip
def test_a_default_that_is_none_is_refused_with_the_manifest(kind: object, default: object) -> None:
    with pytest.raises(UserError, match=r"field c|Default value"):
        columns_of(of(kind, default=default))


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("boolean", {"c": None}),
        ("boolean", {}),
        ({"type": "array", "items": "boolean"}, {"c": [None, True]}),
        ({"type": "map", "values": "boolean"}, {"c": {"a": None}}),
        (record({"name": "x", "type": "boolean"}) | {"name": "inner"}, {"c": {}}),
    ],
)
def test_null_is_never_written_as_something_else(kind: object, row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is null, and its Avro type is not"):
        made(of(kind), row)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+18:00", "9999-12-31T23:59:59-18:00"])
def test_a_moment_that_no_reader_takes_is_not_written(text: str) -> None:
    with pytest.raises(ValueError, match="years 1 to 9999"):
        made(of(MILLIS), {"c": text})


def test_a_number_that_would_be_infinite_is_not_written() -> None:
    with pytest.raises(ValueError, match="does not fit FLOAT"):
        made(of("float"), {"c": Decimal("3.4028235677973365e38")})


@pytest.mark.parametrize(
    "schema",
    [
        record({"name": "a BIGINT, b", "type": "int"}),
        record({"name": "3", "type": "int"}),
        record({"name": "a.b", "type": "int"}),
        of("int") | {"namespace": "a-b"},
        of("int") | {"name": "int"},
        of({"type": "fixed", "name": "f", "size": True}),
        of([["null", "int"]]),
        of("int", order="x"),
        of("int", aliases=["a-b"]),
        of({"type": "enum", "name": "e", "symbols": ["a b"]}),
    ],
)
def test_what_other_readers_refuse_is_no_schema(schema: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        columns_of(schema)


def test_a_type_that_is_used_again_and_again_does_not_take_all_memory() -> None:
    kinds: list[dict[str, Any]] = [LINE]
    for number in range(40):
        before = kinds[-1]["name"] if number else LINE
        fields = [{"name": "a", "type": before}, {"name": "b", "type": kinds[-1]["name"]}]
        kinds.append({"type": "record", "name": f"r{number}", "fields": fields})
    fields = [{"name": kind["name"], "type": kind} for kind in kinds[1:]]
    with pytest.raises(UserError, match="more than 20000"):
        columns_of(record(*fields))


def test_what_the_specification_does_not_know_is_left_out() -> None:
    assert (
        columns_of(of({"type": "int", "spark.sql.catalyst.type": "interval year"}))
        == "c INT NOT NULL"
    )


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_none(raw: bytes) -> None:
    reader = ValueReader(
        record(
            {"name": "a", "type": {"type": "array", "items": ["null", DECIMAL]}},
            {"name": "b", "type": {"type": "map", "values": LINE}},
            {"name": "c", "type": MILLIS},
            {"name": "d", "type": SIZE},
        )
    )
    try:
        assert reader.read(raw).keys() == {"a", "b", "c", "d"}
    except ValueError:
        pass


def container(writer: dict[str, Any], values: list[object]) -> bytes:
    target = BytesIO()
    fastavro.writer(target, fastavro.parse_schema(writer), [{"c": value} for value in values])
    return target.getvalue()


@pytest.mark.parametrize(
    ("writer", "reader", "values", "bad"),
    [
        (["null", "int"], "int", [1, None, 3], 1),
        ({**SIZE, "symbols": ["S", "XL"]}, SIZE, ["S", "XL", "S"], 1),
    ],
)
def test_a_record_that_cannot_be_resolved_is_refused_by_itself(
    writer: object, reader: object, values: list[object], bad: int
) -> None:
    rule = RowRule(
        columns=parse_columns(columns_of(of(reader))), key=None, form=AvroRecords(of(reader))
    )
    found = rows_of(read_avro, container(of(writer), values), rule, LIMITS)
    assert [record.row for record in found.records] == [0, 2]
    assert [each.index for each in found.rejected] == [bad]
    with pytest.raises(Refusal, match="cannot be read as the input's avroSchema"):
        rows_of(read_avro, container(of(writer), [values[bad]] * 3), rule, LIMITS)
