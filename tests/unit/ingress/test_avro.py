"""Avro containers: records become the JSON that they stand for; no container makes more than it has
bytes for."""

import io
import json
import zlib
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.ingress.bodies import Rows, rows_of
from waybill_ingress.core.bodies.avro import read_avro
from waybill_ingress.core.bodies.avro_schema import BLOCK_BYTES_MAX
from waybill_ingress.core.rows import RowLimits, RowRule
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.manifest.columns import parse_columns

LIMITS = RowLimits(records_max=10_000, record_bytes_max=10_000, bytes_max=10_000_000)
COLUMNS = (
    "id BIGINT NOT NULL, name STRING, price DOUBLE, amount DECIMAL(20,2), day DATE, at TIMESTAMP,"
    " tags ARRAY<STRING>, more MAP<STRING,INT>, part STRUCT<a: INT>, yes BOOLEAN"
)
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"]},
    {"name": "price", "type": "double"},
    {
        "name": "amount",
        "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2},
    },
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "more", "type": {"type": "map", "values": "int"}},
    {
        "name": "part",
        "type": {"type": "record", "name": "Part", "fields": [{"name": "a", "type": "int"}]},
    },
    {"name": "yes", "type": "boolean"},
]
VALUE = {
    "id": 1, "name": "é", "price": 1.5, "amount": Decimal("123456789012345678.90"),
    "day": date(2026, 11, 21), "at": datetime(2026, 11, 21, 9, 0, 0, 123456, tzinfo=UTC),
    "tags": ["a"], "more": {"x": 1}, "part": {"a": 2}, "yes": True,
}  # fmt: skip
AS_JSON = {
    **VALUE, "amount": "123456789012345678.90", "day": "2026-11-21",
    "at": "2026-11-21T09:00:00.123456Z",
}  # fmt: skip


def schema(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "orders", "fields": list(fields)}


def container(
    records: Sequence[object], *fields: dict[str, Any], codec: str = "null", interval: int = 16_000
) -> bytes:
    out = io.BytesIO()
    made = fastavro.parse_schema(schema(*fields or FIELDS))
    fastavro.writer(out, made, records, codec=codec, sync_interval=interval)
    return out.getvalue()


def long(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def by_hand(
    written: object, *blocks: tuple[int, bytes], codec: bytes = b"null", end: bytes = b"s" * 16
) -> bytes:
    out = b"Obj\x01" + long(2)
    for name, value in ((b"avro.schema", json.dumps(written).encode()), (b"avro.codec", codec)):
        out += long(len(name)) + name + long(len(value)) + value
    out += long(0) + b"s" * 16
    for count, data in blocks:
        out += long(count) + long(len(data)) + data + end
    return out


def rows(body: bytes, columns: str = COLUMNS, *, key: str | None = None, step: int = 1_000) -> Rows:
    rule = RowRule(columns=parse_columns(columns), key=key)
    return rows_of(read_avro, body, rule, LIMITS, step=step)


def refused(body: bytes, columns: str = COLUMNS) -> Refusal:
    with pytest.raises(Refusal) as caught:
        rows(body, columns)
    assert caught.value.slug == "body_not_avro"
    return caught.value


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_each_type_becomes_what_json_has_for_it(codec: str) -> None:
    found = rows(container([VALUE, {**VALUE, "name": None}], codec=codec), key="id")
    assert found.rejected == []
    assert [json.loads(record.value) for record in found.records] == [
        AS_JSON, {**AS_JSON, "name": None},
    ]  # fmt: skip
    assert [record.key for record in found.records] == [b"1", b"1"]


ID = {"name": "id", "type": "long"}
NAME = {"name": "name", "type": "string"}
LONGS = st.integers(-(2**63), 2**63 - 1)


@given(
    st.lists(st.fixed_dictionaries({"id": LONGS, "name": st.text(max_size=20)}), min_size=1),
    st.sampled_from(["null", "deflate"]),
    st.integers(1, 60),
    st.integers(1, 200),
)  # fmt: skip
def test_what_goes_in_comes_out(
    records: list[dict[str, object]], codec: str, step: int, interval: int
) -> None:
    body = container(records, ID, NAME, codec=codec, interval=interval)
    found = rows(body, "id BIGINT, name STRING", step=step)
    assert [json.loads(record.value) for record in found.records] == records


def test_a_record_that_does_not_fit_is_named() -> None:
    records = [{"id": 1, "name": "x"}, {"id": 2**40, "name": "y"}]
    found = rows(container(records, ID, NAME), "id INT, name STRING")
    assert [record.row for record in found.records] == [0]
    assert found.rejected[0].index == 1
    assert "id: INT takes" in found.rejected[0].reason
    as_bytes = container([{"id": 1, "name": b"x"}], ID, {"name": "name", "type": "bytes"})
    assert "no column accepts a value of Avro's type bytes" in rows(as_bytes).rejected[0].reason


@given(st.integers(0, 10_000))
def test_a_container_that_is_cut_off_is_refused(at: int) -> None:
    body = container([{"id": n, "name": "some"} for n in range(500)], ID, NAME, interval=500)
    whole = {record.value for record in rows(body).records}
    assert len(whole) == 500
    try:
        found = rows(body[:at])
    except Refusal:
        return
    assert at >= len(body) or len(found.records) < 500  # between two blocks nothing is missing


def test_a_schema_that_lacks_a_column_which_must_be_there_is_refused() -> None:
    assert "lacks 'id'" in refused(container([{"name": "x"}], NAME)).detail


E = {"type": "record", "name": "E", "fields": []}
NEXT = {"name": "next", "type": ["null", "orders"]}
NULLS = {"name": "a", "type": {"type": "array", "items": "null"}}
EMPTIES = {"name": "a", "type": {"type": "array", "items": "E"}}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "does not begin as one"),
        (b"Obj\x02", "does not begin as one"),
        (b'{"id": 1}', "does not begin as one"),
        (by_hand("string", (1, b"\x02a")), "not that of a record"),
        (by_hand({"type": "nothing"}), "schema is none"),
        (by_hand(schema(ID), codec=b"snappy"), "codec 'snappy'"),
        (by_hand(schema(ID), (1, b"\x02"), end=b"t" * 16), "block 1 does not end where it should"),
        (by_hand(schema(ID), (1, b"\x02\x02")), "has more than its 1 records"),
        (by_hand(schema(ID), (-1, b"\x02")), "says that it has -1 records"),
        (by_hand(schema(ID), (10**12, b"\x02")), "block 1 is not what its schema says"),
        (by_hand(schema(ID, NAME), (1, b"\x02" + long(2**60))), "is not what its schema says"),
        (by_hand(schema(ID, NAME), (1, b"\x02\x04\xff\xfe")), "is not what its schema says"),
        (by_hand(schema(ID), (1, bytes(BLOCK_BYTES_MAX + 1))), "is the most"),
        (by_hand(schema(ID, NEXT), (1, b"\x02\x02" * 100_000)), "inside of itself"),
        (by_hand(schema(ID, NULLS)), "type that is not accepted"),
        (by_hand(schema(ID, {"name": "e", "type": E}, EMPTIES)), "type that is not accepted"),
    ],
)  # fmt: skip
def test_what_is_no_container_that_can_be_read_is_refused_as_a_whole(
    body: bytes, said: str
) -> None:
    assert said in refused(body).detail


def test_a_block_that_unpacks_to_too_much_is_refused() -> None:
    records = [{"id": 1, "name": "x" * (BLOCK_BYTES_MAX + 10)}]
    assert "when it is unpacked" in refused(container(records, ID, NAME, codec="deflate")).detail


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tail: bytes) -> None:
    for body in (
        tail,
        by_hand(schema(ID, NAME)) + tail,
        by_hand(schema(ID, NAME), (3, tail)),
        by_hand(schema(*FIELDS), (1, tail)),
        by_hand(schema(*reversed(FIELDS)), (1, tail)),
    ):
        try:
            found = rows(body)
        except Refusal:
            continue
        assert found.records or found.rejected


def test_a_value_that_is_none_refuses_its_record() -> None:
    """A decimal of many bytes would take hours, and a day may be outside of all years."""
    day = {"name": "day", "type": {"type": "int", "logicalType": "date"}}
    amount = {"name": "amount", "type": DECIMAL}
    huge = b"\x02" + long(100_000) + b"\x7f" * 100_000
    found = rows(by_hand(schema(ID, amount), (1, huge), (1, b"\x02\x02\x05")))
    assert found.rejected[0].reason == "a decimal has 100000 bytes, 64 is the most"
    assert [json.loads(record.value) for record in found.records] == [{"id": 1, "amount": "0.05"}]
    far = rows(by_hand(schema(ID, day), (2, b"\x02" + long(2**31 - 1) + b"\x04\x00")))
    assert far.rejected[0].reason == "a value of Avro's date is out of its range"
    assert [record.row for record in far.records] == [1]


def chain(length: int) -> list[dict[str, Any]]:
    """Each type has two of the one before."""
    made: list[dict[str, Any]] = [{"name": "f0", "type": named("R0", "int", "int")}]
    more = (named(f"R{n}", f"R{n - 1}", f"R{n - 1}") for n in range(1, length))
    return [*made, *({"name": f"f{n}", "type": each} for n, each in enumerate(more, 1))]


def named(name: str, *types: str) -> dict[str, Any]:
    fields = [{"name": f"g{n}", "type": each} for n, each in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields}


@pytest.mark.parametrize(
    "field",
    [
        {"type": "error", "name": "E", "fields": [{"name": "n", "type": ["null", "E"]}]},
        {"type": "null"},
        "null",
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "record", "name": 5, "fields": []},
        {"type": "record", "name": "R", "fields": 5},
        {"type": "array"},
        {"type": "map"},
        {"type": "enum", "name": "E"},
        {"type": {"type": ["null"]}},
        {"type": 5},
        5,
        None,
    ],
)
def test_a_schema_of_other_things_is_refused(field: object) -> None:
    body = by_hand(schema(ID, {"name": "x", "type": field}), (1, b"\x02" + b"\x02" * 100_000))
    assert "schema" in refused(body).detail


def test_types_that_grow_by_their_names_end_with_the_bytes_or_the_depth() -> None:
    assert (
        "not what its schema says" in refused(by_hand(schema(ID, *chain(40)), (1, b"\x02"))).detail
    )
    assert "deeper than 64" in refused(by_hand(schema(ID, *chain(90)), (1, b"\x02"))).detail


def test_a_schema_that_says_it_was_checked_is_refused() -> None:
    written = {**schema(ID), "__fastavro_parsed__": True}
    assert "names that are not accepted" in refused(by_hand(written, (1, b"\x02"))).detail


def test_a_schema_without_any_column_is_refused() -> None:
    body = by_hand(schema({"name": "zzz", "type": "int"}), (1, b"\x02"))
    assert "lacks 'name'" in refused(body, "name STRING").detail


def test_where_each_byte_may_be_an_array_blocks_are_small() -> None:
    tags = {"name": "tags", "type": {"type": "array", "items": {"type": "map", "values": "int"}}}
    data = b"\x02" + long(300_000) + bytes(300_001)
    assert "200000 is the most" in refused(by_hand(schema(ID, tags), (1, data))).detail


def test_a_block_that_is_cut_off_or_packed_too_well_is_refused() -> None:
    packed = zlib.compress(b"\x02" * 1_000)[2:-4]
    cut = by_hand(schema(ID), (1_000, packed[:-2]), codec=b"deflate")
    assert "does not end where it should" in refused(cut).detail
    zeros = zlib.compress(bytes(1_900_000))[2:-4]
    bomb = by_hand(schema(ID), (1_900_000, zeros), codec=b"deflate")
    assert "too many, when it is unpacked" in refused(bomb).detail


def test_escapes_hide_no_name_of_the_library() -> None:
    text = json.dumps({**schema(ID), "__fastavro_parsed__": True})
    hidden = text.replace("__fastavro", "\\u005f\\u005ffastavro")
    body = by_hand({}, (1, b"\x02")).replace(long(2) + b"{}", long(len(hidden)) + hidden.encode())
    assert "names that are not accepted" in refused(body).detail


def test_what_would_become_another_value_is_refused_by_its_schema() -> None:
    nanos = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-nanos"}}
    assert "timestamp-nanos, which no column takes" in refused(by_hand(schema(ID, nanos))).detail
    assert "a field twice" in refused(by_hand(schema(ID, ID), (1, b"\x02\x04"))).detail


def test_a_uuid_stays_the_text_that_it_is() -> None:
    field = {"name": "name", "type": {"type": "string", "logicalType": "uuid"}}
    found = rows(by_hand(schema(ID, field), (1, b"\x02" + long(3) + b"{x}")))
    assert [json.loads(record.value) for record in found.records] == [{"id": 1, "name": "{x}"}]
