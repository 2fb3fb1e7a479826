"""Examples of requests and answers for the documentation, as data: the files of `schemas/http`."""

import json
from typing import Any

from pydantic import ConfigDict

from waybill_shared.contract.schemas import SCHEMAS

JsonObject = dict[str, Any]


def example(name: str) -> JsonObject:
    """Return the example of that name, which begins with its service unless several have it."""
    text = (SCHEMAS / "http" / f"{name}.json").read_text(encoding="utf-8")
    found: JsonObject = json.loads(text)
    return found


def with_example(name: str) -> ConfigDict:
    """Return the configuration of a model that the example of that name documents. If it has the
    member `examples`, these are several.
    """
    found = example(name)
    return ConfigDict(json_schema_extra=found if "examples" in found else {"example": found})
