"""The gateway's route table and the services it forwards to say the same, to those who may ask."""

import re

import httpx2

from serving import ask
from waybill_local.stack import StackState
from waybill_shared.contract.routes import ROUTES, SERVICES

PAGE = ("Host: evil.example:8080", "Origin: http://evil.example:8080")


def test_every_route_is_one_of_a_service_and_the_other_way_round(stack: StackState) -> None:
    paths = httpx2.get(f"{stack.url}/openapi.json").json()["paths"]
    served = {
        (method.upper(), _shape(path))
        for path, methods in paths.items()
        for method in methods
        if path.startswith(("/v0/", "/v1/"))
    }

    assert served == {(route.method, _shape(route.path)) for route in ROUTES}


def test_no_process_answers_a_web_page_with_a_name_that_leads_here(stack: StackState) -> None:
    ports = {each.name: int(each.address.rpartition(":")[2]) for each in stack.processes}
    write = "POST /v1/pipelines/orders/inputs/orders/records HTTP/1.1"
    for name in ("gateway", *SERVICES):
        assert ask(ports[name], "GET /healthz HTTP/1.1", f"Host: localhost:{ports[name]}")[0] == 200
        assert ask(ports[name], "GET /healthz HTTP/1.1", PAGE[0])[0] == 421, name
    for name in ("gateway", "ingress"):
        assert ask(ports[name], write, *PAGE, body=b'{"order_id": 1}')[0] == 421, name


def _shape(path: str) -> str:
    """Services call their variables as they like."""
    return re.sub(r"{[^}]*}", "{}", path)
