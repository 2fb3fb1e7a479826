"""What a service's OpenAPI document contains apart from its routes: problems, each with its schema
and an example, the key that each route needs, and what every operation may answer.

A route names the slugs it refuses with (`refusals`); all else follows from the table of problems.
"""

from collections.abc import Mapping
from typing import Final

from fastapi import FastAPI
from pydantic import BaseModel

from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import PROBLEM_JSON, Slug, problem_body
from waybill_shared.contract.routes import scope_for
from waybill_shared.http import feldera
from waybill_shared.http.examples import JsonObject, example

Responses = dict[int | str, JsonObject]
Members = Mapping[str, Mapping[str, object]]
"""By the slug of the problem."""

SCHEME = "api_key"
KEYS: Final = (
    "A key that `waybill keys new` has made, with the scope that the operation names. Asked for"
    " wherever WAYBILL_API_KEYS_FILE is set; a stack on loopback without it asks for none."
)
ABOUT: Final = (
    "Each error is a problem (RFC 9457), and `type` ends with a word that never changes. At a path"
    f" that is not listed here the answer is {Slug.NOT_FOUND.status} `{Slug.NOT_FOUND}`, with"
    " another method than those listed"
    f" {Slug.METHOD_NOT_ALLOWED.status} `{Slug.METHOD_NOT_ALLOWED}`. At `/v0` errors have the form"
    " of Feldera, for its clients."
)
SCHEMAS: Final = "#/components/schemas/"
PROBLEM: Final = "Problem"
SCHEMA: Final[JsonObject] = {
    "title": PROBLEM,
    "description": "Why a request was refused. Some problems have more members.",
    "type": "object",
    "required": ["type", "title", "status", "detail", "request_id"],
    "properties": {
        "type": {"type": "string", "description": "which problem it is: look at the last word"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "for people; the text may change"},
        "hint": {"type": "string", "description": "for people: what to do"},
        "request_id": {"type": "string"},
    },
}
REQUEST_ID: Final = "8f14e45fceea167a5a36dedd4bea2543"
MEMBERS: Final[Members] = example("problem_members")
"""The members of a problem's example, in addition to those that each problem has."""

OF_BODIES: Final = (Slug.REQUEST_CUT_OFF, Slug.BODY_TOO_LARGE)
"""How a request may be refused for its body, whatever that is to hold."""


def refusals(*slugs: Slug, members: Members = MEMBERS) -> Responses:
    """Return the answers of a route that may refuse with any of `slugs`; `members` are for
    examples.
    """
    found: Responses = {}
    if Slug.PIPELINE_NOT_FOUND in slugs:
        slugs = (*slugs, Slug.RENAMED)  # the name may be a former one
    for status in sorted({slug.status for slug in slugs}):
        same = [slug for slug in slugs if slug.status == status]
        found[status] = {
            "description": "; ".join(f"`{slug}`: {slug.meaning}" for slug in same),
            "content": {
                PROBLEM_JSON: {
                    "schema": {"$ref": f"{SCHEMAS}{PROBLEM}"},
                    "examples": {slug: {"value": _example(slug, members)} for slug in same},
                }
            },
        }
    return found


def body_as(kind: type[BaseModel]) -> JsonObject:
    """Return the `openapi_extra` of a route that reads its body by itself, as a `kind`."""
    schema = kind.model_json_schema(ref_template=f"{SCHEMAS}{{model}}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def describe(app: FastAPI) -> None:
    """Let `app` describe problems, name the security scheme, and each operation its scope."""
    app.description = ABOUT
    plain = app.openapi

    def openapi() -> JsonObject:
        document = plain()  # made once and kept, so this is repeated on the same one
        components = document.setdefault("components", {})
        scheme = {"type": "http", "scheme": "bearer", "description": KEYS}
        components.setdefault("securitySchemes", {})[SCHEME] = scheme
        schemas = components.setdefault("schemas", {})
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        schemas[PROBLEM] = SCHEMA
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                _describe(operation, method.upper(), path)
                for content in operation.get("requestBody", {}).get("content", {}).values():
                    schemas.update(content["schema"].pop("$defs", {}))
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def _describe(operation: JsonObject, method: str, path: str) -> None:
    answers = operation["responses"]
    if "HTTPValidationError" in repr(answers.get("422")):
        del answers["422"]  # FastAPI's own guess: its form is not ours
    common: tuple[Slug, ...] = (Slug.INTERNAL, Slug.HOST_REFUSED)
    if scope := scope_for(method, path):
        operation["security"] = [{SCHEME: [str(scope)]}]
        common += (Slug.KEY_MISSING, Slug.KEY_REFUSED, Slug.KEY_EXPIRED, Slug.SCOPE_MISSING)
        common += (Slug.ORIGIN_REFUSED,) if method != "GET" else ()
    foreign = path.startswith(feldera.PREFIX)
    for status, answer in (feldera.errors if foreign else refusals)(*common).items():
        answers.setdefault(str(status), answer)
    operation["responses"] = dict(sorted(answers.items()))


def _example(slug: Slug, members: Members) -> JsonObject:
    own = members.get(slug, MEMBERS.get(slug, {}))
    return problem_body(Refusal(slug, slug.meaning, **own), request_id=REQUEST_ID)
