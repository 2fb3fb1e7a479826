"""The manifest's JSON Schema is that of the model, and the examples are good manifests."""

import json
import re
from pathlib import Path

import pytest

from waybill_shared.contract.manifest.model import Manifest
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.manifest.sinks import KINDS
from waybill_shared.tools import iceberg_properties, sink_kinds
from waybill_shared.tools.manifest_schema import SCHEMA, manifest_schema

ROOT = Path(__file__).parents[2]
CODE = (
    "shared/src/waybill_shared/contract",
    "spark/src",
    "services/stage_runner/src",
    "services/status/src/waybill_status/core",
)
TABLE = ROOT / "shared/src/waybill_shared/contract/manifest/sinks.py"
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


def test_schema_file_is_that_of_the_model() -> None:
    assert SCHEMA.read_text() == manifest_schema(), (
        "the manifest has changed: run `python -m waybill_shared.tools.manifest_schema`"
    )


def test_no_schema_stands_there_unused() -> None:
    assert list(SCHEMA.parent.iterdir()) == [SCHEMA]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_is_a_manifest(path: Path) -> None:
    assert isinstance(read_manifest(path.read_text()).model, Manifest)


def test_one_example_has_every_key() -> None:
    text = (ROOT / "examples" / "all_keys.yaml").read_text()
    assert [key for key in keys_of(json.loads(manifest_schema())) if f"{key}:" not in text] == []


def test_the_page_names_every_key() -> None:
    page = (ROOT / "docs" / "manifest.md").read_text()
    missing = [key for key in keys_of(json.loads(manifest_schema())) if not named(key, page)]
    assert missing == []


def keys_of(schema: object) -> set[str]:
    """All that may stand before a colon."""
    match schema:
        case list():
            return set().union(*map(keys_of, schema))
        case dict():
            named = schema.get("properties", {})
            others = [part for key, part in schema.items() if key != "properties"]
            return {*named}.union(*map(keys_of, [*named.values(), *others]))
        case _:
            return set()


def named(key: str, page: str) -> bool:
    return re.search(rf"[`.{{ ]{key}[`:,}}\[]", page) is not None


def test_there_are_examples() -> None:
    assert EXAMPLES


def test_page_has_the_table_of_the_kinds_of_sinks() -> None:
    page = (ROOT / "docs" / "manifest.md").read_text()
    assert sink_kinds.render() in page, (
        "put what `python -m waybill_shared.tools.sink_kinds` prints into the page"
    )


def test_page_has_the_list_of_table_properties() -> None:
    page = (ROOT / "docs" / "iceberg.md").read_text()
    assert iceberg_properties.render() in page, (
        "put what `python -m waybill_shared.tools.iceberg_properties` prints into the page"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_no_code_but_the_table_and_its_own_folder_knows_a_kind(kind: str) -> None:
    """A new kind is a model and a row, and a folder beside Spark."""
    model = TABLE.parent / f"{kind}.py"  # where it is long
    at_home = {*(ROOT / f"spark/src/waybill_spark/sinks/{kind}").glob("*.py"), TABLE, model}
    code = [path for part in CODE for path in (ROOT / part).rglob("*.py") if path not in at_home]
    named = re.compile(rf"\bsinks\.{kind}\b|\b{KINDS[kind].model.__name__}\b")
    assert [path.name for path in code if named.search(path.read_text())] == []
