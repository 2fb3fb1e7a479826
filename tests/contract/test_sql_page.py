"""The page about SQL follows from the lists by which it is judged."""

from pathlib import Path

from stage_runner.driver.sql_page import render

DOCUMENT = Path(__file__).parents[2] / "docs" / "sql.md"


def test_the_page_shows_the_lists_as_they_are() -> None:
    same = DOCUMENT.read_text(encoding="utf-8") == render()

    assert same, "run `.venv/bin/python -m stage_runner.driver.sql_page > docs/sql.md`"
