"""Columns proposed from records: types, names, what is left out, and that they take the records."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import patiently
from waybill_ingress.core.proposals import (
    FIELDS_MAX,
    NOTES_MAX,
    RECORDS_MAX,
    Window,
    check_topic,
    propose,
    windows,
)
from waybill_shared.contract.errors import Refusal, UserError
from waybill_shared.contract.manifest.columns import parse_columns, refusal
from waybill_shared.contract.manifest.formats import SCHEMA_CHARACTERS_MAX


def encoded(*rows: object) -> list[bytes | None]:
    return [json.dumps(row).encode() for row in rows]


def schema(*rows: object) -> str:
    return propose("t", encoded(*rows)).schema


def notes(*rows: object) -> tuple[str, ...]:
    return propose("t", encoded(*rows)).notes


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([True, False], "BOOLEAN"),
        ([1, -(2**63)], "BIGINT"),
        ([1, 1.5], "DOUBLE"),
        ([1, 2**63], "DOUBLE"),
        (["2026-11-21", "2024-02-29"], "DATE"),
        (["2026-11-21T09:00:00Z", "2026-11-21 09:00:00.5"], "TIMESTAMP"),
        (["2026-11-21", "2026-02-30"], "STRING"),
        (["2026-11-21", "2026-11-21T09:00:00Z"], "STRING"),
        (["a", ""], "STRING"),
        ([None, 1], "BIGINT"),
        ([[1, None], []], "ARRAY<BIGINT>"),
        ([[[1.5]], [[2]]], "ARRAY<ARRAY<DOUBLE>>"),
        ([{"a": 1}, {"b c": "x"}], "STRUCT<a: BIGINT, `b c`: STRING>"),
        ([[{"at": "2026-11-21"}]], "ARRAY<STRUCT<at: DATE>>"),
    ],
)
def test_type_takes_all_values(values: list[object], type_: str) -> None:
    rows = [{"x": value} for value in values]
    assert schema(*rows) == f"x {type_}"
    assert notes(*rows) == ()


@pytest.mark.parametrize(
    ("values", "type_", "note"),
    [
        ([None], "STRING", "x: STRING, for no record has a value of it"),
        ([[]], "ARRAY<STRING>", "x[]: STRING, for no record has a value of it"),
        ([{}], "STRING", "x: STRING, for its objects have no field for a column"),
        ([1, "a"], "STRING", "x: STRING, for it has numbers and texts; each is kept as text"),
        ([True, 1], "STRING", "x: STRING, for it has numbers and true or false; each is kept"),
        ([{"a": 1}, [1]], "STRING", "x: STRING, for it has lists and objects; each is kept"),
        ([10**400], "STRING", "x: STRING, for it has numbers too large for DOUBLE"),
    ],
)
def test_what_has_no_type_of_its_own_is_a_text_with_a_note(
    values: list[object], type_: str, note: str
) -> None:
    rows = [{"x": value} for value in values]
    assert schema(*rows) == f"x {type_}"
    assert notes(*rows)[0].startswith(note)


def test_columns_come_in_the_order_in_which_they_are_first_seen() -> None:
    assert schema({"b": 1}, {"a": 2, "b": 3}, {"c": "x"}) == "b BIGINT, a BIGINT, c STRING"


@pytest.mark.parametrize("name", ["", " ", "a`b", "a\nb", "a\x1b", "n" * 200])
def test_name_that_cannot_be_a_column_is_left_out_with_a_note(name: str) -> None:
    assert schema({"id": 1, name: 2}) == "id BIGINT"
    (note,) = notes({"id": 1, name: 2})
    assert "is left out" in note and note.isprintable()


def test_names_that_differ_in_case_alone_are_one_column() -> None:
    assert schema({"id": 1, "ID": "x"}) == "id BIGINT"
    assert "apart from upper and lower case" in notes({"id": 1, "ID": "x"})[0]


def test_half_a_surrogate_pair_fits_no_column() -> None:
    rows = ({"id": 1, "x": "\ud800", "y": ["\ud800"], "z": {"\ud800": 1, "ok": "\ud800"}},)
    assert schema(*rows) == "id BIGINT, z STRING"
    assert all(note.isprintable() for note in notes(*rows))


def test_object_whose_keys_are_data_is_a_text() -> None:
    row = {"x": {f"k{n}": n for n in range(FIELDS_MAX + 1)}}
    assert schema(row) == "x STRING"
    assert "MAP<STRING,T>" in notes(row)[0]


def test_what_nests_too_deep_is_a_text_in_its_depth() -> None:
    value: object = 1
    for _ in range(40):
        value = [value]
    assert parse_columns(schema({"x": value}))
    assert "nest no deeper" in notes({"x": value})[0]


def test_more_columns_than_a_manifest_holds_are_left_out() -> None:
    row = {f"a_rather_long_name_of_a_column_{n}": n for n in range(2_000)}
    assert len(schema(row)) <= SCHEMA_CHARACTERS_MAX
    assert "are left out: they are too many" in notes(row)[-1]


def test_notes_are_bounded() -> None:
    row: dict[str, object] = {f"x{n}": None for n in range(80)}
    assert (len(notes(row)), notes(row)[-1]) == (NOTES_MAX + 1, "and 30 more notes")


def test_records_that_are_no_objects_are_counted_and_not_looked_into() -> None:
    values = [*encoded({"id": 1}, [1], 7), b"x", b"\xff", None, b'{"id": NaN}', b"[" * 5_000]
    found = propose("t", values)
    assert (found.records, found.schema) == (1, "id BIGINT")
    assert found.notes == ("7 records are no JSON object: a stage stops at such a record",)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([], "the newest offsets of topic t hold no committed record"),
        ([b"x", None], "none of the newest 2 records of t is a JSON object"),
        ([b"{}"], "the newest records of t have no field for a column"),
    ],
)
def test_nothing_to_propose_says_why(values: list[bytes | None], told: str) -> None:
    with pytest.raises(Refusal) as refused:
        propose("t", values)
    assert (refused.value.slug, refused.value.detail) == ("nothing_to_propose", told)


@pytest.mark.parametrize("topic", ["waybill.commits", "__consumer_offsets", "", "a b", "x" * 250])
def test_topic_that_no_input_may_have_is_refused(topic: str) -> None:
    with pytest.raises(UserError) as refused:
        check_topic(topic, "waybill")
    assert [problem.path for problem in refused.value.problems] == ["topic"]


def test_topic_of_others_is_good() -> None:
    check_topic("waybills.in", "waybill")


def test_partitions_share_what_is_looked_at() -> None:
    found = windows({0: 0, 1: 5, 2: 0, 3: 7}, {0: 1_000, 1: 15, 2: 0, 3: 7})
    assert found == {0: Window(640, 1_000, 90), 1: Window(5, 15, 10)}


@given(st.dictionaries(st.integers(0, 300), st.tuples(st.integers(0, 999), st.integers(0, 999))))
@patiently
def test_no_more_is_looked_at_than_the_limit(held: dict[int, tuple[int, int]]) -> None:
    starts = {at: start for at, (start, _) in held.items()}
    ends = {at: start + count for at, (start, count) in held.items()}
    found = windows(starts, ends)
    in_all = sum(ends.values()) - sum(starts.values())
    assert sum(window.records for window in found.values()) == min(RECORDS_MAX, in_all)
    assert all(starts[at] <= w.start < w.end == ends[at] for at, w in found.items())


names = st.one_of(st.sampled_from(["a", "A", "b", "b c", "ß", "İ", "`", ""]), st.text(max_size=4))
texts = st.sampled_from(["2026-11-21", "2026-11-21T09:00:00Z", "2026-02-30", "x", "\ud800"])
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(names, values, max_size=4), min_size=1, max_size=5))
@patiently
def test_what_is_proposed_can_be_parsed_and_takes_every_record(
    rows: list[dict[str, object]],
) -> None:
    try:
        found = propose("t", encoded(*rows))
    except Refusal:
        return
    columns = parse_columns(found.schema)
    for raw in encoded(*rows):
        assert raw is not None
        assert refusal(columns, json.loads(raw, parse_float=Decimal)) is None
