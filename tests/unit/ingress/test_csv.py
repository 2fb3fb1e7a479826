"""CSV: rows become the JSON that they stand for; what is wrong is told with its line."""

import csv
import io
import json
from decimal import Decimal
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accepted_values import AcceptedField, accepted_fields
from unit.ingress.bodies import Rows, rows_of
from waybill_ingress.core.bodies.csv_rows import CsvOptions, read_csv
from waybill_ingress.core.bodies.forms import Reader, form_of
from waybill_ingress.core.rows import Record, RowLimits, RowRule
from waybill_shared.contract.errors import Refusal, UserError
from waybill_shared.contract.manifest.columns import parse_columns, refusal

LIMITS = RowLimits(records_max=1_000, record_bytes_max=1_000, bytes_max=10_000_000)
COLUMNS = "id BIGINT NOT NULL, name STRING, amount DECIMAL(10,2)"
HEADER = b"id,name,amount\n"
USUAL = CsvOptions()


def rows(
    body: bytes,
    options: CsvOptions = USUAL,
    *,
    columns: str = COLUMNS,
    key: str | None = None,
    strict: bool = False,
    step: int = 1_000_000,
) -> Rows:
    rule = RowRule(columns=parse_columns(columns), key=key, strict=strict)
    return rows_of(partial(read_csv, options=options), body, rule, LIMITS, step=step)


def values(found: Rows) -> list[object]:
    return [json.loads(record.value) for record in found.records]


def reasons(found: Rows) -> dict[int, str]:
    return {rejection.index: rejection.reason for rejection in found.rejected}


def refused(body: bytes, options: CsvOptions = USUAL, *, strict: bool = False) -> Refusal:
    with pytest.raises(Refusal) as caught:
        rows(body, options, strict=strict)
    return caught.value


@pytest.mark.parametrize("case", accepted_fields(), ids=str)
def test_fields_are_taken_as_the_table_says(case: AcceptedField) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([["c", "more"], [case.field, "x"]])
    found = rows(text.getvalue().encode(), columns=f"c {case.type}")
    assert (len(found.records), len(found.rejected)) == ((1, 0) if case.gives else (0, 1))
    for record in found.records:
        row = json.loads(record.value, parse_float=Decimal)
        assert refusal(parse_columns(f"c {case.type}"), row) is None


def test_the_header_names_the_columns_in_any_order() -> None:
    found = rows(b"amount,id,name,note\n1.50,1,ada,x\n,2,,\n")
    assert found.records == [
        Record(0, None, b'{"amount":1.50,"id":1,"name":"ada","note":"x"}'),
        Record(1, None, b'{"amount":null,"id":2,"name":null,"note":null}'),
    ]


def test_without_a_header_the_fields_are_the_columns_of_the_input() -> None:
    options = CsvOptions(header=False, delimiter=";", null="NULL")
    found = rows(b"1;ada;1.50\n2;;NULL\n", options)
    assert values(found) == [
        {"id": 1, "name": "ada", "amount": 1.5},
        {"id": 2, "name": "", "amount": None},
    ]


def test_quotes_and_escapes() -> None:
    body = HEADER + b'1,"a ""b"", c\nd",\r\n\r\n2,\xc3\xa9,3\n'
    assert values(rows(body)) == [
        {"id": 1, "name": 'a "b", c\nd', "amount": None},
        {"id": 2, "name": "é", "amount": 3},
    ]
    other = CsvOptions(quote="'", escape="\\")
    assert values(rows(HEADER + b"1,'a\\', b',\n", other))[0] == {
        "id": 1, "name": "a', b", "amount": None,
    }  # fmt: skip
    assert values(rows(HEADER + b'1,a"b,\n', CsvOptions(quote="")))[0]["name"] == 'a"b'  # type: ignore[index]


def test_a_row_is_refused_with_its_line_and_field() -> None:
    body = HEADER + b'1,"a\nb",x\n2,y\n,z,1\n4,ok,1\n'
    found = rows(body)
    assert reasons(found) == {
        0: "line 2, field 3: amount: DECIMAL takes a number, this is 'x'",
        1: "line 4: 2 fields, where 3 are expected",
        2: "line 5, field 1: id: is null, and the column is NOT NULL",
    }
    assert [record.row for record in found.records] == [3]


@pytest.mark.parametrize(
    ("options", "head"),
    [(CsvOptions(line=10_001), HEADER), (CsvOptions(line=10_001, header=False), b"")],
)
def test_of_a_part_lines_count_from_that_of_its_first_row(options: CsvOptions, head: bytes) -> None:
    found = rows(head + b"\n1,ada,x\n2,y\n", options)
    assert reasons(found) == {
        0: "line 10002, field 3: amount: DECIMAL takes a number, this is 'x'",
        1: "line 10003: 2 fields, where 3 are expected",
    }
    assert "line 10002" in str(refused(head + b'1,ada,1\n2,"a', options).detail)


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        ("id", [b"1", b"2"]),
        ("name", [b"ada", None]),
        ("amount", [b"1.50", b"7"]),
        (None, [None] * 2),
    ],
)
def test_the_key_is_that_of_the_same_record_in_json(
    key: str | None, keys: list[bytes | None]
) -> None:
    found = rows(HEADER + b"01,ada,1.50\n2,,+7\n", key=key)
    assert [record.key for record in found.records] == keys


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"id,name\n1,x\n", "line 1: the header lacks 'amount'"),
        (b"id,name,amount,name\n1,x,1,y\n", "line 1: the header has 'name' twice"),
        (b"1,ada,1.50\n", "line 1: the header lacks"),
        (HEADER + b'1,"x,1\n2,y,2\n', "never closed"),
        (HEADER + b'1,x,1\n2,"y"z,2\n', "expected after"),
        (HEADER + b"1,\xff,1\n", "line 2: there is a byte that is not utf-8"),
        (HEADER.decode().encode("utf-16"), "encoding=utf-16"),
        (HEADER + b"1,x\ry,1\n", "in the record that begins at line 2"),
        (HEADER + b"1," + b"x" * 3_000, "has more than 2000 characters"),
        (HEADER + b'1,"' + b"x\n" * 1_500, "the record that begins at line 2 has more than"),
        (b"," * 5_000, "has more than 2000 characters"),
        (b'{"id": 1}\n', "the header lacks"),
    ],
)  # fmt: skip
def test_what_is_no_csv_is_refused_as_a_whole_with_its_place(body: bytes, said: str) -> None:
    caught = refused(body)
    assert said in caught.detail
    assert caught.slug == "body_not_csv"
    assert caught.detail.endswith("nothing was written")


def test_a_header_of_no_column_at_all_has_a_hint() -> None:
    assert "header=absent" in str(refused(b"1,ada,1.50\n").members["hint"])


def test_where_the_input_is_strict_so_is_the_header() -> None:
    assert "no such column" in refused(b"id,name,amount,note\n", strict=True).detail


@pytest.mark.parametrize("body", [b"", b"\n\n", HEADER, HEADER + b"\n"])
def test_a_body_without_rows_is_refused(body: bytes) -> None:
    assert refused(body).slug == "no_records"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "windows-1252"])
def test_other_encodings_are_taken_by_name(encoding: str) -> None:
    body = "id,name,amount\n1,é,2\n".encode(encoding)
    given_as = "utf-8" if encoding == "utf-8-sig" else encoding
    assert values(rows(body, CsvOptions(encoding=given_as), step=3)) == [
        {"id": 1, "name": "é", "amount": 2}
    ]


table = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1, max_size=30),
        st.decimals(-99_999_999, 99_999_999, places=2),
    ),
    min_size=1,
    max_size=8,
)


@given(table, st.integers(1, 40), st.booleans())
def test_what_goes_in_comes_out(
    given_rows: list[tuple[object, ...]], step: int, header: bool
) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([*([("id", "name", "amount")] if header else []), *given_rows])
    found = rows(text.getvalue().encode(), CsvOptions(header=header), step=step)
    assert found.rejected == []
    out = [json.loads(record.value, parse_float=str, parse_int=str) for record in found.records]
    assert [(row["id"], row["name"], row["amount"]) for row in out] == [
        (str(number), name, str(amount)) for number, name, amount in given_rows
    ]


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(tail: bytes) -> None:
    for body in (tail, HEADER + tail):
        try:
            found = rows(body)
        except Refusal:
            continue
        assert found.records or found.rejected


def options_of(read: Reader) -> CsvOptions:
    assert isinstance(read, partial)
    options: CsvOptions = read.keywords["read"].keywords["options"]
    return options


@pytest.mark.parametrize(
    ("parameters", "options"),
    [
        ({}, CsvOptions()),
        ({"delimiter": "tab", "quote": "none"}, CsvOptions(delimiter="\t", quote="")),
        ({"header": "absent", "null": "\\N"}, CsvOptions(header=False, null="\\N")),
        ({"escape": "\\", "encoding": "latin1"}, CsvOptions(escape="\\", encoding="iso8859-1")),
        ({"line": "10001"}, CsvOptions(line=10_001)),
        ({"atomic": "true"}, CsvOptions()),
    ],
)
def test_parameters_say_how_it_is_written(parameters: dict[str, str], options: CsvOptions) -> None:
    read = form_of("text/csv", [*parameters.items()])
    assert options_of(read) == options


@pytest.mark.parametrize(
    ("media_type", "parameters"),
    [
        ("text/csv", {"delimiter": ""}),
        ("text/csv", {"delimiter": ",,"}),
        ("text/csv", {"delimiter": "\n"}),
        ("text/csv", {"delimiter": '"'}),
        ("text/csv", {"header": "yes"}),
        ("text/csv", {"line": "0"}),
        ("text/csv", {"line": "-1"}),
        ("text/csv", {"line": "1" * 20}),
        ("application/json", {"line": "1"}),
        ("text/csv", {"encoding": "rot13"}),
        ("text/csv", {"encoding": "utf-99"}),
        ("text/csv", {"encoding": "base64"}),
        ("text/csv", {"encoding": "idna"}),
        ("text/csv", {"encoding": "unicode_escape"}),
        ("text/csv", {"delimter": ";"}),
        ("application/json", {"page": "1"}),
        ("text/csv", {"key": "k"}),
        ("application/json", {"delimiter": ";"}),
        ("application/octet-stream", {"null": ""}),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused_by_name(
    media_type: str, parameters: dict[str, str]
) -> None:
    with pytest.raises(UserError) as caught:
        form_of(media_type, [*parameters.items()])
    (name,) = parameters
    assert caught.value.problems[0].path == f"query.{name}"


def test_the_media_type_may_name_the_encoding() -> None:
    read = form_of('text/csv; charset="windows-1252"', [])
    assert options_of(read).encoding == "cp1252"
    with pytest.raises(UserError):
        form_of("text/csv; charset=none", [])
    form_of("application/json; charset=UTF-8", [])
    with pytest.raises(Refusal, match="accepted in UTF-8"):
        form_of("application/json; charset=utf-16", [])


def test_a_parameter_that_stands_there_twice_is_refused() -> None:
    with pytest.raises(UserError, match="more than once"):
        form_of("text/csv", [("null", "a"), ("null", "b")])


@pytest.mark.parametrize(
    ("body", "hint"),
    [(b"id;name;amount\n", "delimiter=%3B"), (b"id\tname\tamount\n", "delimiter=tab")],
)
def test_another_delimiter_is_guessed(body: bytes, hint: str) -> None:
    assert hint in str(refused(body).members["hint"])


def test_what_does_not_fit_its_encoding_is_refused() -> None:
    """As UTF-8 that is said to be UTF-16."""
    assert "not utf-16" in refused(HEADER + b"1,x,1\n", CsvOptions(encoding="utf-16")).detail


def test_a_field_or_a_row_that_is_too_large_refuses_the_row() -> None:
    found = rows(HEADER + b"1," + b"x" * 1_200 + b",1\n2,y,1\n")
    assert "bytes, 1000 is the most" in reasons(found)[0]
    assert reasons(found)[0].startswith("line 2: ")
    assert [record.row for record in found.records] == [1]


def test_many_fields_and_long_names_are_refused() -> None:
    limits = RowLimits(records_max=10, record_bytes_max=1_000_000, bytes_max=10_000_000)
    rule = RowRule(columns=parse_columns(COLUMNS), key=None)
    for body, said in (
        (HEADER + b"," * 20_000, "more than 10000 fields"),
        (b"id,name,amount," + b"x" * 60_000 + b"\n1,,,\n", "more than 50000 characters"),
    ):
        with pytest.raises(Refusal, match=said):
            rows_of(partial(read_csv, options=USUAL), body, rule, limits)


def test_numbers_stay_as_they_are_written_where_json_has_that_form() -> None:
    body = HEADER + b"1,,0.0000001\n2,,1e5\n3,,+1.50\n4,,.5\n"
    found = rows(body, key="amount")
    assert [record.key for record in found.records] == [b"0.0000001", b"1e5", b"1.50", b"0.5"]


def test_rows_may_not_become_much_larger_than_the_body() -> None:
    limits = RowLimits(records_max=1_000, record_bytes_max=1_000_000, bytes_max=1_000_000)
    rule = RowRule(columns=parse_columns(COLUMNS), key=None)
    body = b"id,name,amount," + b"x" * 40_000 + b"\n" + b"1,,,\n" * 100
    with pytest.raises(Refusal, match="more than 1000000 bytes"):
        rows_of(partial(read_csv, options=USUAL), body, rule, limits)
