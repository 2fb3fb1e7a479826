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
    if case.method in CHANGING or case.path.endswith(CHANGING):
        case.path_parameters["pipeline"] += "-unknown"  # it may have learned a name from an answer
    else:
        _name(case.path_parameters)
        _name(case.body)
    waits = (case.query or {}).get("wait")
    if isinstance(waits, int | float) and WAIT_S_MAX < waits <= 60:
        case.query["wait"] = WAIT_S_MAX


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
