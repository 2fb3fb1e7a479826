"""Errors of `/v0`, as clients of Feldera read them: its form, and its codes where it has one.

A status that its clients try again on their own (408, 429, 502, 503, 504) stays for what may be
tried again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug, headers_of

PREFIX: Final = "/v0/"
WRITE: Final = re.compile(r"/v0/pipelines/[^/]+/ingress/[^/]+")


@dataclass(frozen=True, slots=True)
class _Code:
    status: int
    name: str


CODES: Final[Mapping[Slug, _Code]] = {
    Slug.BODY_NOT_CSV: _Code(400, "ParseErrors"),
    Slug.BODY_NOT_JSON: _Code(400, "ParseErrors"),
    Slug.RECORDS_REJECTED: _Code(400, "ParseErrors"),
    Slug.INVALID: _Code(400, "InvalidParam"),
    Slug.TOKEN_NOT_FOUND: _Code(400, "InvalidParam"),
    Slug.TOKEN_TOO_LONG: _Code(400, "InvalidParam"),
    Slug.CONNECTOR_NOT_FOUND: _Code(404, "UnknownInputEndpoint"),
    Slug.INPUT_NOT_FOUND: _Code(404, "UnknownInputStream"),
    Slug.PIPELINE_NOT_FOUND: _Code(404, "UnknownPipelineName"),
    Slug.METHOD_NOT_ALLOWED: _Code(501, "NotImplemented"),
    Slug.NOT_FOUND: _Code(501, "NotImplemented"),
}
"""Where Feldera says something else than our word for it."""
REQUEST_ID: Final = "8f14e45fceea167a5a36dedd4bea2543"
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["message", "error_code", "details"],
    "properties": {
        "message": {"type": "string"},
        "error_code": {"type": "string"},
        "details": {"type": "object"},
    },
}
OURS: Final = "use the routes at /v1: GET /docs shows them"
WAYS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (
        re.compile(r"/v0/pipelines(/[^/]+)?"),
        "PUT /v1/pipelines/{name} makes or changes a pipeline, `waybill convert` its manifest",
    ),
    (
        re.compile(r"/v0/pipelines/[^/]+/(egress/.*|query)"),
        "read the tables and topics that the sinks of the pipeline write",
    ),
    (
        re.compile(r"/v0/pipelines/[^/]+/(logs|support_bundle|circuit_profile|heap_profile)"),
        "GET /v1/pipelines/{name}/events says what happened to a pipeline",
    ),
    (
        re.compile(r"/v0/pipelines/[^/]+/(checkpoint.*|sync_checkpoint.*)"),
        "each batch is a checkpoint: GET /v1/pipelines/{name} has the last one of each stage",
    ),
    (re.compile(r"/v0/metrics|/v0/pipelines/[^/]+/metrics"), "GET /metrics of each service"),
    (re.compile(r"/v0/api_keys.*"), "`waybill keys` makes, lists and revokes API keys"),
)
"""What to use in place of a route that is not served here."""


def render(refusal: Refusal, path: str, request_id: str) -> Response:
    return JSONResponse(
        error_body(refusal, path=path, request_id=request_id),
        status_code=code_of(refusal.slug).status,
        headers=headers_of(refusal.slug),
    )


def error_body(refusal: Refusal, *, path: str, request_id: str) -> dict[str, Any]:
    code = code_of(refusal.slug)
    details: dict[str, Any] = {**refusal.members, "request_id": request_id}
    message = refusal.detail
    if code.name == "NotImplemented":
        message = f"{path} is not served here: {way_of(path)}"
        details["route"] = path
    if code.name == "ParseErrors":
        details = _parse_errors(refusal, details)
    return {"message": message, "error_code": code.name, "details": details}


def is_write(path: str) -> bool:
    """Return True if clients of Feldera would repeat a write to this path after 502, 503 or 504."""
    return WRITE.fullmatch(path) is not None


def errors(*slugs: Slug) -> dict[int | str, dict[str, Any]]:
    """Return the answers of a route at `/v0` that may refuse with any of `slugs`, for OpenAPI."""
    found: dict[int | str, dict[str, Any]] = {}
    if Slug.PIPELINE_NOT_FOUND in slugs:
        slugs = (*slugs, Slug.RENAMED)  # the name may be a former one
    for status in sorted({code_of(slug).status for slug in slugs}):
        same = [slug for slug in slugs if code_of(slug).status == status]
        said = [f"`{code_of(slug).name}`: {slug.meaning}" for slug in same]
        examples = {slug: {"value": _example(slug)} for slug in same}
        content = {"application/json": {"schema": SCHEMA, "examples": examples}}
        found[status] = {"description": "; ".join(said), "content": content}
    return found


def _example(slug: Slug) -> dict[str, Any]:
    return error_body(Refusal(slug, slug.meaning), path=f"{PREFIX}nothing", request_id=REQUEST_ID)


def code_of(slug: Slug) -> _Code:
    camel = "".join(word.capitalize() for word in slug.split("_"))
    return CODES.get(slug, _Code(slug.status, camel))


def way_of(path: str) -> str:
    return next((way for pattern, way in WAYS if pattern.fullmatch(path)), OURS)


def _parse_errors(refusal: Refusal, details: dict[str, Any]) -> dict[str, Any]:
    """Return the details with `errors`, one for each wrong record.

    `event_number` counts from 1. A body that is wrong as a whole has one error.
    """
    found = details.pop("rejected", None) or [{"reason": refusal.detail}]
    errors = [
        {
            "description": each["reason"],
            "event_number": each["index"] + 1 if "index" in each else None,
            "field": None,
            "invalid_text": None,
            "suggestion": details.get("hint"),
        }
        for each in found
    ]
    return {**details, "num_errors": len(errors), "errors": errors}
