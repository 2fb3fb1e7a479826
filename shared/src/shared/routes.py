"""The one route table: which service answers which method and path.

The gateway forwards by it, and a test holds the services to it; it serves nothing itself.
"""

import re
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """`path` is a template such as `/v1/tokens/{t}`; a variable stands for one path segment."""

    method: str
    path: str
    service: str


def _routes(service: str, *lines: str) -> tuple[Route, ...]:
    words = (line.split() for line in lines)
    return tuple(Route(method=method, path=path, service=service) for method, path in words)


ROUTES: tuple[Route, ...] = (
    *_routes(
        "ingress",
        "POST /v1/pipelines/{p}/inputs/{i}/records",
        "POST /v1/tokens",
        "PUT /v1/pipelines/{p}",
        "DELETE /v1/pipelines/{p}",
        "POST /v1/pipelines/{p}/start",
        "POST /v1/pipelines/{p}/stop",
        "POST /v1/pipelines/{p}/restart",
    ),
    *_routes(
        "status",
        "GET /v1/tokens/{t}",
        "POST /v1/tokens/query",
        "GET /v1/pipelines",
        "GET /v1/pipelines/{p}",
        "GET /v1/operations/{id}",
    ),
)

HTTP_SERVICES = ("ingress", "status")
"""Those with routes, each with an OpenAPI document of its own."""

SERVICES = ("ingress", "token_tracker", "stage_runner", "status")
"""All, each with /healthz, /readyz, /metrics and /version on its own port."""


def route_for(method: str, path: str) -> Route | None:
    """The route of a request; `path` as sent, still percent-encoded and without a query."""
    method = "GET" if method == "HEAD" else method
    for route, pattern in _patterns():
        if route.method == method and pattern.fullmatch(path):
            return route
    return None


def methods_of(path: str) -> tuple[str, ...]:
    """The methods that some service answers at `path`; none for an unknown path."""
    return tuple(route.method for route, pattern in _patterns() if pattern.fullmatch(path))


@cache
def _patterns() -> tuple[tuple[Route, re.Pattern[str]], ...]:
    return tuple((route, re.compile(_expression(route.path))) for route in ROUTES)


def _expression(template: str) -> str:
    segments = template.split("/")
    return "/".join("[^/]+" if part.startswith("{") else re.escape(part) for part in segments)
