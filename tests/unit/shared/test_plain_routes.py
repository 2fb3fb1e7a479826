"""Routes that FastAPI only describes: to callers they are as all others."""

from collections.abc import Iterator

import pytest
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from local_client import local_client
from scraping import read_scrape
from waybill_shared.contract.errors import Refusal, Retryable
from waybill_shared.contract.problems import Slug
from waybill_shared.http.app import create_app
from waybill_shared.http.plain_routes import PlainRoute
from waybill_shared.http.request_ids import request_id
from waybill_shared.process.health import Health


def router(kind: type[APIRoute]) -> APIRouter:
    made = APIRouter(prefix="/v1", route_class=kind)

    @made.post("/things/{thing}/parts/{part}", summary="a thing's part")
    async def take(request: Request, thing: str, part: str) -> Response:
        if part == "bad":
            raise Refusal(Slug.INVALID, f"{thing} has no such part")
        if part == "later":
            raise Retryable("not now")
        body = (await request.body()).decode()
        return JSONResponse([thing, part, body, request_id(request)])

    return made


@pytest.fixture(params=[APIRoute, PlainRoute])
def client(request: pytest.FixtureRequest) -> Iterator[TestClient]:
    app = create_app("ingress", [router(request.param)], Health())
    with local_client(app) as client:
        yield client


def test_endpoint_gets_the_request_and_the_strings_of_the_path(client: TestClient) -> None:
    answer = client.post("/v1/things/a%20b/parts/ü", content="x", headers={"X-Request-Id": "mine"})
    assert answer.json() == ["a b", "ü", "x", "mine"]
    assert answer.headers["x-request-id"] == "mine"


def test_errors_are_problems(client: TestClient) -> None:
    for part, status, slug in (("bad", 422, "invalid"), ("later", 503, "not_available_now")):
        answer = client.post(f"/v1/things/a/parts/{part}")
        assert (answer.status_code, answer.json()["type"]) == (
            status,
            f"urn:waybill:problem:{slug}",
        )


def test_other_methods_and_paths_are_refused(client: TestClient) -> None:
    assert client.get("/v1/things/a/parts/b").status_code == 405
    assert client.post("/v1/things/a/parts").status_code == 404


def test_requests_are_counted_by_the_template(client: TestClient) -> None:
    labels = {"route": "/v1/things/{thing}/parts/{part}", "method": "POST", "status": "200"}

    def counted() -> float:
        scrape = read_scrape(client.get("/metrics").text)
        return scrape.value("waybill_http_requests_total", **labels) or 0

    before = counted()
    client.post("/v1/things/a/parts/b")
    assert counted() == before + 1


def test_what_fastapi_would_have_to_resolve_is_no_plain_route() -> None:
    made = APIRouter(route_class=PlainRoute)

    @made.get("/things/{thing}")
    async def take(request: Request, thing: str, wait: float = 0) -> Response:
        return Response()

    with pytest.raises(AssertionError, match="no plain route"):
        create_app("ingress", [made], Health())
