"""The name of a manifest, found without a YAML library."""

import pytest

from waybill import WaybillError
from waybill.manifests import manifest_name


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nname: orders\ninputs: []\n",
        "name:   orders   # the shop's\r\nversion: 1\r\n",
        "name: 'orders'",
        'name: "orders"',
        '"name": orders',
        "inputs:\n  - name: other\nname: orders\n",
        '{"version": 1, "name": "orders"}',
    ],
)
def test_the_top_level_name_is_found(text: str) -> None:
    assert manifest_name(text) == "orders"


def test_a_name_that_cannot_be_one_is_found_too() -> None:
    """Who judges it says what is wrong with it, and where."""
    assert manifest_name("name: My Orders # of the shop") == "My Orders"


@pytest.mark.parametrize(
    "text", ["", "version: 1", "inputs:\n  - name: other", "name:\n", '{"a": 1}', '{"name": 3}']
)
def test_a_manifest_without_a_name_is_told(text: str) -> None:
    with pytest.raises(WaybillError, match="no top-level name"):
        manifest_name(text)


def test_json_that_is_none_is_told() -> None:
    with pytest.raises(WaybillError, match="not valid JSON"):
        manifest_name("{")
