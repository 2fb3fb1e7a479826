"""What is refused is said in the dialect of the path, whoever refused it."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from fastapi.testclient import TestClient
from starlette.types import Message

from local_client import local_client
from waybill_shared.contract.errors import (
    InvalidMessage,
    Problem,
    Refusal,
    Retryable,
    TokenExpired,
    TokenRefused,
    UserError,
)
from waybill_shared.contract.hosts import LOOPBACK_ONLY
from waybill_shared.contract.problems import PROBLEM_JSON, Slug
from waybill_shared.http import dialects
from waybill_shared.http.app import create_app, read_body
from waybill_shared.http.dialects import DIALECTS, Dialect
from waybill_shared.http.monitor import _Face
from waybill_shared.process.health import Health

FOREIGN = "/foreign"
RAISED: dict[str, tuple[Exception, Slug]] = {
    "refusal": (Refusal(Slug.INPUT_NOT_READY, "x", known=["a"]), Slug.INPUT_NOT_READY),
    "user": (UserError([Problem(message="x", line=3, hint="y")]), Slug.INVALID),
    "world": (Retryable("x"), Slug.NOT_AVAILABLE_NOW),
    "forged": (TokenRefused(), Slug.TOKEN_NOT_FOUND),
    "old": (TokenExpired(), Slug.TOKEN_EXPIRED),
    "ours": (InvalidMessage("x"), Slug.INTERNAL),
    "fault": (RuntimeError("x"), Slug.INTERNAL),
}


def router(prefix: str) -> APIRouter:
    made = APIRouter(prefix=prefix)

    @made.get("/raised/{name}")
    async def get_raised(name: str) -> Response:
        raise RAISED[name][0]

    @made.post("/body")
    async def post_body(request: Request, number: int = 0) -> Response:
        return Response(await read_body(request, bytes_max=3))

    return made


def render(refusal: Refusal, _: str, request_id: str) -> Response:
    """All is well, as some interfaces have it, but for the body."""
    return JSONResponse({"error": refusal.slug, "id": request_id}, status_code=200)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    foreign = Dialect(prefix=f"{FOREIGN}/", render=render)
    monkeypatch.setattr(dialects, "DIALECTS", (foreign, *DIALECTS))
    app = create_app("status", [router("/v1"), router(FOREIGN)], Health())
    with local_client(app, raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize("name", RAISED)
def test_every_error_is_a_problem_with_its_slug_status_and_request(
    client: TestClient, name: str
) -> None:
    slug = RAISED[name][1]
    answer = client.get(f"/v1/raised/{name}")
    assert (answer.status_code, answer.headers["content-type"]) == (slug.status, PROBLEM_JSON)
    body = answer.json()
    assert (body["type"], body["status"]) == (f"urn:waybill:problem:{slug}", slug.status)
    assert body["title"] == slug.replace("_", " ")
    assert body["request_id"] == answer.headers["x-request-id"]
    assert answer.headers.get("retry-after") == ("1" if slug.status == 503 else None)


def test_what_a_refusal_tells_programs_stands_beside_its_detail(client: TestClient) -> None:
    told = client.get("/v1/raised/refusal", headers={"X-Request-Id": "mine"}).json()
    assert told == {
        "type": "urn:waybill:problem:input_not_ready",
        "title": "input not ready",
        "status": 503,
        "detail": "x",
        "known": ["a"],
        "request_id": "mine",
    }
    (error,) = client.get("/v1/raised/user").json()["errors"]
    assert error == {"message": "x", "line": 3, "column": None, "path": "", "hint": "y"}


@pytest.mark.parametrize(
    ("method", "path", "slug"),
    [
        *(("GET", f"/raised/{name}", slug) for name, (_, slug) in RAISED.items()),
        ("GET", "/nothing", Slug.NOT_FOUND),
        ("DELETE", "/body", Slug.METHOD_NOT_ALLOWED),
        ("POST", "/body?number=one", Slug.INVALID),
        ("POST", "/body", Slug.BODY_TOO_LARGE),
    ],
)
def test_foreign_paths_get_the_foreign_form_and_ours_get_ours(
    client: TestClient, method: str, path: str, slug: Slug
) -> None:
    ours = client.request(method, f"/v1{path}", content=b"1234")
    assert (ours.status_code, ours.json()["type"]) == (slug.status, f"urn:waybill:problem:{slug}")
    theirs = client.request(method, f"{FOREIGN}{path}", content=b"1234")
    own_id = theirs.headers["x-request-id"]
    assert (theirs.status_code, theirs.json()) == (200, {"error": slug, "id": own_id})


def test_body_that_its_sender_left_is_no_fault_of_ours(client: TestClient) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def post() -> None:
        host = (b"host", b"127.0.0.1")
        scope = {"type": "http", "method": "POST", "path": "/v1/body", "headers": [host]}
        await client.app({**scope, "query_string": b""}, receive, send)

    asyncio.run(post())
    assert sent[0]["status"] == Slug.REQUEST_CUT_OFF.status


def test_worker_says_in_our_own_form_that_it_serves_no_more_than_that() -> None:
    face = _Face(service="token_tracker", health=Health(), keys=None, hosts=LOOPBACK_ONLY)
    status, kind, body = face.answer("/v1/tokens", "", ["127.0.0.1"])
    assert (status, kind) == (404, PROBLEM_JSON)
    assert json.loads(body)["type"] == "urn:waybill:problem:not_found"
