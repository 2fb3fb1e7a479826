"""Who only runs Waybill gets the same versions as who works on it, and less."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = {"mypy", "playwright", "pytest", "ruff"}


def locked(name: str) -> dict[str, tuple[str, ...]]:
    """Return the version and the hashes of each package in a lock; not where it is installed."""
    text = (ROOT / name).read_text()
    words = [each.split() for each in re.split(r"\n(?=\S)", text.strip())]
    return {
        first.partition("==")[0]: (first, *(word for word in others if word.startswith("--hash")))
        for first, *others in words
    }


def test_what_runs_is_a_part_of_what_developers_have() -> None:
    runs, develops = locked("requirements.lock"), locked("requirements.dev.lock")
    assert {name: develops.get(name) for name in runs} == runs
    assert develops.keys() >= TOOLS
    assert not runs.keys() & TOOLS
