"""A manifest with another name for its pipeline: its text, and the places in it."""

import json
from pathlib import Path

import pytest

from waybill_shared.contract.errors import Problem
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.manifest.renamed import rename_manifest

TEXT = (Path(__file__).parents[3] / "examples" / "orders.yaml").read_text()


def as_sales(text: str) -> AppliedManifest:
    before = read_manifest(text)
    after = rename_manifest(before, "sales", was="orders")
    wanted = {**json.loads(before.native), "name": "sales"}
    if "was" in wanted:
        wanted["was"] = "orders"
    assert json.loads(after.native) == wanted, "nothing else is changed"
    assert read_manifest(after.source).native == after.native
    return after


def test_only_the_name_changes_in_the_text() -> None:
    lines = zip(TEXT.splitlines(), as_sales(TEXT).source.splitlines(), strict=True)
    assert [pair for pair in lines if pair[0] != pair[1]] == [("name: orders", "name: sales")]


@pytest.mark.parametrize("written", ["'orders'", '"orders"', "orders  # of the shop", "\n  orders"])
def test_name_may_be_written_in_any_way(written: str) -> None:
    after = as_sales(TEXT.replace("name: orders\n", f"name: {written}\n", 1))
    assert "sales" in after.source.split("inputs:")[0]
    assert written.count("#") == after.source.split("inputs:")[0].count("of the shop")


@pytest.mark.parametrize("written", ['"\\x6frders"', ">-\n  orders"])
def test_name_that_is_written_in_no_usual_way_is_changed_too(written: str) -> None:
    text = TEXT.replace("name: orders\n", f"name: {written}\n", 1)
    assert as_sales(text).model.name == "sales"


def in_json() -> str:
    return json.dumps(json.loads(read_manifest(TEXT).native))


def test_manifest_in_json_stays_json() -> None:
    tree = json.loads(as_sales(in_json()).source)
    assert tree == {**json.loads(in_json()), "name": "sales"}


def test_name_that_is_a_word_of_yaml_is_still_a_text() -> None:
    after = rename_manifest(read_manifest(TEXT), "null", was="orders")
    assert after.model.name == "null"


def test_what_it_was_before_is_the_name_that_it_had() -> None:
    after = as_sales(TEXT.replace("name: orders\n", "name: orders\nwas: shop\n", 1))
    assert "name: sales\nwas: orders\n" in after.source


def test_places_of_problems_and_notes_are_kept_up() -> None:
    before = read_manifest(in_json()).with_warnings(["mind the gap"])
    after = rename_manifest(before, "much-longer-than-orders", was="orders")
    (placed,) = after.place([Problem(message="wrong", path="version")])
    assert placed.column is not None
    assert after.source[placed.column - 1 :].startswith("1")
    assert "mind the gap" in after.warnings
