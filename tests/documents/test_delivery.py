"""docs/delivery.md promises nothing that no test holds: each promise has a footnote, and each
footnote names tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = re.sub(r"\n +(?=\S)", " ", (ROOT / "docs/delivery.md").read_text(encoding="utf-8"))
TEST = re.compile(r"\[(test_\w+)\]\(\.\./(tests/[\w/]+\.py)\)")
FOOTNOTES = dict(re.findall(r"^\[\^([\w-]+)\]: (.*)$", TEXT, re.MULTILINE))
USED = re.compile(r"\[\^([\w-]+)\](?!:)")


def promises() -> list[str]:
    """Everything behind a dash, its continuation lines with it."""
    return [line for line in TEXT.splitlines() if line.startswith("- ")]


def functions_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_there_are_promises() -> None:
    assert len(promises()) > 30


@pytest.mark.parametrize("promise", promises(), ids=lambda promise: str(promise)[2:60])
def test_every_promise_has_a_footnote(promise: str) -> None:
    assert USED.findall(promise), "no footnote"


def test_footnotes_are_those_that_are_used() -> None:
    written = re.findall(r"^\[\^([\w-]+)\]:", TEXT, re.MULTILINE)
    assert sorted(written) == sorted({*USED.findall(TEXT)})


@pytest.mark.parametrize("footnote", FOOTNOTES)
def test_every_footnote_names_tests_that_exist(footnote: str) -> None:
    named = TEST.findall(FOOTNOTES[footnote])
    assert named, "no test is named"
    for name, path in named:
        assert name in functions_in(ROOT / path), f"{path} has no {name}"
