"""Tests that no file of code and no function is too long to be read to its end."""

import ast

from plain_words import ROOT, FunctionNode, sources

LINES_OF_FILE = 330
LINES_OF_FUNCTION = 60


def test_no_file_is_too_long() -> None:
    tests = [path for folder in ("tests", "bench") for path in (ROOT / folder).rglob("*.py")]
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in [*sources(), *tests, *ROOT.glob("console/*.js")]
        if (lines := len(path.read_text().splitlines())) > LINES_OF_FILE
    }
    assert too_long == {}, f"at most {LINES_OF_FILE} lines: split them by what they decide"


def test_no_function_is_too_long() -> None:
    too_long = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": lines
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, FunctionNode) and (lines := _lines(node)) > LINES_OF_FUNCTION
    }
    assert too_long == {}, f"at most {LINES_OF_FUNCTION} lines: give names to its steps"


def _lines(function: FunctionNode) -> int:
    """Count the lines of a function, without its signature and docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
