"""The table of words of other systems, row by row: each is refused where it is written, with what
it is and the nearest way."""

from collections.abc import Callable, Container
from pathlib import Path
from typing import Any, Final

import pytest
from ruamel.yaml import YAML

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.foreign import (
    ROWS,
    find_statement,
    find_template,
    tell_foreign,
)
from waybill_shared.contract.manifest.foreign_words import FOREIGN_WORDS, Foreign, Spot
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.manifest.tables import parse_table, parse_tables

HERE: Final = "{HERE}"
MANIFEST: Final = """\
version: 1
name: orders
{TOP}
inputs:
  - name: orders
    kafka: {topic: orders}
    {INPUT}
    schema: "order_id BIGINT"
stages:
  - name: load
    inputs: [orders]
    {STAGE}
    steps:
      - name: all
        {STEP}
        sql: SELECT * FROM orders
    sinks:
      - name: lake
        {SINK}
        iceberg:
          {SETTINGS}
          table: raw.orders
      - name: out
        kafka:
          topic: out
          {SINK_FORMAT}
"""
KEYS: Final = {
    Spot.TOP: ("{TOP}", "{}: x"),
    Spot.INPUT: ("{INPUT}", "{}: x"),
    Spot.STAGE: ("{STAGE}", "{}: x"),
    Spot.STEP: ("{STEP}", "{}: x"),
    Spot.SINK: ("{SINK}", "{}: x"),
    Spot.SETTINGS: ("{SETTINGS}", "{}: x"),
    Spot.TRIGGER: ("{STAGE}", "trigger: {}"),
    Spot.STATE: ("{TOP}", "state: {}"),
    Spot.FORMAT: ("{INPUT}", "format: {}"),
    Spot.SINK_FORMAT: ("{SINK_FORMAT}", "format: {}"),
    Spot.CONNECTOR: ("{INPUT}", "connectors: [{{name: a, url: 'https://b/c', {}: x}}]"),
}
"""Where each is put into the manifest, and how it is written there."""
SQL: Final[dict[Spot, tuple[str, Callable[[str], object]]]] = {
    Spot.TABLE: ("CREATE TABLE t (\n  a INT,\n  b INT {HERE} (x)\n)", parse_table),
    Spot.AFTER: ("CREATE TABLE t (\n  a INT\n)\n{HERE} x", parse_table),
    Spot.PROPERTY: ("CREATE TABLE t (\n  a INT\n) WITH (\n  '{HERE}' = 'x'\n)", parse_table),
    Spot.TRANSPORT: (
        'CREATE TABLE t (a INT) WITH (\n\'connectors\' = \'[{"transport": {"name": "{HERE}"}}]\')',
        parse_table,
    ),
    Spot.TABLES: ("CREATE TABLE t (a INT);\n\n-- and\n{HERE} x y", parse_tables),
    Spot.FILE: ("-- what\n/* it is */\n{HERE} x\ny", read_manifest),
}
OF_STEPS: Final = (Spot.QUERY, Spot.TEMPLATE, Spot.FUNCTION)
"""What only a driver meets: see also `test_sql_guard` and `test_guard`."""
FILES: Final[list[dict[str, Any]]] = YAML(typ="safe", pure=True).load(
    Path(__file__).parents[2] / "foreign.yaml"
)


def cases(spots: Container[Spot]) -> list[tuple[Spot, str]]:
    """The first word of each row, at each of its spots: the others are found by the same table."""
    return [(spot, row.words[0]) for row in FOREIGN_WORDS for spot in row.spots if spot in spots]


def problems_of(read: Callable[[str], object], text: str) -> tuple[Problem, ...]:
    with pytest.raises(UserError) as refused:
        read(text)
    return refused.value.problems


def line_of(text: str, mark: str) -> int:
    return text[: text.index(mark)].count("\n") + 1


def said_of(spot: Spot, word: str) -> tuple[str, str]:
    return ROWS[spot, word.lower()][0].tell(spot, word)


@pytest.mark.parametrize(("spot", "word"), cases(KEYS))
def test_a_key_or_a_value_is_refused_in_its_line(spot: Spot, word: str) -> None:
    mark, written = KEYS[spot]
    text, line = MANIFEST.replace(mark, written.format(word)), line_of(MANIFEST, mark)
    for other in ("{TOP}", "{INPUT}", "{STAGE}", "{STEP}", "{SINK}", "{SETTINGS}", "{SINK_FORMAT}"):
        text = text.replace(other, "#")
    found = problems_of(read_manifest, text)
    assert (*said_of(spot, word), line) in [(each.message, each.hint, each.line) for each in found]
    if ROWS[spot, word.lower()][0].whole:
        assert len(found) == 1


@pytest.mark.parametrize(("spot", "word"), cases(SQL))
def test_a_word_of_sql_or_of_a_file_is_refused_in_its_line(spot: Spot, word: str) -> None:
    text, read = SQL[spot]
    row = ROWS[spot, word.lower()][0]
    if row.ignored:
        assert parse_table(text.replace(HERE, word)).ignored
        return
    (found,) = problems_of(read, text.replace(HERE, word))
    message, hint = said_of(spot, word)
    assert message in found.message
    assert hint in (found.hint, found.message[-len(hint) - 1 : -1])
    assert found.line == (line_of(text, HERE) if spot is not Spot.TRANSPORT else 2)


@pytest.mark.parametrize("word", [word for _, word in cases([Spot.QUERY])])
def test_a_statement_in_a_step_is_found_after_comments(word: str) -> None:
    text = f"/* a */ -- b\n  {word.lower()} x SELECT 1"
    found = find_statement(text, Spot.QUERY)
    assert found is not None
    assert (found.message, found.hint) == said_of(Spot.QUERY, word)
    assert (found.line, found.column) == (2, 3)


@pytest.mark.parametrize("word", [word for _, word in cases([Spot.TEMPLATE])])
def test_a_template_in_a_step_is_found_where_it_begins(word: str) -> None:
    found = find_template(f"SELECT '{{{{' AS a -- {{{{\nFROM {word} x }}}}")
    assert found is not None
    assert (found.message, found.hint) == said_of(Spot.TEMPLATE, word)
    assert (found.line, found.column) == (2, 6)


@pytest.mark.parametrize("row", FOREIGN_WORDS, ids=lambda row: row.words[0])
def test_every_word_of_a_row_is_found_whatever_its_capitals(row: Foreign) -> None:
    for spot in row.spots:
        for word in row.words:
            assert tell_foreign(spot, word.upper()) == row.tell(spot, word)


def test_no_row_is_without_a_test_and_no_word_is_there_twice() -> None:
    assert {spot for spot, _ in ROWS} == {*KEYS, *SQL, *OF_STEPS} == {*Spot}
    assert len(ROWS) == sum(len(row.words) * len(row.spots) for row in FOREIGN_WORDS)


@pytest.mark.parametrize("row", FOREIGN_WORDS, ids=lambda row: row.words[0])
def test_a_row_says_what_it_is_and_the_way(row: Foreign) -> None:
    assert row.why
    assert row.way
    assert "|" not in row.why + row.way
    assert all(word == word.strip() for word in row.words)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT '{{ name }}' AS a -- {{ ref('b') }}\nFROM orders /* {% if %} */",
        'SELECT "\\"{{" AS a FROM orders',
        "SELECT insert, paused FROM orders",
    ],
)
def test_what_is_quoted_or_a_comment_is_no_template(sql: str) -> None:
    assert find_template(sql) is None
    assert find_statement(sql, Spot.QUERY) is None


@pytest.mark.parametrize("file", FILES, ids=lambda file: file["what"])
def test_a_file_of_another_system_says_the_way(file: dict[str, Any]) -> None:
    read = parse_tables if file.get("by") == "convert" else read_manifest
    found = problems_of(read, file["text"])
    assert [f"{p.line}:{p.column}: {p.message} ({p.hint})" for p in found] == file["seen"]
