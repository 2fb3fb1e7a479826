"""The gateway's route table and the services it forwards to say the same."""

import re

import httpx2

from waybill_local.stack import StackState
from waybill_shared.contract.routes import ROUTES


def test_every_route_is_one_of_a_service_and_the_other_way_round(stack: StackState) -> None:
    paths = httpx2.get(f"{stack.url}/openapi.json").json()["paths"]
    served = {
        (method.upper(), _shape(path))
        for path, methods in paths.items()
        for method in methods
        if path.startswith(("/v0/", "/v1/"))
    }

    assert served == {(route.method, _shape(route.path)) for route in ROUTES}


def _shape(path: str) -> str:
    """Services call their variables as they like."""
    return re.sub(r"{[^}]*}", "{}", path)
