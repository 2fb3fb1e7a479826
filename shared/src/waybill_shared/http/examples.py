"""Examples of answers for the documentation, as data: the files of `schemas/http`."""

import json
from typing import Any

from waybill_shared.contract.schemas import SCHEMAS

JsonObject = dict[str, Any]


def example(name: str) -> JsonObject:
    """Return the example of that name, which begins with its service."""
    text = (SCHEMAS / "http" / f"{name}.json").read_text(encoding="utf-8")
    found: JsonObject = json.loads(text)
    return found
