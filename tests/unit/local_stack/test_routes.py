"""The route table: who answers what."""

import pytest

from waybill_shared.contract.routes import ROUTES, SERVICES, methods_of, route_for


@pytest.mark.parametrize(
    ("method", "path", "service"),
    [
        ("POST", "/v1/pipelines/orders/inputs/orders/records", "ingress"),
        ("POST", "/v1/tokens", "ingress"),
        ("PUT", "/v1/pipelines/orders", "ingress"),
        ("POST", "/v1/pipelines/orders/restart", "ingress"),
        ("GET", "/v1/pipelines/orders", "status"),
        ("HEAD", "/v1/pipelines/orders", "status"),
        ("GET", "/v1/pipelines", "status"),
        ("POST", "/v1/tokens/query", "status"),
        ("GET", "/v1/tokens/wb1.abc-_", "status"),
        ("GET", "/v1/pipelines/a%2Fb", "status"),
        ("GET", "/v1/operations/1", "status"),
        ("PATCH", "/v1/pipelines/orders", None),
        ("GET", "/v1/tokens/", None),
        ("GET", "/v1/tokens/a/b", None),
        ("GET", "/v1/tokensx", None),
        ("GET", "/v1/pipelines/orders/", None),
        ("GET", "/", "status"),
    ],
)
def test_method_and_path_choose_the_service(method: str, path: str, service: str | None) -> None:
    route = route_for(method, path)
    assert (route.service if route else None) == service


def test_known_path_names_its_methods() -> None:
    assert methods_of("/v1/pipelines/orders") == ("PUT", "DELETE", "GET")
    assert methods_of("/v1/nothing") == ()


def test_table_has_no_doubles_and_finds_each_of_its_routes() -> None:
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)
    for route in ROUTES:
        assert route.service in SERVICES
        assert route_for(route.method, route.path.replace("{", "").replace("}", "")) == route
