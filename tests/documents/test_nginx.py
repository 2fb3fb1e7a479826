"""nginx forwards as the route table says. The maps are read here as nginx reads them: the first
pattern that fits wins."""

import re

import pytest

from infra.nginx.render import ADDRESSES, CONFIG, LISTEN, RESOLVER, render
from waybill_shared.contract.routes import (
    FORWARDED,
    HTTP_SERVICES,
    OPERATIONS,
    SERVICES,
    methods_of,
    route_for,
)

TEXT = CONFIG.read_text(encoding="utf-8")
MAP = re.compile(r'^map (?:"[^"]*"|\S+) \$(\w+) {\n(.*?)^}', re.MULTILINE | re.DOTALL)
LINE = re.compile(r'^ +("[^"]*"|\S+) ("[^"]*"|\S+);$', re.MULTILINE)
MAPS = {name: LINE.findall(body) for name, body in MAP.findall(TEXT)}
PATHS = (
    *(re.sub(r"[{}]", "", route.path) for route in FORWARDED),
    "/v1/pipelines/a%2Fb",
    "/v1/pipelines/a/stop%0A",
    "/v1/pipelines/orders/",
    "/v1/tokens/",
    "/v1/tokens/a/b",
    "/v1/tokensx",
    "/v1/nothing",
    "/",
)


def looked_up(name: str, value: str) -> str:
    for key, found in MAPS[name]:
        pattern = key.strip('"')
        fits = re.search(pattern[1:], value) if pattern.startswith("~") else pattern == value
        if fits and key != "default":
            return str(found).strip('"')
    return ""


def test_committed_file_is_the_rendered_one() -> None:
    made = render(ADDRESSES, listen=LISTEN, resolver=RESOLVER)
    assert made == TEXT, "run `python -m infra.nginx.render`"


@pytest.mark.parametrize("query", ["", "?", "?wait=30&x=/v1/tokens"])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_method_and_path_choose_the_service_of_the_table(
    method: str, path: str, query: str
) -> None:
    route = route_for(method, path)
    chosen = looked_up("waybill_service", f"{method} {path}{query}")
    assert chosen == (route.service if route else "")


@pytest.mark.parametrize("path", PATHS)
def test_path_names_its_methods(path: str) -> None:
    assert looked_up("waybill_methods", path) == ", ".join(methods_of(path))


def test_every_service_that_is_chosen_has_an_address() -> None:
    for service in HTTP_SERVICES:
        assert looked_up("waybill_address", service) == ADDRESSES[service]


@pytest.mark.parametrize("service", SERVICES)
def test_pages_for_operators_are_those_that_services_have(service: str) -> None:
    (location,) = re.findall(r"location ~ (\S*healthz\S*) {", TEXT)
    for page in OPERATIONS:
        path = f"{page}/{service}"
        assert re.search(location, path)
        assert looked_up("waybill_operated", path) == f"{ADDRESSES[service]}{page}"


def test_whole_is_ready_when_each_service_is() -> None:
    assert re.findall(r"auth_request /readyz/(\w+);", TEXT) == list(SERVICES)
    for page in ("/readyz", "/version"):
        assert set(re.findall(rf'include virtual="{page}/(\w+)"', TEXT)) == set(SERVICES)
    operated = dict(MAP.findall(TEXT))["waybill_operated"]
    assert "volatile;" in operated, "else the first service's answer stands for all of them"
