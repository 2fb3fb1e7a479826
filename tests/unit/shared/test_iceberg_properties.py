"""Each property of a corpus is in the list of those that a manifest may set, or refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.iceberg import PROPERTIES_MAX
from waybill_shared.contract.manifest.iceberg_properties import TABLE_PROPERTIES
from waybill_shared.contract.manifest.reading import read_manifest

TESTS = Path(__file__).parents[2]
CORPUS: dict[str, Any] = YAML(typ="safe").load(TESTS / "iceberg_properties.yaml")
TAKEN: dict[str, str] = CORPUS["taken"]
REFUSED = [name for names in CORPUS["refused"].values() for name in names]
WRONG = [(name, value) for name, values in CORPUS["wrong"].items() for value in values]
MANIFEST = {
    "version": 1,
    "name": "orders",
    "inputs": [{"name": "orders", "schema": "id BIGINT", "kafka": {"topic": "orders"}}],
}


def problems(properties: dict[str, str]) -> list[Problem]:
    """Return what is said of a manifest with these properties, as `check` and `apply` read it."""
    sink = {"name": "lake", "iceberg": {"table": "raw.orders", "properties": properties}}
    stage = {"name": "load", "inputs": ["orders"], "sinks": [sink]}
    steps = [{"name": "all", "sql": "SELECT * FROM orders"}]
    try:
        read_manifest(json.dumps({**MANIFEST, "stages": [{**stage, "steps": steps}]}))
    except UserError as error:
        return list(error.problems)
    return []


def test_the_corpus_is_large_and_names_all_of_the_list() -> None:
    assert len(TAKEN) + len(REFUSED) >= 200
    exact = {name for name in TABLE_PROPERTIES if "<" not in name}
    starts = [name.partition("<")[0] for name in TABLE_PROPERTIES if "<" in name]
    assert exact == {name for name in TAKEN if not name.startswith(tuple(starts))}
    assert all(any(name.startswith(start) for name in TAKEN) for start in starts)


def test_what_is_in_the_list_is_taken() -> None:
    names = [*TAKEN]
    for at in range(0, len(names), PROPERTIES_MAX):
        assert problems({name: TAKEN[name] for name in names[at : at + PROPERTIES_MAX]}) == []


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_in_the_list_is_refused_by_its_name(name: str) -> None:
    (problem,) = problems({"comment": "all else is right", name: "1"})
    assert problem.message.startswith(name), problem
    assert problem.path.startswith("stages.0.sinks.0.iceberg.properties"), problem


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_value_of_another_form_is_refused_with_the_form(name: str, value: str) -> None:
    (problem,) = problems({name: value})
    assert problem.message.startswith(f"{name} is "), problem
    assert repr(value)[:80] in problem.message


def test_each_of_several_is_refused_in_its_place() -> None:
    found = problems({"py-io-impl": "a.B", "write.parqet.page-size-bytes": "1"})
    assert [(p.path.rpartition("properties.")[2], p.hint.partition("? ")[0]) for p in found] == [
        ("py-io-impl", "leave it out: the file of connections says that"),
        ("write.parqet.page-size-bytes", "did you mean 'write.parquet.page-size-bytes'"),
    ]
