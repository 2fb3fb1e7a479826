"""The manifest's JSON Schema is that of the model, and the examples are good manifests."""

from pathlib import Path

import pytest

from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.reading import parse_manifest
from waybill_shared.tools.manifest_schema import SCHEMA, manifest_schema

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


def test_schema_file_is_that_of_the_model() -> None:
    assert SCHEMA.read_text() == manifest_schema(), (
        "the manifest has changed: run `python -m waybill_shared.tools.manifest_schema`"
    )


def test_no_schema_stands_there_unused() -> None:
    assert list(SCHEMA.parent.iterdir()) == [SCHEMA]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_is_a_manifest(path: Path) -> None:
    assert isinstance(parse_manifest(path.read_text()), Manifest)


def test_there_are_examples() -> None:
    assert EXAMPLES
