"""The page about SQL follows from the lists by which it is judged."""

from pathlib import Path

from waybill_spark.guard.allowed import read_lists
from waybill_spark.guard.page import render

DOCUMENT = Path(__file__).parents[2] / "docs" / "sql.md"


def test_the_page_shows_the_lists_as_they_are() -> None:
    same = DOCUMENT.read_text(encoding="utf-8") == render()

    assert same, "run `.venv/bin/python -m waybill_spark.guard.page > docs/sql.md`"


def test_the_page_lists_no_function_whose_every_use_is_refused() -> None:
    """Which those are, a test compares with Spark's own groups of functions."""
    functions = read_lists()["functions"]
    shown = DOCUMENT.read_text(encoding="utf-8").partition("## Functions")[2]
    assert {*functions["of_many_rows"]} <= {*functions["allowed"]}
    assert not [name for name in functions["of_many_rows"] if f"`{name}`" in shown]
    assert "`upper`" in shown
