"""The table of mistakes in manifests: each is told with its place and the way out."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.reading import read_manifest

TABLE = YAML(typ="safe", pure=True).load(Path(__file__).parents[2] / "mistakes.yaml")
MANIFEST: str = TABLE["manifest"]
PIECES = [
    *["", " ", "  ", "\n", "\t", ":", ": ", "- ", ",", "{", "}", "[", "]", "'", '"', "#", "|", ">"],
    *[
        "&a ",
        "*a",
        "!!x ",
        "<<: ",
        "%",
        "@",
        "`",
        "? ",
        "---\n",
        "\\",
        '"\\UFFFFFFFF"',
        "\x00",
        "é",
    ],
    *[
        "null",
        "true",
        "1",
        "1.5",
        "2001-13-45",
        "9" * 5000,
        "0x",
        ".inf",
        "settings: ",
        "x: ",
        "[]",
    ],
]
FOREIGN = (  # words of libraries
    *["Input should", "Keys should", "valid tuple", "Tuple should", "instance of", "Value error"],
    *[
        "<block",
        "<scalar>",
        "<stream",
        "datetime.",
        "expected <",
        "ordereddict",
        "Python",
        "character '",
    ],
    *["while parsing", "while scanning", "mapping values", "'utf-8'"],
)


def written(mistake: dict[str, Any]) -> str:
    text: str = mistake["written"]
    if (replaced := mistake.get("instead_of")) is None:
        return text
    assert replaced in MANIFEST
    return MANIFEST.replace(replaced, text, 1)


def line_of(problem: Problem) -> str:
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{problem.line}:{problem.column}: {problem.message}{hint}"


def test_the_manifest_of_the_table_is_right() -> None:
    assert read_manifest(MANIFEST, reserved="waybill").model.name == "orders"


@pytest.mark.parametrize("mistake", TABLE["mistakes"], ids=lambda mistake: mistake["what"])
def test_a_mistake_is_told_in_our_words(mistake: dict[str, Any]) -> None:
    with pytest.raises(UserError) as refused:
        read_manifest(written(mistake), reserved="waybill")
    assert [line_of(problem) for problem in refused.value.problems] == mistake["seen"]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """The manifest with a few pieces of it taken out, put elsewhere, or replaced by others."""
    text = MANIFEST
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.sampled_from([0, 1, 2, 5, 20])))
        at = draw(st.integers(0, len(text)))
        piece = draw(st.sampled_from(PIECES) | st.just(text[at : at + 12]))
        text = text[:begin] + piece + text[end:]
    return text


@settings(max_examples=100, deadline=None)
@given(damaged())
@example(MANIFEST.replace("amount DOUBLE", "amount DECIMAL(" + "9" * 5000 + ")"))
def test_whatever_is_written_is_told_with_a_place_and_in_our_words(text: str) -> None:
    try:
        read_manifest(text, reserved="waybill")
    except UserError as error:
        problems = error.problems
    else:
        return
    assert problems
    for problem in problems:
        assert problem.line is not None, problem
        assert problem.column is not None, problem
        assert 1 <= problem.line <= text.count("\n") + 2, problem
        said = f"{problem.message} {problem.hint}"
        assert not [word for word in FOREIGN if word in said], problem
