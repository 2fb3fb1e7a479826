"""What Schemathesis is to do in its own process: names that exist, waits that are short."""

import os
from typing import Any, Final

import schemathesis
from schemathesis import Case, HookContext, SerializationContext

KNOWN: Final = "WAYBILL_KNOWN_"
"""Begins the variables that name what exists: a pipeline, its input, a token, an operation."""
WAIT_S_MAX: Final = 0.1
CHANGING: Final = ("DELETE", "PUT", "/stop", "/restart")
"""What is asked of pipelines that do not exist, and of no other."""


@schemathesis.hook
def before_call(context: HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    path, query = case.path_parameters, case.query
    if case.method not in CHANGING and not case.path.endswith(CHANGING):
        _name(path)
        _name(case.body)
    elif "pipeline" in path:  # a name that an answer held may be used again
        path["pipeline"] = f"{path['pipeline']}-unknown"
    waits = query.get("wait")
    if isinstance(waits, int | float) and waits > WAIT_S_MAX:
        query["wait"] = WAIT_S_MAX if waits <= 60 else waits


@schemathesis.serializer("application/x-ndjson")
def ndjson(context: SerializationContext, value: object) -> bytes:
    return str(value).encode(errors="replace")


def _name(fields: object) -> None:
    """Every second text becomes the name of what exists."""
    if not isinstance(fields, dict):
        return
    for field, value in fields.items():
        known = os.environ.get(KNOWN + str(field).upper())
        if known is not None and isinstance(value, str) and len(value) % 2:
            fields[field] = known
