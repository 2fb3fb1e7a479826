"""Makes one OpenAPI document of those of the services."""

from collections.abc import Mapping
from typing import Any

from waybill_shared.contract.routes import HTTP_SERVICES

TITLE = "Waybill"
PUBLIC_PREFIXES = ("/v0/", "/v1/")  # paths for operators, which each service has, are left out
ABOUT = (
    "What the services answer at one address. For operators, next to it: `/healthz`, `/readyz`"
    " and `/version` of all, and `/metrics/{service}`. Each error is a problem (RFC 9457): 404"
    " `not_found` at a path that is not listed here, 405 `method_not_allowed` with another method,"
    " 502 `service_unreachable` or 504 `service_timeout` while a service does not answer."
)
_SCHEMA = "#/components/schemas/"

JsonObject = dict[str, Any]


def merge(documents: Mapping[str, JsonObject], version: str) -> JsonObject:
    """Return one document with all public paths, the schemas they use and the keys they need."""
    paths: JsonObject = {}
    schemas: JsonObject = {}
    schemes: JsonObject = {}
    newest = max((document["openapi"] for document in documents.values()), default="3.1.0")
    for service in sorted(documents, key=HTTP_SERVICES.index):
        own = _with_own_names(documents[service], service, schemas)
        for path, item in own["paths"].items():
            if path.startswith(PUBLIC_PREFIXES):
                paths.setdefault(path, {}).update(item)
        components = own.get("components", {})
        schemas.update(components.get("schemas", {}))
        schemes.update(components.get("securitySchemes", {}))
    return {
        "openapi": newest,
        "info": {"title": TITLE, "version": version, "description": ABOUT},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": schemas, "securitySchemes": schemes},
    }


def _with_own_names(document: JsonObject, service: str, others: JsonObject) -> JsonObject:
    """Return `document` with new names for schemas that have the name of another one in `taken`.

    `taken`: the schemas of the services before.
    """
    schemas = document.get("components", {}).get("schemas", {})
    clashing = {name for name in schemas if others.get(name, schemas[name]) != schemas[name]}
    if not clashing:
        return document
    names = {name: f"{service}_{name}" for name in clashing}
    references = {_SCHEMA + old: _SCHEMA + new for old, new in names.items()}
    renamed = _rename(document, references)
    assert isinstance(renamed, dict)
    own = renamed["components"]["schemas"]
    renamed["components"]["schemas"] = {names.get(name, name): own[name] for name in own}
    return renamed


def _rename(value: object, references: Mapping[str, str]) -> object:
    match value:
        case dict():
            return {
                key: references.get(inner, inner)
                if key == "$ref" and isinstance(inner, str)
                else _rename(inner, references)
                for key, inner in value.items()
            }
        case list():
            return [_rename(inner, references) for inner in value]
        case _:
            return value
