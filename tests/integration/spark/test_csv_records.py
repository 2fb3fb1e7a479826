"""Records of CSV inputs: Spark reads what the table says, and what ingress writes."""

import math
from collections.abc import Iterable
from decimal import Decimal
from itertools import groupby

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accepted_values import AcceptedField, accepted_fields
from integration.spark.conftest import RawFrame
from integration.spark.test_decode import rows_of, values_of
from waybill_ingress.core.encoders.csv_records import CsvRecords
from waybill_shared.contract.formats.csv_lines import CsvForm
from waybill_shared.contract.manifest.columns import Column, parse_columns
from waybill_shared.contract.manifest.formats import RecordKeys
from waybill_spark.driver.reading.dead_reasons import OTHERWISE, why_malformed
from waybill_spark.driver.reading.decode_report import MalformedRecord
from waybill_spark.driver.reading.inputs import DecodedInput

FORMS = [
    CsvForm(),
    CsvForm(delimiter=";", null_text="NULL"),
    CsvForm(delimiter="tab", quote="'", escape="\\"),
    CsvForm(delimiter="|", quote="none", null_text="\\N"),
    CsvForm(delimiter="space", quote="~", escape='"', null_text="-"),
]
BY_TYPE = {
    kind: [*cases]
    for kind, cases in groupby(accepted_fields(), lambda field: field.type)
    if kind[:5] not in ("ARRAY", "MAP<S", "STRUC")
}


def csv_input(columns: str, form: CsvForm | None = None) -> DecodedInput:
    return DecodedInput(
        name="orders",
        topic="orders.in",
        columns=columns,
        own_output=False,
        keys=RecordKeys(format="csv", csv=form or CsvForm()),
        on_malformed="fail",
    )


def line_of(case: AcceptedField) -> bytes:
    """Quoted, so that any text can stand there."""
    return '"{}",x'.format(case.field.replace('"', '""')).encode()


def refused(raw_frame: RawFrame, source: DecodedInput, records: Iterable[bytes]) -> list[bytes]:
    """Those that are, each read by itself."""
    found = []
    for record in records:
        try:
            values_of(raw_frame, source, [record])
        except MalformedRecord:
            found.append(record)
    return found


@pytest.mark.parametrize("kind", BY_TYPE)
def test_a_field_is_what_the_table_says(raw_frame: RawFrame, kind: str) -> None:
    source = csv_input(f"c {kind}, more STRING")
    cases = [case for case in BY_TYPE[kind] if case.gives is not None]
    values = values_of(raw_frame, source, map(line_of, cases))
    assert dict(zip(map(str, cases), values, strict=True)) == {str(c): c.gives for c in cases}


@pytest.mark.parametrize(
    "kind", [kind for kind, cases in BY_TYPE.items() if any(not case.gives for case in cases)]
)
def test_a_field_that_the_table_refuses_is_malformed(raw_frame: RawFrame, kind: str) -> None:
    source = csv_input(f"c {kind}, more STRING")
    bad = [line_of(case) for case in BY_TYPE[kind] if case.gives is None]
    with pytest.raises(MalformedRecord) as raised:
        values_of(raw_frame, source, bad)
    if f" {len(bad)} record(s) " not in str(raised.value):
        assert refused(raw_frame, source, bad) == bad
    assert [record for record in bad if why_malformed(record, source) in ("", OTHERWISE)] == []


GOOD = [
    (b"a,b", '"a"'),
    (b"a,b\n", '"a"'),
    (b"a,b\r\n", '"a"'),
    (b'"a","b"\n', '"a"'),
    (b'"a" ,b', '"a"'),
    (b' "a",b', '" \\"a\\""'),
    (b'"a\nb",c', '"a\\nb"'),
    (b'"a\r\nb",c', '"a\\r\\nb"'),
    (b'"""a",b', '"\\"a"'),
    (b'"""a\nb",c', '"\\"a\\nb"'),
    (b'a"b,c', '"a\\"b"'),
    (b"#a,b", '"#a"'),
    ("\ufeffa,b".encode(), '"\ufeffa"'),
    (b"\x00a,b", '"\\u0000a"'),
    (b'"a""\x00b",c', '"a\\"\\u0000b"'),
    (b'"""\x00",c', '"\\"\\u0000"'),
    (b" a ,b", '" a "'),
    (b",", "null"),
    (b'"",""', "null"),
]
BAD = [
    b"a", b"a,b,c", b'"a,b', b'a,"b', b'"a"b,c', b'"a","b"c', b"a,b\nc,d", b"a\nb,c", b"a,b\n\n",
    b"\n", b"\xff,b", b'a,"b\xff"', "a\uffff,b".encode(), b'"a"x"b",c', b'"a","b" c', b"a,b,",
    b'"""a"b,c', b"",
]  # fmt: skip


def test_a_line_is_split_as_it_is_written(raw_frame: RawFrame) -> None:
    source = csv_input("c STRING, more STRING")
    values = values_of(raw_frame, source, [line for line, _ in GOOD])
    assert dict(zip([line for line, _ in GOOD], values, strict=True)) == dict(GOOD)
    assert [line for line, _ in GOOD if why_malformed(line, source) != OTHERWISE] == []


def test_what_is_no_line_of_these_columns_is_malformed(raw_frame: RawFrame) -> None:
    source = csv_input("c STRING, more STRING")
    with pytest.raises(MalformedRecord) as raised:
        values_of(raw_frame, source, BAD)
    if f" {len(BAD)} record(s) " not in str(raised.value):
        assert refused(raw_frame, source, BAD) == BAD
    assert [line for line in BAD if why_malformed(line, source) in ("", OTHERWISE)] == []


def test_a_zero_is_zero_with_any_exponent(raw_frame: RawFrame) -> None:
    source = csv_input("c DECIMAL(10,2), more STRING")
    zeros = [b"0e50,x", b"-0.0E9999,x", b".0e-50,x", b"0,x"]
    assert values_of(raw_frame, source, zeros) == ["0.00"] * 4
    assert [why_malformed(line, source) for line in zeros] == [OTHERWISE] * 4


def test_a_column_that_is_not_null_takes_no_empty_field(raw_frame: RawFrame) -> None:
    source = csv_input("c INT NOT NULL, more STRING NOT NULL", CsvForm(null_text="-"))
    assert values_of(raw_frame, source, [b"1,"]) == ["1"]
    assert refused(raw_frame, source, [b"-,a", b"1,-", b",a"]) == [b"-,a", b"1,-", b",a"]
    assert why_malformed(b"-,a", source) == "field 1: c: is null, and the column is NOT NULL"


def test_a_text_of_very_many_digits_is_no_work(raw_frame: RawFrame) -> None:
    source = csv_input("c DECIMAL(38,0), more DOUBLE")
    assert refused(raw_frame, source, [b"1" * 1_000_000 + b",1"]) != []


COLUMNS = "n BIGINT, d DOUBLE, p DECIMAL(10,2), b BOOLEAN, t TIMESTAMP, on DATE, c STRING, e STRING"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.text(
    ";,|\t ~'\"\\\n\r-NULa", max_size=8
)
ROW = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "d": st.none() | st.decimals(-1000, 1000, allow_nan=False),
        "p": st.none() | st.decimals(-1000, 1000, places=2),
        "b": st.none() | st.booleans(),
        "t": st.none() | st.integers(0, 4_000_000_000),
        "on": st.none() | st.dates().map(str),
        "c": st.none() | TEXT,
        "e": st.none() | TEXT,
    }
)


@pytest.mark.parametrize("form", FORMS, ids=repr)
@settings(max_examples=2, deadline=None, suppress_health_check=[*HealthCheck])
@given(rows=st.lists(ROW, min_size=75, max_size=150))
def test_what_ingress_writes_comes_out_of_spark(
    raw_frame: RawFrame, form: CsvForm, rows: list[dict[str, object]]
) -> None:
    """All that it takes, and nothing that it takes is malformed."""
    columns = parse_columns(COLUMNS)
    written = [(row, record) for row in rows if (record := _written(row, form, columns))]
    values = rows_of(raw_frame, csv_input(COLUMNS, form), [record for _, record in written])
    for (row, _), value in zip(written, values, strict=True):
        for name, sent in row.items():
            if name != "t":
                _assert_same(value[name], sent)


def _written(row: dict[str, object], form: CsvForm, columns: tuple[Column, ...]) -> bytes | None:
    try:
        return CsvRecords(form, columns).write(row)
    except ValueError:
        return None


def _assert_same(value: object, sent: object) -> None:
    if isinstance(sent, Decimal):
        assert isinstance(value, int | float)
        assert math.isclose(value, float(sent))
    else:
        assert value == sent
