"""What Feldera's clients send, and which records that is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.ingress.bodies import Rows, rows_of
from waybill_ingress.core.encoders.raw_records import RawRecords
from waybill_ingress.core.feldera.options import read_options
from waybill_ingress.core.rows import RowLimits, RowRule
from waybill_shared.contract.errors import Refusal, UserError
from waybill_shared.contract.manifest.columns import parse_columns
from waybill_shared.contract.names import name_meant
from waybill_shared.contract.problems import Slug

LIMITS = RowLimits(records_max=1_000, record_bytes_max=1_000, bytes_max=100_000)
DEEPEST_PARSED = 500  # far below what the parser takes
COLUMNS = "id BIGINT NOT NULL, name STRING, at TIMESTAMP, day DATE, gone BOOLEAN"
RULE = RowRule(columns=parse_columns(COLUMNS), key="id", deletes="gone")


def taken(
    body: str, query: str = "format=json", rule: RowRule = RULE, *, step: int = 1_000_000
) -> Rows:
    given_query = [tuple(each.split("=", 1)) for each in query.split("&")]
    options = read_options([(name, value) for name, value in given_query])
    return rows_of(options.read, body.encode(), rule, LIMITS, step=step)


def values(rows: Rows) -> list[str]:
    return [record.value.decode() for record in rows.records]


def reasons(rows: Rows) -> list[tuple[int, str]]:
    return [(each.index, each.reason) for each in rows.rejected]


@pytest.mark.parametrize("step", [1, 7, 1_000])
def test_an_inserted_row_is_the_text_that_was_sent(step: int) -> None:
    body = '{"insert": {"id":1,  "name": "a}"}}\n{ "insert" :{"id": 2}\n}{"insert": {"id": 3.0e0} }'
    rows = taken(body, step=step)
    assert values(rows) == ['{"id":1,  "name": "a}"}', '{"id": 2}']
    assert [record.key for record in rows.records] == [b"1", b"2"]
    assert [index for index, _ in reasons(rows)] == [2]


def test_a_deleted_row_says_so_in_the_column_of_the_input() -> None:
    rows = taken('{"delete": {"id": 1}}{"delete": { }}{"delete": {"id": 2, "gone": false}}')
    assert values(rows) == ['{"gone": true, "id": 1}']
    assert reasons(rows)[0][1].startswith("id: is missing")
    assert reasons(rows)[1] == (2, "gone: is set by {'delete': row}, leave it out")


def test_an_input_without_a_column_for_them_takes_no_deletes() -> None:
    rule = RowRule(columns=RULE.columns, key="id")
    rows = taken('{"insert": {"id": 1}}{"delete": {"id": 1}}{"delete": 4}', rule=rule)
    assert values(rows) == ['{"id": 1}']
    assert [index for index, _ in reasons(rows)] == [1, 2]
    assert "`deletes: {column}`" in reasons(rows)[0][1]


@pytest.mark.parametrize("step", [1, 1_000])
def test_a_bad_line_is_named_and_the_next_ones_are_kept(step: int) -> None:
    body = '{"id": 1}\n{"id": 2\n{"id": 3}\n\nnonsense here {"id": 9}\n[1]\n{"id": "x"} {"id": 4}\n'
    rows = taken(body, "format=json&update_format=raw", step=step)
    assert values(rows) == ['{"id": 1}', '{"id": 3}', '{"id": 4}']
    assert [index for index, _ in reasons(rows)] == [1, 3, 4]
    assert reasons(rows)[1][1].startswith("not JSON at line 5, column 1")


@pytest.mark.parametrize("body", ['{"id": 1}', '[{"id": 1}', '[{"id": 1},]', '[{"id": 1}] 3'])
def test_with_array_the_body_is_arrays(body: str) -> None:
    with pytest.raises(Refusal) as refused:
        taken(body, "format=json&update_format=raw&array=true")
    assert refused.value.slug is Slug.BODY_NOT_JSON


def test_arrays_may_follow_one_another() -> None:
    rows = taken('[{"insert": {"id": 1}}]\n[]\n[{"insert": {"id": 2}}]', "format=json&array=true")
    assert values(rows) == ['{"id": 1}', '{"id": 2}']


@pytest.mark.parametrize(
    "update",
    ['{"update": {"id": 1}}', '{"insert": {"id": 1}, "delete": {"id": 1}}', "1", '{"id": 1}', "[]"],
)
def test_what_is_no_update_is_named(update: str) -> None:
    assert reasons(taken(update)) == [(0, 'an update is {"insert": row} or {"delete": row}')]


def test_a_name_that_stands_twice_is_refused_wherever_it_is() -> None:
    for body in ('{"insert": {"id": 1}, "insert": {"id": 2}}', '{"insert": {"id": 1, "id": 2}}'):
        ((_, reason),) = reasons(taken(body))
        assert "is there twice" in reason


def captured(op: str, before: object, after: object) -> str:
    return json.dumps({"schema": {"x": [1, "}"]}, "payload": locals()}, default=str)


def test_changes_of_debezium_are_rows() -> None:
    body = "\n".join(
        captured(*each)
        for each in (
            ("c", None, {"id": 1}),
            ("r", None, {"id": 2}),
            ("u", {"id": 1}, {"id": 1, "name": "new"}),
            ("u", {"id": 1}, {"id": 5}),
            ("d", {"id": 2}, None),
            ("t", None, None),
        )
    )
    rows = taken(body, "format=json&update_format=debezium")
    assert values(rows) == [
        '{"id": 1}',
        '{"id": 2}',
        '{"id": 1, "name": "new"}',
        '{"gone": true, "id": 1}',
        '{"id": 5}',
        '{"gone": true, "id": 2}',
    ]
    ((index, reason),) = reasons(rows)
    assert (index, reason.startswith("a change is")) == (5, True)


def test_times_of_pandas_are_milliseconds() -> None:
    rows = taken(
        '[{"id":1,"at":1700000000123,"day":1700006400000,"name":"x"},{"id":2,"at":-1,"day":null},'
        '{"id":3,"at":99999999999999999}]',
        "format=json&update_format=raw&array=true&json_flavor=pandas",
    )
    assert [json.loads(value) for value in values(rows)] == [
        {"id": 1, "at": "2023-11-14T22:13:20.123Z", "day": "2023-11-15", "name": "x"},
        {"id": 2, "at": "1969-12-31T23:59:59.999Z", "day": None},
    ]
    assert reasons(rows) == [(2, "a time in milliseconds is outside the years 1 to 9999")]


def test_csv_has_no_header_unless_that_is_said() -> None:
    assert values(taken("1,ada,,,", "format=csv")) == values(
        taken("id,name,at,day,gone\n1,ada,,,", "format=csv&headers=true")
    )


@pytest.mark.parametrize(
    "query", ["format=avro", "array=True", "update_format=weighted", "json_flavor=x"]
)
def test_a_parameter_with_another_value_is_refused_by_name(query: str) -> None:
    with pytest.raises(UserError, match=query.partition("=")[0]):
        taken("", query)


def test_other_parameters_say_nothing() -> None:
    query = "format=json&update_format=raw&connector_metadata=x&some=thing"
    assert values(taken('{"id": 1}', query)) == ['{"id": 1}']


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ("Orders", "Orders"),
        ("ORDERS", "ORDERS"),
        ("PRICE", "price"),
        ('"PRICE"', "PRICE"),
        ('"price"', "price"),
        ("none", "none"),
    ],
)
def test_a_table_is_the_input_that_is_alone_in_being_called_so(table: str, found: str) -> None:
    assert name_meant(table, ["orders", "Orders", "price"]) == found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.lists(JSON, max_size=4), st.sampled_from(["insert_delete", "raw", "debezium"]), st.booleans()
)
def test_every_value_is_a_record_or_named(found: list[object], form: str, pandas: bool) -> None:
    query = f"format=json&update_format={form}&json_flavor={'pandas' if pandas else 'default'}"
    shapes = [{"insert": each} for each in found] + [{"payload": each} for each in found] + found
    if not shapes:
        return
    rows = taken("\n".join(json.dumps(each) for each in shapes), query)
    assert len({r.row for r in rows.records} | {r.index for r in rows.rejected}) == len(shapes)


def test_no_part_of_a_spoilt_value_is_taken_for_a_row() -> None:
    body = '{\n "id": 1,,\n "items": [\n  {"id": 98},\n  {"id": 99}\n ]\n}\n{"id": 2}'
    rows = taken(body, "format=json&update_format=raw")
    assert values(rows) == ['{"id": 2}']
    assert len(reasons(rows)) == 1


def test_lines_may_end_in_every_way_and_a_mark_may_stand_first() -> None:
    body = '\ufeff{"id": 1}\r{bad\r{"id": 2}\r\n{bad\r\n{"id": 3}'
    rows = taken(body, "format=json&update_format=raw")
    assert values(rows) == ['{"id": 1}', '{"id": 2}', '{"id": 3}']
    assert [index for index, _ in reasons(rows)] == [1, 3]


def test_a_change_of_the_key_is_made_whole_or_not_at_all() -> None:
    moved = captured("u", {"id": 1}, {"id": 2, "at": "soon"})
    rows = taken(
        f"{moved}\n{captured('u', {'id': 1}, {'id': 3})}", "format=json&update_format=debezium"
    )
    assert values(rows) == ['{"gone": true, "id": 1}', '{"id": 3}']
    assert [record.row for record in rows.records] == [1, 1]
    assert [index for index, _ in reasons(rows)] == [0]
    without = RowRule(columns=RULE.columns, key="id")
    rows = taken(captured("u", {"id": 1}, {"id": 3}), "format=json&update_format=debezium", without)
    assert (values(rows), len(reasons(rows))) == ([], 1)


@pytest.mark.parametrize("depth", [60, 70, 400, 2_000])
@pytest.mark.parametrize("form", ["debezium", "raw"])
def test_what_is_nested_deep_is_refused_and_no_fault(form: str, depth: int) -> None:
    row = '{"id": 1, "x": ' + "[" * depth + "]" * depth + "}"
    body = row if form == "raw" else f'{{"payload": {{"op": "c", "after": {row}}}}}'
    query = f"format=json&json_flavor=pandas&update_format={form}"
    limits = RowLimits(records_max=10, record_bytes_max=10_000, bytes_max=100_000)
    read = read_options([tuple(each.split("=")) for each in query.split("&")]).read  # type: ignore[misc]
    if depth > DEEPEST_PARSED:
        with pytest.raises(Refusal, match="deeper"):
            rows_of(read, body.encode(), RULE, limits)
        return
    rows = rows_of(read, body.encode(), RULE, limits)
    assert len(rows.records) == (depth == 60)
    assert len(rows.rejected) == (depth > 60)


@pytest.mark.parametrize("line", ["[" + "1," * 9, '{"id":1,"x":', "{" + '"x":1,' * 40])
def test_a_body_that_is_nothing_but_beginnings_is_refused_soon(line: str) -> None:
    body = f"{line}\n" * 5_000
    with pytest.raises(Refusal) as refused:
        taken(body, "format=json&update_format=raw")
    assert refused.value.slug in (Slug.BODY_NOT_JSON, Slug.TOO_MANY_RECORDS)


def test_rows_are_refused_for_a_raw_input() -> None:
    rule = RowRule(columns=RULE.columns, key=None, form=RawRecords())
    for query in ("format=csv", "format=json&update_format=raw"):
        with pytest.raises(Refusal) as refused:
            taken("1", query, rule)
        assert refused.value.slug is Slug.UNSUPPORTED_MEDIA_TYPE
