"""What Schemathesis is to do in its own process: names that exist, waits that are short."""

import os
from itertools import count
from typing import Any, Final

import schemathesis
from schemathesis import Case, HookContext, SerializationContext

KNOWN: Final = "WAYBILL_KNOWN_"
"""Begins the variables that name what exists: a pipeline, its input, a token, an operation."""
WAIT_S_MAX: Final = 0.1
CHANGING: Final = ("DELETE", "PUT", "PATCH", "/stop", "/restart", "/rename")
"""What is asked of pipelines that do not exist, and of no other."""

calls = count()
"""Every second one names what exists."""


@schemathesis.hook
def before_call(context: HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:
    path, query = case.path_parameters, case.query
    if case.method in CHANGING or case.path.endswith(CHANGING):
        if "pipeline" in path:  # a name that an answer held may be used again
            path["pipeline"] = f"{path['pipeline']}-unknown"
    elif next(calls) % 2:
        _name(path)
        _name(case.body)
    waits = query.get("wait")
    if isinstance(waits, int | float) and waits > WAIT_S_MAX:
        query["wait"] = WAIT_S_MAX if waits <= 60 else waits


@schemathesis.serializer("application/x-ndjson")
def ndjson(context: SerializationContext, value: object) -> bytes:
    return str(value).encode(errors="replace")


def _name(fields: object) -> None:
    if not isinstance(fields, dict):
        return
    for field, value in fields.items():
        if isinstance(value, str):
            fields[field] = os.environ.get(KNOWN + str(field).upper(), value)
