"""The page about words of other systems follows from their table."""

from pathlib import Path

from waybill_shared.tools.foreign_page import render

DOCUMENT = Path(__file__).parents[2] / "docs" / "other-systems.md"


def test_the_page_shows_the_words_as_they_are() -> None:
    same = DOCUMENT.read_text(encoding="utf-8") == render()

    assert same, (
        "run `.venv/bin/python -m waybill_shared.tools.foreign_page > docs/other-systems.md`"
    )
