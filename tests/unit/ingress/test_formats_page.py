"""The examples of formats in the API's description work for the input of the example."""

import json
from pathlib import Path
from typing import get_args
from urllib.parse import parse_qsl

import pytest

from unit.ingress.bodies import rows_of
from waybill_ingress.adapters.http.formats_page import BODIES, MANIFESTS
from waybill_ingress.core.bodies.forms import FORMS, form_of
from waybill_ingress.core.inputs import row_rules
from waybill_ingress.core.rows import RowLimits
from waybill_shared.contract.manifest.inputs import Input
from waybill_shared.contract.manifest.reading import read_manifest

ORDERS = Path(__file__).parents[3] / "examples" / "orders.yaml"
LIMITS = RowLimits(records_max=10, record_bytes_max=1_000, bytes_max=10_000)


def shown() -> list[tuple[str, object, str]]:
    """Media type, example and query."""
    found = []
    for media_type, of in BODIES["content"].items():
        if "example" in of:
            found.append((media_type, of["example"], ""))
        for title, example in of.get("examples", {}).items():
            found.append((media_type, example["value"], title.partition("?")[2]))
    return found


@pytest.mark.parametrize(("media_type", "example", "query"), shown())
def test_an_example_is_taken_as_it_stands_there(
    media_type: str, example: object, query: str
) -> None:
    body = example if isinstance(example, str) else json.dumps(example)
    rule = row_rules(read_manifest(ORDERS.read_text()))["orders"]
    found = rows_of(form_of(media_type, parse_qsl(query)), body.encode(), rule, LIMITS)
    assert (bool(found.records), found.rejected) == (True, [])


def test_all_formats_are_told() -> None:
    assert [*BODIES["content"]] == [*FORMS]


def test_a_manifest_is_shown_for_each_format_of_an_input() -> None:
    shown = MANIFESTS["content"]["application/yaml"]["examples"].values()
    manifests = [read_manifest(example["value"]).model for example in shown]
    assert [one.inputs[0].format for one in manifests] == [
        *get_args(Input.model_fields["format"].annotation)
    ]
