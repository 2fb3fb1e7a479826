"""Real services that ask for keys: what each key may do, on every route there is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from integration.conftest import StartService
from integration.waiting import eventually
from waybill_shared.access.api_keys import add_key, revoke_key
from waybill_shared.contract.routes import OPERATIONS, ROUTES, VARIABLE, Route, Scope

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
REFUSED = {401, 403}


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """Services on all addresses, one key per scope, and the file."""

    http: httpx2.Client
    urls: Mapping[str, str]
    keys: Mapping[Scope, str]
    file: Path

    def ask(self, method: str, service: str, path: str, key: str = "") -> httpx2.Response:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return self.http.request(method, self.urls[service] + path, headers=headers)


@pytest.fixture(scope="module")
def guarded(
    start_service: StartService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    file = tmp_path_factory.mktemp("api_keys") / "api_keys.json"
    keys = {scope: add_key(file, frozenset({scope}), env="test", now=NOW)[0] for scope in Scope}
    settings = {"WAYBILL_API_KEYS_FILE": str(file), "WAYBILL_HOST": "0.0.0.0"}
    urls = {
        name: start_service(name, **settings) for name in ("ingress", "status", "token_tracker")
    }
    with httpx2.Client() as client:
        yield Guarded(http=client, urls=urls, keys=keys, file=file)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_each_route_takes_the_key_with_its_scope_and_no_other(
    guarded: Guarded, route: Route
) -> None:
    path = VARIABLE.sub("x", route.path)
    for scope, key in guarded.keys.items():
        answer = guarded.ask(route.method, route.service, path, key)
        if scope is route.scope:
            assert answer.status_code not in REFUSED
        else:
            assert answer.status_code == 403
            said = answer.json()
            told = said.get("details", said)  # of Feldera's form, or of ours
            assert told["scope"] == route.scope
            assert told["request_id"]
    assert guarded.ask(route.method, route.service, path).status_code == 401


@pytest.mark.parametrize("path", ["/v1/pipelines/a%2Fstop", "/v1/pipelines/a/stop%0A"])
def test_no_spelling_of_a_path_gets_around_its_scope(guarded: Guarded, path: str) -> None:
    answer = guarded.ask("POST", "ingress", path, guarded.keys[Scope.READ])
    refused = {"scope_missing", "not_found", "method_not_allowed"}
    assert answer.json()["type"].rpartition(":")[2] in refused, "it got as far as the use case"


@pytest.mark.parametrize("service", ["ingress", "status", "token_tracker"])
def test_probes_need_no_key_and_metrics_do(guarded: Guarded, service: str) -> None:
    for path, scope in OPERATIONS.items():
        without = guarded.ask("GET", service, path)
        assert without.status_code == (200 if scope is None else 401), path
        assert guarded.ask("GET", service, path, guarded.keys[Scope.READ]).status_code == 200
    refused = guarded.ask("GET", service, "/metrics", guarded.keys[Scope.WRITE])
    assert refused.status_code == 403
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["type"] == "urn:waybill:problem:scope_missing"


def test_key_is_made_and_revoked_while_services_run(guarded: Guarded) -> None:
    key, kept = add_key(guarded.file, frozenset({Scope.READ}), env="test", now=NOW)

    def answered() -> int:
        return guarded.ask("GET", "status", "/v1/pipelines", key).status_code

    eventually(lambda: answered() == 200)
    assert revoke_key(guarded.file, kept.id)
    eventually(lambda: answered() == 401)
