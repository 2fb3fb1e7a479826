"""The page about SQL follows from the lists by which it is judged."""

from pathlib import Path

from waybill_spark.guard.page import render

DOCUMENT = Path(__file__).parents[2] / "docs" / "sql.md"


def test_the_page_shows_the_lists_as_they_are() -> None:
    same = DOCUMENT.read_text(encoding="utf-8") == render()

    assert same, "run `.venv/bin/python -m waybill_spark.guard.page > docs/sql.md`"
