"""The drawing of the phases follows from their table."""

from pathlib import Path

from waybill_shared.tools.lifecycle_diagram import render

DOCUMENT = Path(__file__).parents[2] / "docs" / "lifecycle.md"


def test_the_diagram_shows_the_table_as_it_is() -> None:
    same = DOCUMENT.read_text(encoding="utf-8") == render()

    assert same, (
        "run `.venv/bin/python -m waybill_shared.tools.lifecycle_diagram > docs/lifecycle.md`"
    )
