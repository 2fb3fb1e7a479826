"""Says in a service's OpenAPI document which key each route needs, from the route table."""

from typing import Any

from fastapi import FastAPI

from waybill_shared.contract.problems import Slug
from waybill_shared.contract.routes import scope_for

SCHEME = "api_key"
DESCRIPTION = (
    "A key that `waybill keys new` has made, with the scope that the operation names. Asked for"
    " wherever WAYBILL_API_KEYS_FILE is set; a stack on loopback without it asks for none."
)
REFUSALS = {
    str(status): {
        "description": "; ".join(f"`{s}`: {s.meaning}" for s in Slug if s.status == status)
    }
    for status in (Slug.KEY_REFUSED.status, Slug.SCOPE_MISSING.status)
}


def describe_keys(app: FastAPI) -> None:
    """Let `app` name the security scheme, and each operation its scope."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        document = plain()  # made once and kept, so this is repeated on the same one
        schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
        schemes[SCHEME] = {"type": "http", "scheme": "bearer", "description": DESCRIPTION}
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if scope := scope_for(method.upper(), path):
                    operation["security"] = [{SCHEME: [str(scope)]}]
                    operation["responses"].update(REFUSALS)
        return document

    app.openapi = openapi  # type: ignore[method-assign]
