"""Values of Python in records: the columns take what is written, and nothing of them is lost."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waybill import Client, Unusable
from waybill.ndjson import encode
from waybill.testing import ScriptedServer
from waybill_shared.contract.manifest.columns import parse_columns, refusal

BERLIN = ZoneInfo("Europe/Berlin")
NAIVE = datetime.fromisoformat("2026-11-21T09:00:00.000120")
ID = UUID("12345678-1234-5678-1234-567812345678")
LONG = Decimal("1234567890123456789012345678.0123456789")
ALOFT = timezone(timedelta(hours=23, minutes=59, seconds=59))  # no TIMESTAMP takes this offset


@dataclass(frozen=True, slots=True)
class Item:
    price: Decimal


@dataclass
class Order:
    id: UUID
    placed_at: datetime
    items: list[Item] = field(default_factory=list)


def written(value: object) -> object:
    return json.loads(encode([{"c": value}]))["c"]


def taken(column: str, value: object) -> bool:
    """Whether the input takes it, and whatever else may be at that column's place."""
    row = json.loads(encode([{"c": value}]), parse_float=Decimal)
    return refusal(parse_columns(f"c {column}"), row) is None


@pytest.mark.parametrize(
    ("value", "text", "column"),
    [
        (datetime(2026, 11, 21, 9, tzinfo=UTC), "2026-11-21T09:00:00Z", "TIMESTAMP"),
        (datetime(2026, 11, 21, 9, tzinfo=BERLIN), "2026-11-21T08:00:00Z", "TIMESTAMP"),
        (datetime(2026, 7, 1, 9, tzinfo=BERLIN), "2026-07-01T07:00:00Z", "TIMESTAMP"),
        (datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN), "2026-10-25T00:30:00Z", "TIMESTAMP"),
        (datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1), "2026-10-25T01:30:00Z", "TIMESTAMP"),
        (datetime(1880, 1, 1, tzinfo=BERLIN), "1879-12-31T23:06:32Z", "TIMESTAMP"),
        (NAIVE, "2026-11-21T09:00:00.000120", "TIMESTAMP"),
        (date(2026, 11, 21), "2026-11-21", "DATE"),
        (LONG, "1234567890123456789012345678.0123456789", "DECIMAL(38,10)"),
        (Decimal("0.10"), "0.10", "STRING"),
        (Decimal("1E+3"), "1E+3", "DECIMAL(10,2)"),
        (Decimal("-0E-20"), "-0E-20", "DECIMAL(10,2)"),
        (ID, "12345678-1234-5678-1234-567812345678", "STRING"),
    ],
)  # fmt: skip
def test_each_type_has_the_form_that_its_column_takes(
    value: object, text: str, column: str
) -> None:
    assert written(value) == text
    assert taken(column, value)


@given(
    st.datetimes(
        min_value=datetime.fromisoformat("0001-01-02"),
        max_value=datetime.fromisoformat("9999-12-30"),
        timezones=st.timezones() | st.just(UTC) | st.just(ALOFT),
        allow_imaginary=False,
    )
)
def test_a_moment_stays_the_same_moment(moment: datetime) -> None:
    assert taken("TIMESTAMP", moment)
    assert datetime.fromisoformat(str(written(moment))) == moment.astimezone(UTC)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_loses_no_digit(number: Decimal) -> None:
    assert Decimal(str(written(number))).as_tuple() == number.as_tuple()


def test_a_dataclass_is_a_record_and_a_value() -> None:
    order = Order(ID, datetime(2026, 11, 21, tzinfo=UTC), [Item(Decimal("1.50"))])
    plain = {"id": str(ID), "placed_at": "2026-11-21T00:00:00Z", "items": [{"price": "1.50"}]}
    first, second = encode([order, {"order": order}]).splitlines()
    assert json.loads(first) == plain
    assert json.loads(second) == {"order": plain}


def test_any_mapping_is_an_object() -> None:
    assert written(MappingProxyType({"a": date(2026, 1, 2)})) == {"a": "2026-01-02"}


@dataclass
class Late:
    """It is made before its values are there."""

    price: Decimal = field(init=False)


@dataclass
class Nothing:
    """Its type is no value, its instances are."""


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"x": {1, 2}}, r"record 1, x: \{1, 2\} \(set\)"),
        ({"a": [{"b": b"raw"}]}, r"record 1, a\[0\]\.b: b'raw' \(bytes\)"),
        ({"a": (1.5, float("nan"))}, r"record 1, a\[1\]: nan \(float\)"),
        ({"a": float("-inf")}, r"record 1, a: -inf \(float\)"),
        ({"a": Decimal("NaN")}, r"record 1, a: Decimal\('NaN'\) \(decimal\.Decimal\)"),
        ({"a": Decimal("sNaN")}, r"record 1, a: Decimal\('sNaN'\) .*"),
        ({"a": Decimal("Infinity")}, r"record 1, a: Decimal\('Infinity'\) .*"),
        ({"a": "\ud800"}, r"record 1, a: '\\ud800' \(str\)"),
        ({"a": timedelta(1)}, r"record 1, a: .* \(datetime\.timedelta\)"),
        ({"a": datetime(1, 1, 1, tzinfo=ALOFT)}, r"record 1, a: .*\(datetime\.datetime\)"),
        ({"a": Nothing}, r"record 1, a: .* \(type\)"),
        ({"a": {ID: 1}}, r"record 1, a: .* \(dict\)"),
        ({ID: 1}, r"record 1: .* \(dict\)"),
        (Item(Decimal("NaN")), r"record 1, price: Decimal\('NaN'\) .*"),
        ({"a": Late()}, r"record 1, a\.price: no value .*"),
        ({"a": 10**5000}, r"record 1, a: a value \(int\)"),
        (object(), r"record 1: .* \(object\)"),
    ],
)
def test_what_json_cannot_hold_is_named_by_record_path_and_type(
    record: Mapping[str, object], told: str
) -> None:
    with pytest.raises(Unusable, match=f"^{told} cannot be written as JSON: a record takes None"):
        encode([{}, record])


def test_a_record_that_holds_itself_is_told() -> None:
    record: dict[str, object] = {}
    record["self"] = [record]
    with pytest.raises(Unusable, match="record 0 is nested deeper than 64, or holds itself"):
        encode([record])


def test_a_nest_without_end_is_told() -> None:
    nest: list[object] = []
    for _ in range(100_000):
        nest = [nest]
    with pytest.raises(Unusable, match="record 0 is nested deeper"):
        encode([{"nest": nest}])


def test_nothing_is_sent_of_records_that_cannot_all_be_written(
    server: ScriptedServer, client: Client
) -> None:
    with pytest.raises(Unusable, match="record 1, x"):
        client.send("orders", "orders", [{"x": 1}, {"x": float("inf")}])
    assert server.requests == []
