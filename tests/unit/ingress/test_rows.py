"""Rows: exact bytes, keys, and a reason for each that another parser might read differently."""

import json
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.ingress.bodies import rows_of
from unit.ingress.json_bodies import LIMITS, array, ndjson, reasons, rule
from waybill_ingress.core.bodies.forms import Reader
from waybill_ingress.core.bodies.lines import read_ndjson
from waybill_ingress.core.bodies.raw import read_raw
from waybill_ingress.core.bodies.values import read_values
from waybill_ingress.core.rows import Record, RowLimits
from waybill_shared.contract.errors import Refusal, UserError


def test_lines_keep_their_exact_bytes() -> None:
    body = b'{"id": 1,   "amount": 1.50}\r\n\n  {"id":2}\n'
    rows = ndjson(body)
    assert rows.records == [
        Record(0, None, b'{"id": 1,   "amount": 1.50}'),
        Record(1, None, b'  {"id":2}'),
    ]
    assert rows.rejected == []


def test_elements_keep_their_exact_text() -> None:
    body = ' [ {"id": 1,\n "amount": 1.50}\t, {"name": "\\u00e9é"} ] '.encode()
    rows = array(body)
    assert [record.value for record in rows.records] == [
        b'{"id": 1,\n "amount": 1.50}',
        '{"name": "\\u00e9é"}'.encode(),
    ]


def test_a_field_that_is_no_column_is_refused_where_the_input_is_strict() -> None:
    body = b'{"id": 1, "nam": "x"}\n{"id": 2}\n{"ID": 3}\n{"more": {"b": 1}}\n{"id": "x", "y": 1}'
    strict = replace(rule(), strict=True)
    assert reasons(rows_of(read_ndjson, body, strict, LIMITS)) == {
        0: "field 'nam' is no column: did you mean 'name'?",
        2: "field 'ID' is no column: did you mean 'id'?",
        4: "id: BIGINT takes a whole number, this is the string 'x'",
    }
    assert [*reasons(ndjson(body))] == [4]


def test_good_rows_are_kept_and_bad_ones_named() -> None:
    rows = ndjson(b'{"id": 1}\n{"id": "x"}\nnonsense\n[1]\n{"id": NaN}\n{"id": 2}')
    assert [record.row for record in rows.records] == [0, 5]
    assert reasons(rows) == {
        4: "NaN is not JSON",
        1: "id: BIGINT takes a whole number, this is the string 'x'",
        2: "not JSON at character 1: Expecting value",
        3: "a record is a JSON object, this is an array",
    }


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b'{"id": 1, "id": 2}', "is there twice"),
        (b'{"more": {"a": 1, "a": 1}}', "is there twice"),
        (b'{"amount": NaN}', "NaN is not JSON"),
        (b'{"extra": -Infinity}', "-Infinity is not JSON"),
        (b'{"name": "\xff"}', "not UTF-8"),
        (b'{"name": "\xed\xa0\x80"}', "not UTF-8"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'{"id": 1} {"id": 2}', "Extra data"),
        (b'{"x": ' + b"[" * 64 + b"]" * 64 + b"}", "nested deeper"),
        (b'{"x": 1' + b"0" * 1_000 + b"}", "longer than 1000"),
        (b'{"x": 0.' + b"1" * 1_000 + b"}", "longer than 1000"),
        (b'{"x": 1e99999999999999999999}', "exponent"),
        (b'{"name": "' + b"x" * 5_000 + b'"}', "5000 is the most"),
        (b"null", "this is null"),
    ],
)
def test_what_two_parsers_may_read_differently_is_refused(row: bytes, reason: str) -> None:
    assert reason in reasons(ndjson(row))[0]
    if reason not in ("not UTF-8", "not JSON", "Extra data"):
        assert reason in reasons(array(b"[" + row + b"]"))[0]


def test_what_spark_takes_is_taken() -> None:
    deep = b'{"x": ' + b"[" * 63 + b"]" * 63 + b"}"
    numbers = b'{"x": 1' + b"0" * 999 + b"}"
    assert len(ndjson(deep + b"\n" + numbers).records) == 2


def test_a_refused_element_does_not_spoil_its_neighbours() -> None:
    deep = b'{"x": ' + b'["\\"]",' * 500 + b"1" + b"]" * 500 + b"}"
    limits = RowLimits(records_max=100, record_bytes_max=50_000, bytes_max=10_000_000)
    rows = array(b'[{"id": 1}, ' + deep + b', {"id": 1, "id": 1}, {"id": 2}]', limits=limits)
    assert [record.value for record in rows.records] == [b'{"id": 1}', b'{"id": 2}']
    assert sorted(reasons(rows)) == [1, 2]


@pytest.mark.parametrize(
    "body",
    [
        b'{"id": 1', b"{} x", b"{},{}", b"{}[]x", b"[", b'[{"id": 1}',
        b'[{"id": 1},]', b'[{"id": 1} {"id": 2}]',
        b'[{"id": 1}] x', b'[{"id": 1}]]', b'["\xff"]', b"[[[", b'[{"id": }]',
        b"[" * 3_000,
    ],
)  # fmt: skip
def test_a_body_that_is_no_json_is_refused_as_a_whole(body: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        array(body)
    assert refused.value.slug == "body_not_json"


@pytest.mark.parametrize("body", [b"", b"\n \r\n", b"[]", b" [ ] "])
def test_an_empty_body_is_refused(body: bytes) -> None:
    for read in (ndjson, array):
        if body.strip().startswith(b"[") and read is ndjson:
            continue
        with pytest.raises(Refusal, match="the body holds no record") as refused:
            read(body)
        assert refused.value.slug == "no_records"


@pytest.mark.parametrize(
    ("row", "column", "key"),
    [
        (b'{"name": "ada"}', "name", b"ada"),
        (b'{"name": ""}', "name", b""),
        (b'{"name": null}', "name", None),
        (b"{}", "name", None),
        (b'{"id": 17}', "id", b"17"),
        (b'{"amount": 1.50}', "amount", b"1.50"),
        (b'{"amount": 1.5e1}', "amount", b"1.5e1"),
        (b'{"name": true}', "name", b"true"),
        ('{"name": "é"}'.encode(), "name", "é".encode()),
    ],
)
def test_the_key_is_the_text_of_its_column(row: bytes, column: str, key: bytes | None) -> None:
    assert [record.key for record in ndjson(row, key=column).records] == [key]
    assert [record.key for record in array(b"[" + row + b"]", key=column).records] == [key]


def test_a_key_without_a_safe_text_is_refused() -> None:
    rows = ndjson(b'{"name": "\\ud800"}\n{"name": {"a": 1}}', key="name")
    assert "surrogate" in reasons(rows)[0]
    assert "a string, a number or a boolean" in reasons(rows)[1]


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=50)
@given(st.lists(st.dictionaries(st.text(), values, max_size=3), min_size=1, max_size=5))
def test_all_forms_give_the_same_rows(rows: list[dict[str, object]]) -> None:
    texts = [json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") for row in rows]
    by_line = ndjson(b"\n".join(texts))
    assert by_line == array(b"[" + b",".join(texts) + b"]")
    assert by_line == array(b"".join(texts))
    assert len(by_line.records) + len(by_line.rejected) == len(rows)
    assert [record.value for record in by_line.records] == [
        texts[record.row] for record in by_line.records
    ]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for read in (ndjson, array):
        try:
            rows = read(body, key="name")
        except Refusal:
            continue
        assert rows.records or rows.rejected


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b'[{"a": 1},\n {"b": 2,, }]', "line 2, column 10"),
        (b'{"a": 1}\n\n{"b" 1}', "line 3, column 6"),
        (b'[{"a": 1}\n{"a": 2}]', "line 2, column 1"),
        (b'[{"a": 1}]\n\nx', "line 3, column 1"),
    ],
)
def test_malformed_array_is_refused_with_its_place(body: bytes, place: str) -> None:
    with pytest.raises(Refusal, match=place) as raised:
        array(body)
    assert f"line {raised.value.members['line']}, column" in place


EXAMPLES = [
    b'[{"id": 1}, {"name": "\xc3\xa9"} ]', b"{}\r\n {}", b'[1.5,{"id": 1}]', b'[1e5, {}, 1e, 2]',
    b'{"id": 1} 12 {} true', b'[-1.25E+2]', b'["a", "b', b"[1.",
]  # fmt: skip


@given(st.binary(max_size=60) | st.sampled_from(EXAMPLES))
def test_how_a_body_comes_changes_nothing(body: bytes) -> None:
    for read in (read_ndjson, read_values):
        found = [_outcome(read, body, step) for step in (1, 2, 7, 1_000)]
        assert found == found[:1] * len(found)


def _outcome(read: Reader, body: bytes, step: int) -> object:
    try:
        return rows_of(read, body, rule(), LIMITS, step=step)
    except Refusal as refusal:
        return refusal.slug, refusal.members.get("line"), refusal.members.get("column")


def test_a_raw_body_is_one_record() -> None:
    body = b'{"id": 1}\n'
    assert rows_of(partial(read_raw, key="k"), body, rule(), LIMITS).records == [
        Record(0, b"k", body)
    ]
    assert reasons(rows_of(partial(read_raw, key=None), b"\x00", rule(), LIMITS))[0].startswith(
        "not"
    )
    with pytest.raises(UserError, match="column 'id'"):
        rows_of(partial(read_raw, key="k"), body, rule("id"), LIMITS)
