"""docs/delivery.md promises nothing that no test holds: each sentence names one that exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/delivery.md").read_text(encoding="utf-8")
TEST = re.compile(r"\[(test_\w+)\]\(\.\./(tests/[\w/]+\.py)\)")


def promises() -> list[str]:
    """Everything behind a dash, its continuation lines with it."""
    body = re.sub(r"\n +(?=\S)", " ", TEXT)
    return [line for line in body.splitlines() if line.startswith("- ")]


def functions_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_there_are_promises() -> None:
    assert len(promises()) > 30


@pytest.mark.parametrize("promise", promises(), ids=lambda promise: str(promise)[2:60])
def test_every_promise_names_a_test_that_exists(promise: str) -> None:
    named = TEST.findall(promise)
    assert named, "no test is named"
    for name, path in named:
        assert name in functions_in(ROOT / path), f"{path} has no {name}"
