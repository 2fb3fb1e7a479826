"""The table of mistakes in manifests: each is told with its place and the way out."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Problem
from waybill_shared.contract.manifest.reading import parse_manifest

TABLE = YAML(typ="safe", pure=True).load(Path(__file__).parents[2] / "mistakes.yaml")
MANIFEST: str = TABLE["manifest"]


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
    assert parse_manifest(MANIFEST, reserved="waybill").name == "orders"


@pytest.mark.parametrize("mistake", TABLE["mistakes"], ids=lambda mistake: mistake["what"])
def test_a_mistake_is_told_in_our_words(mistake: dict[str, Any]) -> None:
    with pytest.raises(UserError) as refused:
        parse_manifest(written(mistake), reserved="waybill")
    assert [line_of(problem) for problem in refused.value.problems] == mistake["seen"]


def test_no_mistake_is_told_in_the_words_of_a_library() -> None:
    seen = " ".join(line for mistake in TABLE["mistakes"] for line in mistake["seen"])
    for word in (
        "Input should",
        "valid tuple",
        "<block",
        "<scalar>",
        "Tuple should",
        "instance of",
    ):
        assert word not in seen
