"""What becomes of problems, of silence, and of answers that are not Waybill's."""

import socket
from collections.abc import Iterator

import httpx2
import pytest

from unit.waybill.conftest import make_fault
from waybill import (
    Client,
    Conflict,
    Expired,
    Invalid,
    NoAnswer,
    NotAllowed,
    NotFound,
    NotReady,
    ProblemError,
    TooLarge,
    UnexpectedAnswer,
    Unreachable,
)
from waybill.testing import Response, ScriptedServer, problem

PATH = "/v1/pipelines/orders"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Invalid),
        (401, NotAllowed),
        (403, NotAllowed),
        (404, NotFound),
        (409, Conflict),
        (410, Expired),
        (413, TooLarge),
        (422, Invalid),
        (429, NotReady),
        (500, ProblemError),
        (502, NotReady),
        (503, NotReady),
        (504, NotReady),
    ],
)
def test_each_problem_has_its_own_error(
    server: ScriptedServer, client: Client, status: int, kind: type[ProblemError]
) -> None:
    server.answer("GET", PATH, problem(status, "not like this", hint="like that"))
    with pytest.raises(ProblemError) as raised:
        client.pipeline("orders")
    error = raised.value
    assert type(error) is kind
    assert (error.status, error.detail, error.hint) == (status, "not like this", "like that")
    assert str(error) == "not like this (like that)"
    assert error.type == f"urn:waybill:problem:{status}"


def test_a_problem_carries_retry_after_request_id_and_all_members(
    server: ScriptedServer, client: Client
) -> None:
    reply = Response(
        status=503,
        json={"title": "not known yet", "allowed": ["stop"]},
        headers={"Retry-After": "2.5", "X-Request-Id": "r-7"},
    )
    server.answer("GET", PATH, reply)
    with pytest.raises(NotReady) as raised:
        client.pipeline("orders")
    assert raised.value.retry_after_s == 2.5
    assert raised.value.request_id == "r-7"
    assert raised.value.members["allowed"] == ["stop"]
    assert str(raised.value) == "not known yet"


def test_an_invalid_manifest_names_line_and_column(server: ScriptedServer, client: Client) -> None:
    fault = {"message": "unknown key", "line": 3, "column": 1, "path": "stages", "hint": None}
    server.answer("PUT", PATH, problem(422, "the manifest is invalid", errors=[fault]))
    with pytest.raises(Invalid) as raised:
        client.apply("name: orders")
    (error,) = raised.value.errors
    assert (error.line, error.column, error.path) == (3, 1, "stages")


@pytest.fixture
def free_url() -> Iterator[str]:
    """A URL where nobody listens: the port is bound, not listened on."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{holder.getsockname()[1]}"


def test_nobody_listening_names_the_url_and_waybill_up(free_url: str) -> None:
    with Client(free_url) as client, pytest.raises(Unreachable) as raised:
        client.pipelines()
    assert f"nothing listens at {free_url} (as given)" in str(raised.value)
    assert "`waybill up`" in str(raised.value)
    assert raised.value.url == free_url


def test_a_connection_cut_in_the_answer_is_told_as_not_known(
    server: ScriptedServer, client: Client
) -> None:
    server.answer("POST", f"{PATH}/stop", Response(json={"operation": "o"}, cut=True))
    with pytest.raises(Unreachable, match="whether the request was carried out is not known"):
        client.stop("orders")
    assert len(server.requests) == 1, "what changes something is never repeated"


def test_no_answer_in_time_says_so() -> None:
    def silent(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("silence", request=request)

    transport = httpx2.MockTransport(silent)
    with (
        Client("http://waybill", timeout_s=7, transport=transport) as client,
        pytest.raises(NoAnswer, match=r"no answer from http://waybill .* within 7 s"),
    ):
        client.pipelines()


@pytest.mark.parametrize("status", [200, 404])
def test_another_program_on_the_port_is_told_as_such(
    server: ScriptedServer, client: Client, status: int
) -> None:
    page = Response(status=status, content=b"<html>", content_type="text/html")
    server.answer("GET", "/v1/pipelines", page)
    with pytest.raises(UnexpectedAnswer, match=r"text/html.*another program.*WAYBILL_URL"):
        client.pipelines()


def test_a_gateway_page_means_not_ready(server: ScriptedServer, client: Client) -> None:
    server.answer("GET", "/v1/pipelines", Response(status=502, content=b"<html>"))
    with pytest.raises(NotReady, match="gateway got no answer from the service"):
        client.pipelines()


def test_a_missing_field_is_named(server: ScriptedServer, client: Client) -> None:
    server.answer("GET", PATH, Response(json={"name": "orders"}))
    with pytest.raises(UnexpectedAnswer, match=r"GET /v1/pipelines/orders\.phase .* missing"):
        client.pipeline("orders")


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8080", "ftp://127.0.0.1", "http://[broken", "http://a:port"]
)
def test_a_url_that_is_none_is_told(url: str) -> None:
    with pytest.raises(Unreachable, match="http://"), Client(url) as client:
        client.pipelines()


def test_a_proxy_of_the_environment_is_not_asked_for_loopback(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, free_url: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", free_url)
    server.answer("GET", "/v1/pipelines", Response(json={"items": []}))
    with Client(server.url) as client:
        assert client.pipelines() == ()


FAULT = make_fault(line=14, column=72)
PLACED = (
    "line 14, column 72, stages.0.steps.0.sql: no view is called `ordrs` (did you mean 'orders'?)"
)
NO_PLACE = {"message": "it is too long", "line": None, "column": None, "path": "", "hint": ""}


@pytest.mark.parametrize(
    ("detail", "members", "told"),
    [
        ("no view is called `ordrs`", {"errors": [FAULT]}, PLACED),
        ("the manifest is wrong", {"errors": [FAULT]}, f"the manifest is wrong: {PLACED}"),
        ("it is too long", {"errors": [NO_PLACE]}, "it is too long"),
        (
            "no view is called `ordrs`; a; b",
            {"errors": [FAULT, NO_PLACE, NO_PLACE]},
            f"{PLACED}, and 2 more",
        ),
        (
            "none of 2 records fits input 'orders'",
            {"rejected": [{"index": 4, "reason": "id: a text"}, {"index": 5, "reason": "no"}]},
            "none of 2 records fits input 'orders': record 4: id: a text, and 1 more",
        ),
        (
            "merge[1]: no such token, and 1 more",
            {"rejected": [{"index": n, "reason": "no such token"} for n in (1, 3)]},
            "merge[1]: no such token, and 1 more",
        ),
        (
            "there is no pipeline 'order'",
            {"hint": "did you mean 'orders'?"},
            "there is no pipeline 'order' (did you mean 'orders'?)",
        ),
    ],
)
def test_the_text_of_a_problem_has_the_first_reason_its_place_and_its_hint(
    server: ScriptedServer, client: Client, detail: str, members: dict[str, object], told: str
) -> None:
    server.answer("PUT", PATH, problem(422, detail, **members))
    with pytest.raises(Invalid) as raised:
        client.apply("name: orders")
    assert str(raised.value) == told
    assert raised.value.detail == detail
