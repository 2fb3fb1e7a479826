"""No route without a scope, in the table, in the services, and in what is said of them."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient

import waybill_ingress.adapters.http.feldera as foreign_of_ingress
import waybill_ingress.adapters.http.growth as of_growth
import waybill_ingress.adapters.http.logs as of_logs
import waybill_ingress.adapters.http.maintain as of_tables
import waybill_ingress.adapters.http.manifests as of_manifests
import waybill_ingress.adapters.http.offsets as of_offsets
import waybill_ingress.adapters.http.pipelines as of_changes
import waybill_ingress.adapters.http.records as of_ingress
import waybill_ingress.adapters.http.renames as of_names
import waybill_ingress.adapters.http.replays as of_replays
import waybill_ingress.adapters.http.watches as of_watches
import waybill_status.adapters.http.batches as of_batches
import waybill_status.adapters.http.console as of_pages
import waybill_status.adapters.http.dead_letters as of_dead_letters
import waybill_status.adapters.http.feldera as foreign_of_status
import waybill_status.adapters.http.flow as of_flow
import waybill_status.adapters.http.operations as of_operations
import waybill_status.adapters.http.pipelines as of_pipelines
import waybill_status.adapters.http.runs as of_runs
import waybill_status.adapters.http.tokens as of_status
import waybill_status.adapters.http.watches as told_by_status
from waybill_shared.access.api_keys import add_key
from waybill_shared.access.authentication import KeysInForce
from waybill_shared.contract.routes import (
    HOME,
    OPERATIONS,
    PAGES,
    ROUTES,
    VARIABLE,
    Scope,
    scope_for,
)
from waybill_shared.http.app import create_app
from waybill_shared.http.asyncapi import document
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health

NOBODY: Any = None  # no request of these tests gets as far as a use case


def routers(service: str) -> list[APIRouter]:
    if service == "status":
        return [
            of_status.tokens_router(NOBODY, query_bytes_max=1),
            of_pipelines.pipelines_router(NOBODY),
            of_pipelines.offsets_router(NOBODY),
            of_pipelines.events_router(NOBODY, NOBODY, caught_up=bool),
            of_runs.runs_router(NOBODY, NOBODY, caught_up=bool),
            of_batches.batches_router(NOBODY),
            of_dead_letters.dead_letters_router(NOBODY),
            of_flow.flow_router(NOBODY),
            of_operations.key_router(),
            of_operations.operations_router(NOBODY),
            told_by_status.watches_router(NOBODY, NOBODY, NOBODY),
            told_by_status.asyncapi_router(),
            told_by_status.event_log_router(NOBODY, NOBODY),
            foreign_of_status.feldera_router(NOBODY),
            foreign_of_status.feldera_stats_router(NOBODY, NOBODY),
            foreign_of_status.feldera_tokens_router(NOBODY, NOBODY, hold_s=0),
            of_pages.console_router(),
        ]
    return [
        of_ingress.records_router(NOBODY, NOBODY, NOBODY),
        of_ingress.tokens_router(NOBODY, NOBODY, NOBODY, NOBODY),
        of_changes.pipelines_router(NOBODY, NOBODY, NOBODY, NOBODY),
        of_names.renames_router(NOBODY, NOBODY, NOBODY, NOBODY),
        of_manifests.validate_router(NOBODY, NOBODY),
        of_tables.maintain_router(NOBODY, NOBODY, NOBODY),
        of_offsets.offsets_router(NOBODY, NOBODY, NOBODY),
        of_logs.logs_router(NOBODY, NOBODY),
        of_growth.growth_router(NOBODY),
        of_replays.replays_router(NOBODY, NOBODY),
        of_manifests.propose_router(NOBODY),
        of_manifests.convert_router(),
        of_watches.watches_router(NOBODY, NOBODY),
        foreign_of_ingress.feldera_router(NOBODY, NOBODY, NOBODY, NOBODY, limits=NOBODY),
        foreign_of_ingress.feldera_connectors_router(NOBODY, NOBODY),
        foreign_of_ingress.feldera_commands_router(NOBODY, NOBODY, NOBODY, NOBODY),
    ]


WRITES = (
    "/records",
    "/ingress/{t}",
    "/replay",
    "/tokens",
    "/watches",
    "/watches/{w}",
    "/watches/{w}/redeliver",
    "/validate",
    "/propose",
    "/convert",
)


@pytest.fixture(params=["ingress", "status"])
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def app(service: str, tmp_path: Path) -> FastAPI:
    file = tmp_path / "api_keys.json"
    add_key(file, frozenset(Scope), env="test", now=datetime(2026, 11, 21, tzinfo=UTC))
    keys = KeysInForce(file, SystemClock())
    return create_app(service, routers(service), Health(), keys=keys)


def test_openapi_names_the_scope_of_every_operation_and_the_table_has_them_all(
    app: FastAPI, service: str
) -> None:
    document = app.openapi()
    assert document["components"]["securitySchemes"]["api_key"]["scheme"] == "bearer"
    named = {
        (method.upper(), VARIABLE.sub("{}", path)): operation.get("security")
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    in_table = {
        (route.method, VARIABLE.sub("{}", route.path)): [{"api_key": [str(route.scope)]}]
        for route in ROUTES
        if route.service == service
    }
    home: dict[str, Scope | None] = {HOME: None} if service == "ingress" else {}
    of_all = {
        ("GET", path): [{"api_key": [str(scope)]}] if scope else None
        for path, scope in {**home, **OPERATIONS}.items()
    }
    assert named == in_table | of_all


def test_every_route_of_the_table_is_closed_without_a_key(app: FastAPI, service: str) -> None:
    client = TestClient(app)
    for route in ROUTES:
        if route.service == service:
            answer = client.request(route.method, VARIABLE.sub("x", route.path))
            assert answer.status_code == 401, route
            said = answer.json()
            assert said.get("type", said.get("error_code")) in (
                "urn:waybill:problem:key_missing",
                "KeyMissing",
            )
            assert answer.headers["www-authenticate"] == 'Bearer realm="waybill"'
    assert client.get("/metrics").status_code == 401


def test_what_is_open_is_what_probes_and_readers_of_the_interface_need(app: FastAPI) -> None:
    client = TestClient(app)
    for path in (HOME, "/healthz", "/readyz", "/version", "/openapi.json", "/docs"):
        assert client.get(path).status_code == 200, path


def test_the_description_of_events_is_open_as_that_of_http_is(app: FastAPI, service: str) -> None:
    answer = TestClient(app).get("/asyncapi.json")
    if service == "status":
        assert (answer.status_code, answer.json()) == (200, document())
    else:
        assert answer.status_code == 404


def test_route_that_no_table_has_is_closed_to_every_key() -> None:
    with pytest.raises(LookupError):
        scope_for("GET", "/v1/secrets")


def test_only_authentication_knows_whose_callers_without_a_tenant_are() -> None:
    root = Path(__file__).parents[2]
    sources = [*root.glob("shared/src/**/*.py"), *root.glob("services/*/src/**/*.py")]
    naming = [path.name for path in sources if "DEFAULT_TENANT" in path.read_text("utf-8")]
    assert naming == ["authentication.py"]


def test_reading_changes_nothing_and_only_admins_change_pipelines() -> None:
    for route in ROUTES:
        if route.path.endswith("/completion_token"):
            assert route.scope is Scope.WRITE, route  # as for all new tokens
        elif route.method == "GET" or route.path.endswith("/query"):
            assert route.scope is Scope.READ, route
        elif route.path.endswith(WRITES):
            assert route.scope is Scope.WRITE, route
        else:
            assert route.scope is Scope.ADMIN, route


def test_the_page_for_operators_has_every_route_with_its_scope() -> None:
    page = (Path(__file__).parents[2] / "docs/security.md").read_text("utf-8")
    said = {
        (route, scope)
        for scope, routes in re.findall(
            r"^\| (`\w+`|no key) \|.*\| ([^|]+) \|$", page, re.MULTILINE
        )
        for route in re.findall(r"`([A-Z]+ /\S*)`", routes)
    }
    routes = {f"{each.method} {each.path}": each.scope for each in (*ROUTES, *PAGES)}
    operations = {f"GET {path}": scope for path, scope in OPERATIONS.items()}
    assert said == {
        (route, f"`{scope}`" if scope else "no key")
        for route, scope in (routes | operations).items()
    }
