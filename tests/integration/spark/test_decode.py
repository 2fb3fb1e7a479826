"""Spark's decoding of raw records, held against the table of accepted values."""

import csv
import json
from collections.abc import Iterable
from functools import partial
from io import StringIO
from itertools import groupby

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from accepted_values import AcceptedField, AcceptedValue, accepted_fields, accepted_values
from integration.spark.conftest import RawFrame
from unit.ingress.bodies import rows_of as rows_of_body
from waybill_ingress.core.bodies.csv_rows import CsvOptions, read_csv
from waybill_ingress.core.rows import RowLimits, RowRule
from waybill_shared.contract.manifest.columns import parse_columns
from waybill_spark.driver.reading.decode import decode
from waybill_spark.driver.reading.decode_report import MalformedRecord, look, remember
from waybill_spark.driver.reading.ignored import NAMES_MAX, Ignored
from waybill_spark.driver.reading.inputs import DecodedInput
from waybill_spark.driver.reading.sizes import RecordSizes
from waybill_spark.sinks.kafka.loader import TIMESTAMP_TEXT

LIMITS = RowLimits(records_max=1_000, record_bytes_max=1_000_000, bytes_max=10_000_000)
AS_JSON = {"timestampFormat": TIMESTAMP_TEXT, "ignoreNullFields": "false"}
BY_TYPE = {
    kind: tuple(cases)
    for kind, cases in groupby(sorted(accepted_values(), key=lambda v: v.type), lambda v: v.type)
}


def make_input(columns: str, *, own_output: bool = False, strict: bool = False) -> DecodedInput:
    return DecodedInput(
        name="orders",
        topic="orders.in",
        columns=columns,
        own_output=own_output,
        strict=strict,
        on_malformed="fail",
    )


def look_back(decoded: DataFrame, source: DecodedInput) -> Ignored:
    """What its pass has met, after it has run; MalformedRecord if a record is refused."""
    ignored = Ignored()
    seen = look(decoded._jdf.queryExecution(), (source,))
    remember((source,), seen, RecordSizes(), ignored)
    return ignored


def values_of(
    raw_frame: RawFrame, source: DecodedInput, records: Iterable[bytes | None]
) -> list[str]:
    """Column `c` of each record, as JSON; MalformedRecord if one is refused."""
    texts = _texts_of(raw_frame, source, records, "c")
    return [text.removeprefix('{"c":').removesuffix("}") for text in texts]


def rows_of(
    raw_frame: RawFrame, source: DecodedInput, records: Iterable[bytes | None]
) -> list[dict[str, object]]:
    return [json.loads(text) for text in _texts_of(raw_frame, source, records, "*")]


def _texts_of(
    raw_frame: RawFrame, source: DecodedInput, records: Iterable[bytes | None], columns: str
) -> list[str]:
    raw = raw_frame([(source.topic, 0, offset, value) for offset, value in enumerate(records)])
    decoded = decode(raw, source).select(F.to_json(F.struct(columns), AS_JSON))
    rows = decoded.collect()
    look_back(decoded, source)
    return [row[0] for row in rows]


def taken(raw_frame: RawFrame, case: AcceptedValue) -> bool:
    try:
        values_of(raw_frame, make_input(f"c {case.type}"), [case.record])
    except MalformedRecord:
        return False
    return True


@pytest.mark.parametrize("kind", BY_TYPE)
def test_taken_values_are_those_of_the_table(raw_frame: RawFrame, kind: str) -> None:
    cases = [case for case in BY_TYPE[kind] if case.gives is not None]
    values = values_of(raw_frame, make_input(f"c {kind}"), [case.record for case in cases])
    assert dict(zip(map(str, cases), values, strict=True)) == {str(c): c.gives for c in cases}


@pytest.mark.parametrize(
    "kind", [kind for kind, v in BY_TYPE.items() if any(not c.gives for c in v)]
)
def test_refused_values_are_those_of_the_table(raw_frame: RawFrame, kind: str) -> None:
    """All at once, because one at a time takes a minute; the count must be that of the table."""
    cases = [case for case in BY_TYPE[kind] if case.gives is None]
    with pytest.raises(MalformedRecord) as raised:
        values_of(raw_frame, make_input(f"c {kind}"), [case.record for case in cases])
    if f" {len(cases)} record(s) " not in str(raised.value):
        assert [str(case) for case in cases if taken(raw_frame, case)] == []


FIELDS = [
    (kind, [*cases])
    for kind, cases in groupby((f for f in accepted_fields() if f.gives), lambda f: f.type)
]


@pytest.mark.parametrize(("kind", "cases"), FIELDS, ids=[kind for kind, _ in FIELDS])
def test_fields_of_csv_files_are_in_spark_what_the_table_says(
    raw_frame: RawFrame, kind: str, cases: list[AcceptedField]
) -> None:
    """Through the JSON that ingress makes of them."""
    rule = RowRule(columns=parse_columns(f"c {kind}"), key=None)
    text = StringIO()
    csv.writer(text).writerows([["c", "more"], *([case.field, "x"] for case in cases)])
    made = rows_of_body(
        partial(read_csv, options=CsvOptions()), text.getvalue().encode(), rule, LIMITS
    )
    values = values_of(raw_frame, make_input(f"c {kind}"), [r.value for r in made.records])
    assert dict(zip(map(str, cases), values, strict=True)) == {str(c): c.gives for c in cases}


@pytest.mark.parametrize("strict", [False, True])
def test_brackets_in_a_record_do_not_hide_what_stands_behind_it(
    raw_frame: RawFrame, strict: bool
) -> None:
    bad = [
        b'{"c": 1}],"x":[{"c": 2}',
        b'{"c": 1}],"record":[{"c": 2}',
        b'{"c": 1}],"end":""}',
        b'{"c": 1}],"end":"","x":[{"c": 2}',
        b'],"record":[{"c": 1}',
    ]
    good = [b'{"c": "]"}', b' {"c": "],\\"x\\":["} ']
    source = make_input("c STRING", strict=strict)
    assert len(values_of(raw_frame, source, good)) == len(good)
    with pytest.raises(MalformedRecord, match=rf"{len(bad)} record\(s\)"):
        values_of(raw_frame, source, [*good, *bad])


def test_refusal_names_the_first_position_of_its_own_topic(raw_frame: RawFrame) -> None:
    source = make_input("c INT")
    raw = raw_frame(
        [
            ("other", 0, 0, b"not of this input"),
            ("orders.in", 2, 7, b'{"c": 1}'),
            ("orders.in", 2, 9, b'{"c": "x"}'),
            ("orders.in", 1, 8, b'{"c": 1} behind'),
            ("orders.in", 1, 5, b'{"c": 1}'),
        ]
    )
    decoded = decode(raw, source)
    decoded.collect()
    with pytest.raises(MalformedRecord) as raised:
        look_back(decoded, source)
    assert raised.value.position == "orders.in[1]@8"
    assert raised.value.input_name == "orders"
    assert '2 record(s) do not fit its schema; the first is orders.in[1]@8: {"c": 1} behind' in str(
        raised.value
    )


def test_bad_value_is_found_in_a_column_that_nobody_reads(raw_frame: RawFrame) -> None:
    source = make_input("a INT, b INT")
    decoded = decode(raw_frame([("orders.in", 0, 0, b'{"a": 1, "b": "x"}')]), source).select("a")
    decoded.collect()
    with pytest.raises(MalformedRecord):
        look_back(decoded, source)


def test_a_field_that_is_no_column_is_refused_where_the_input_is_strict(
    raw_frame: RawFrame,
) -> None:
    columns = "c INT, `d e` STRING, s STRUCT<x: INT>"
    good = [b'{"c": 1, "d e": null}', b"{}", b'{"s": {"x": 1, "y": 2}}']
    bad = [b'{"c": 1, "C": 2}', b'{"celcius": 5}', b'{"c": 1, "x": null}', b"{"]
    lax, strict = make_input(columns), make_input(columns, strict=True)
    assert values_of(raw_frame, lax, [*good, *bad[:-1]])[0] == "1"
    assert values_of(raw_frame, strict, good) == ["1", "null", "null"]
    with pytest.raises(MalformedRecord, match=r"4 record\(s\)"):
        values_of(raw_frame, strict, [*good, *bad])


def test_fields_that_are_no_columns_are_told_with_what_they_may_mean(raw_frame: RawFrame) -> None:
    source = make_input("celsius INT, site STRING")
    records = [
        b'{"celcius": 5}',
        b'{"Celsius": 5, "site": "a"}',
        b'{"celsius": 5, "site": "a"}',
        b'{"celsius": 5, "site": {"celcius": 1}}',
        b"{}",
    ]
    raw = raw_frame([("orders.in", 0, offset, value) for offset, value in enumerate(records)])
    decoded = decode(raw, source)
    decoded.collect()
    (found,) = look_back(decoded, source).inputs()
    assert found.records == 2
    assert set(found.warnings) == {
        "field 'celcius' is no column: did you mean 'celsius'?",
        "field 'Celsius' is no column: did you mean 'celsius'?",
    }


@pytest.mark.parametrize("strict", [False, True])
def test_a_field_beside_all_columns_is_found_however_it_is_written(
    raw_frame: RawFrame, strict: bool
) -> None:
    source = make_input("celsius INT, site STRING, on DATE", strict=strict)
    full = '{"celsius": 5, "site": "a", "on": "2026-01-01"%s}'
    none = [full % "", full.replace(": ", " : ") % "", full.replace("a", '\\":') % ""]
    more = [full % f', "x"{space}: 1' for space in ("", " ", "\t", "\n", "\r", "  \n")]
    more += [full % ', ":": 1', full % ', "": 1', full % r', "\u0078":1']
    told = [("orders.in", 0, offset, text.encode()) for offset, text in enumerate([*none, *more])]
    decoded = decode(raw_frame(told), source)
    decoded.collect()
    if strict:
        with pytest.raises(MalformedRecord, match=rf"{len(more)} record\(s\)"):
            look_back(decoded, source)
    else:
        assert [each.records for each in look_back(decoded, source).inputs()] == [len(more)]


def test_fields_of_any_number_and_length_are_told_in_short(raw_frame: RawFrame) -> None:
    source = make_input("c INT")
    many = json.dumps({f"{number}{'x' * 1_000}": 1 for number in range(1_000)}).encode()
    decoded = decode(raw_frame([("orders.in", 0, 0, many)]), source)
    decoded.collect()
    (found,) = look_back(decoded, source).inputs()
    assert len(found.warnings) == NAMES_MAX
    assert max(map(len, found.warnings)) < 200


def test_bad_record_is_found_when_a_filter_drops_it(raw_frame: RawFrame) -> None:
    source = make_input("c INT")
    decoded = decode(raw_frame([("orders.in", 0, 0, b"{")]), source).where("c = 1")
    assert decoded.collect() == []
    with pytest.raises(MalformedRecord):
        look_back(decoded, source)


def test_long_record_is_cut_in_the_message(raw_frame: RawFrame) -> None:
    with pytest.raises(MalformedRecord) as raised:
        values_of(raw_frame, make_input("c INT"), [b"x" * 5_000])
    assert len(str(raised.value)) < 400


def test_not_a_number_is_taken_from_our_own_sink_only(raw_frame: RawFrame) -> None:
    record = b'{"c": "NaN"}'
    assert values_of(raw_frame, make_input("c DOUBLE", own_output=True), [record]) == ['"NaN"']
    with pytest.raises(MalformedRecord):
        values_of(raw_frame, make_input("c DOUBLE"), [record])
