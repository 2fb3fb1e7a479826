"""The one route table: which service answers which method and path, and what a key needs for it.

The gateway forwards by it, and a test holds the services to it; it serves nothing itself.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final


class Scope(StrEnum):
    """What an API key may do. None includes another: a producer's key need not read."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route. `path` is a template such as `/v1/tokens/{t}`, in which a variable replaces one path
    segment.

    `scope` is None for a page, which is public: the data that it shows needs a key.
    """

    method: str
    path: str
    service: str
    scope: Scope | None


PAGE: Final = "page"


def _routes(service: str, *lines: str) -> tuple[Route, ...]:
    words = (line.split() for line in lines)
    return tuple(
        Route(
            method=method,
            path=path,
            service=service,
            scope=None if scope == PAGE else Scope(scope),
        )
        for method, path, scope in words
    )


ROUTES: tuple[Route, ...] = (
    *_routes(
        "ingress",
        "POST /v1/pipelines/{p}/inputs/{i}/records write",
        "POST /v1/pipelines/{p}/dead-letters/replay write",
        "POST /v1/tokens write",
        "POST /v1/watches write",
        "DELETE /v1/watches/{w} write",
        "POST /v1/watches/{w}/redeliver write",
        "POST /v1/validate write",
        "POST /v1/propose write",
        "POST /v1/convert write",
        "PUT /v1/pipelines/{p} admin",
        "DELETE /v1/pipelines/{p} admin",
        "POST /v1/pipelines/{p}/start admin",
        "POST /v1/pipelines/{p}/stop admin",
        "POST /v1/pipelines/{p}/pause admin",
        "POST /v1/pipelines/{p}/resume admin",
        "POST /v1/pipelines/{p}/restart admin",
        "PATCH /v1/pipelines/{p}/offsets admin",
        "DELETE /v1/pipelines/{p}/offsets admin",
        "POST /v1/pipelines/{p}/rescale admin",
        "POST /v1/pipelines/{p}/rename admin",
        "POST /v1/pipelines/{p}/dead-letters admin",
        "POST /v1/pipelines/{p}/inputs/{i}/grow admin",
        "POST /v1/pipelines/{p}/sinks/{s}/maintain admin",
        "GET /v1/pipelines/{p}/logs read",
        "POST /v0/pipelines/{p}/ingress/{t} write",
        "GET /v0/pipelines/{p}/tables/{t}/connectors/{c}/completion_token write",
        "POST /v0/pipelines/{p}/start admin",
        "POST /v0/pipelines/{p}/stop admin",
        "POST /v0/pipelines/{p}/pause admin",
        "POST /v0/pipelines/{p}/resume admin",
        "POST /v0/pipelines/{p}/clear admin",
        "POST /v0/pipelines/{p}/dismiss_error admin",
        "DELETE /v0/pipelines/{p} admin",
    ),
    *_routes(
        "status",
        "GET /v1/tokens/{t} read",
        "POST /v1/tokens/query read",
        "GET /v1/pipelines read",
        "GET /v1/pipelines/{p} read",
        "GET /v1/pipelines/{p}/manifests read",
        "GET /v1/pipelines/{p}/offsets read",
        "GET /v1/pipelines/{p}/events read",
        "GET /v1/pipelines/{p}/runs read",
        "GET /v1/pipelines/{p}/stages/{s}/batches read",
        "GET /v1/pipelines/{p}/dead-letters read",
        "GET /v1/pipelines/{p}/dead-letters/{id} read",
        "GET /v1/operations/{id} read",
        "GET /v1/watches read",
        "GET /v1/watches/{w} read",
        "GET /v1/events read",
        "GET /v1/flow read",
        "GET /v1/key read",
        "GET /v0/config read",
        "GET /v0/cluster_healthz read",
        "GET /v0/pipelines read",
        "GET /v0/pipelines/{p} read",
        "GET /v0/pipelines/{p}/stats read",
        "GET /v0/pipelines/{p}/tables/{t}/connectors/{c}/stats read",
        "GET /v0/pipelines/{p}/completion_status read",
    ),
)
PAGES: Final = _routes(
    "status",
    "GET / page",
    "GET /p/{p} page",
    "GET /p/{p}/dead-letters page",
    "GET /t page",
    "GET /t/{t} page",
    "GET /apply page",
    "GET /console/{v}/{f} page",
)
"""The console, which a browser asks for before it has a key."""
FORWARDED: Final = (*ROUTES, *PAGES)
"""What a gateway passes on."""

TOKEN_ROUTES: Final = frozenset(
    {("GET", "/v1/tokens/{}"), ("GET", "/v0/pipelines/{}/completion_status")}
)
"""Routes at which the token may replace a key, where the settings allow it: only who received the
token can ask.
"""

VARIABLE = re.compile(r"{[^}]*}")

HTTP_SERVICES = ("ingress", "status")
"""Those with routes, each with an OpenAPI document of its own."""

SERVICES = ("ingress", "token_tracker", "stage_runner", "status")
"""All, each with /healthz, /readyz, /metrics and /version on its own port."""


OPERATIONS: Final[Mapping[str, Scope | None]] = {
    "/healthz": None,
    "/readyz": None,
    "/version": None,
    "/metrics": Scope.READ,  # names pipelines and inputs, and says how busy they are
}
"""What every service answers on its own port; None: without a key, for probes."""

HOME: Final = "/"
"""The console in `status`; in `ingress` it leads to the page that shows its OpenAPI document."""


def route_for(method: str, path: str) -> Route | None:
    """Return the route of a request.

    `path` is as sent, still percent-encoded and without a query. OPTIONS, which a browser sends
    before a request of another site, is answered by any service of the path.
    """
    method = "GET" if method == "HEAD" else method
    for route, pattern in _patterns():
        if method in (route.method, "OPTIONS") and pattern.fullmatch(path):
            return route
    return None


def methods_of(path: str) -> tuple[str, ...]:
    """Return the methods that some service answers at `path`; none for an unknown path."""
    return tuple(route.method for route, pattern in _patterns() if pattern.fullmatch(path))


def scope_for(method: str, template: str) -> Scope | None:
    """Return the scope that a key needs for a route of a service, which may name the variables of
    its path differently. None means that no key is needed. Raise LookupError if no table has the
    route, so that nobody may use it.
    """
    if template == HOME:
        return None
    if template in OPERATIONS:
        return OPERATIONS[template]
    return _scopes()[method, VARIABLE.sub("{}", template)]


def token_is_enough(method: str, template: str) -> bool:
    return (method, VARIABLE.sub("{}", template)) in TOKEN_ROUTES


@cache
def _scopes() -> Mapping[tuple[str, str], Scope | None]:
    return {(route.method, VARIABLE.sub("{}", route.path)): route.scope for route in ROUTES}


@cache
def _patterns() -> tuple[tuple[Route, re.Pattern[str]], ...]:
    return tuple((route, re.compile(_expression(route.path))) for route in FORWARDED)


def _expression(template: str) -> str:
    segments = template.split("/")
    return "/".join("[^/]+" if part.startswith("{") else re.escape(part) for part in segments)
