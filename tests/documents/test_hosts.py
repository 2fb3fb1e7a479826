"""Without API keys nothing answers to the name of a stranger (DNS rebinding): no route of the
table, no page, no stream and no probe, in the gateway and in each service."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from documents.test_scopes import routers
from local_client import local_client
from serving import HOST, ask, serve
from waybill_local.gateway import create_app as create_gateway
from waybill_local.ports import pick
from waybill_local.proxy import Upstreams
from waybill_shared.access.api_keys import add_key
from waybill_shared.access.authentication import KeysInForce
from waybill_shared.contract.hosts import LOOPBACK_ONLY, AllowedHosts, read_allowed_hosts
from waybill_shared.contract.routes import (
    FORWARDED,
    HTTP_SERVICES,
    OPERATIONS,
    SERVICES,
    VARIABLE,
    Route,
    Scope,
)
from waybill_shared.http import asyncapi, feldera
from waybill_shared.http.app import create_app
from waybill_shared.http.monitor import serve_monitor
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.health import Health

EVIL = "evil.example:8080"
OWN_PAGES = (*OPERATIONS, "/openapi.json", "/docs", asyncapi.PATH, "/", "/nothing", "/v0/nothing")
OF_THE_GATEWAY = (*OWN_PAGES, *(f"/metrics/{service}" for service in SERVICES))
FORMS: tuple[dict[str, str], ...] = (
    {},
    {"accept": "text/event-stream"},
    {"origin": f"http://{EVIL}"},
)
WORKERS = tuple(service for service in SERVICES if service not in HTTP_SERVICES)
ALLOWED = (
    "127.0.0.1",
    "127.0.0.1:8080",
    "127.8.8.8:1",
    "localhost:3000",
    "LocalHost",
    "localhost.:8080",
    "127.0.0.1.",
    "[::1]",
    "[::1]:8080",
    "[0:0:0:0:0:0:0:1]:8080",
)
REFUSED = (
    "",
    EVIL,
    "127.0.0.1.evil.example",
    "localhost.evil.example:8080",
    "evil.example:127.0.0.1",
    "evil.example@127.0.0.1",
    "127.0.0.1@evil.example",
    "127.0.0.1, evil.example",
    "127.0.0.1 evil.example",
    "127.0.0.1/evil.example",
    "0.0.0.0:8080",
    "192.0.2.1",
    "[::]:8080",
    "[::ffff:192.0.2.1]",
    "[fe80::1]",
    "[::1",
    "::1",
    "[evil.example]",
    "waybill",
    "\xe9vil.example",
)
NAMED = read_allowed_hosts(
    ["waybill", "token_tracker", "Waybill.Example", "192.0.2.1", "[2001:db8::1]"]
)
OF_THE_SETTING = (
    "waybill:8080",
    "token_tracker:8083",
    "WAYBILL.example.",
    "192.0.2.1:80",
    "[2001:DB8:0:0:0:0:0:1]:8080",
)

Serving = Callable[[AllowedHosts], int]


@pytest.fixture(params=["gateway", *SERVICES])
def serving(request: pytest.FixtureRequest) -> Iterator[Serving]:
    """Serves that one as its process does, and returns its port."""
    name = str(request.param)
    with ExitStack() as stack:

        def start(hosts: AllowedHosts) -> int:
            if name in WORKERS:
                port = pick({name: 0})[name]
                stack.enter_context(serve_monitor(HOST, port, name, Health(), hosts=hosts))
                return port
            app = (
                create_gateway(Upstreams(ports=pick(dict.fromkeys(SERVICES, 0))), hosts)
                if name == "gateway"
                else create_app(name, routers(name), Health(), hosts=hosts)
            )
            return stack.enter_context(serve(app))

        yield start


def slug_of(body: bytes) -> str:
    said = json.loads(body)
    return str(said.get("type", said.get("error_code"))).rpartition(":")[2]


def all_requests(service: str) -> Iterator[tuple[str, str]]:
    """Every route, and HEAD, OPTIONS and a wait of it."""
    for route in FORWARDED:
        if service in ("gateway", route.service):
            path = VARIABLE.sub("x", route.path)
            yield from ((method, path) for method in methods_for(route))
            yield route.method, f"{path}?wait=30&watch=true"
    yield from (("GET", path) for path in (OF_THE_GATEWAY if service == "gateway" else OWN_PAGES))


def methods_for(route: Route) -> Iterator[str]:
    yield route.method
    yield "OPTIONS"
    if route.method == "GET":
        yield "HEAD"


@pytest.mark.parametrize("service", ["gateway", *HTTP_SERVICES])
def test_no_route_answers_to_the_name_of_a_stranger(service: str) -> None:
    app = (
        create_gateway(Upstreams(ports=dict.fromkeys(SERVICES, 1)))
        if service == "gateway"
        else create_app(service, routers(service), Health(), origins=("https://shop.example",))
    )
    with local_client(app) as client:
        for method, path in all_requests(service):
            for headers in FORMS:
                answer = client.request(method, path, headers={"host": EVIL, **headers})
                assert answer.status_code == 421, (method, path)
                assert "access-control-allow-origin" not in answer.headers
                if method != "HEAD":
                    foreign = path.startswith(feldera.PREFIX)
                    assert slug_of(answer.content) == ("HostRefused" if foreign else "host_refused")
                    assert "WAYBILL_ALLOWED_HOSTS" in answer.text


@pytest.mark.parametrize("path", [*OPERATIONS, "/", "/v1/tokens"])
@pytest.mark.parametrize("service", WORKERS)
def test_no_page_of_a_worker_answers_to_the_name_of_a_stranger(service: str, path: str) -> None:
    port = pick({service: 0})[service]
    with serve_monitor(HOST, port, service, Health()):
        status, body = ask(port, f"GET {path} HTTP/1.1", f"Host: {EVIL}")
    assert (status, slug_of(body)) == (421, "host_refused")
    assert "WAYBILL_ALLOWED_HOSTS" in json.loads(body)["hint"]


def test_one_header_names_one_host_of_this_machine(serving: Serving) -> None:
    port = serving(LOOPBACK_ONLY)

    def status(*lines: str, target: str = "/healthz", version: str = "HTTP/1.1") -> int:
        return ask(port, f"GET {target} {version}", *lines)[0]

    for host in ALLOWED:
        assert status(f"Host: {host}") == 200, host
        assert status(f"hOST: {host}", "X-Forwarded-Host: evil.example") == 200, host
    for host in REFUSED:
        assert status(f"Host: {host}") == 421, host
        assert (
            status(f"Host: {host}", "X-Forwarded-Host: 127.0.0.1", "Forwarded: host=localhost")
            == 421
        )
    assert status(f"Host: {HOST}", f"Host: {EVIL}") == 421
    assert status(f"Host: {EVIL}", f"Host: {HOST}") == 421
    assert status(f"Host: {HOST}", f"Host: {HOST}") == 421
    assert status(version="HTTP/1.0") == 421
    # What a browser sends to a proxy: both name the same host.
    assert status(f"Host: {EVIL}", target=f"http://{EVIL}/healthz") == 421
    assert status(f"Host: {EVIL}", "Upgrade: websocket", "Connection: Upgrade") == 421


def test_a_setting_names_hosts_of_containers_and_proxies(serving: Serving) -> None:
    port = serving(NAMED)
    for host in (*ALLOWED, *OF_THE_SETTING):
        assert ask(port, "GET /healthz HTTP/1.1", f"Host: {host}")[0] == 200, host
    for host in (EVIL, "waybill.evil.example", "token-tracker", "192.0.2.2"):
        assert ask(port, "GET /healthz HTTP/1.1", f"Host: {host}")[0] == 421, host


@pytest.mark.parametrize("service", HTTP_SERVICES)
def test_where_there_are_keys_they_decide(service: str, tmp_path: Path) -> None:
    file = tmp_path / "api_keys.json"
    key, _ = add_key(file, frozenset(Scope), env="test", now=datetime(2026, 11, 21, tzinfo=UTC))
    app = create_app(service, routers(service), Health(), keys=KeysInForce(file, SystemClock()))
    client = TestClient(app, base_url=f"http://{EVIL}")
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": f"Bearer {key}"}).status_code == 200
