"""The gateway in front of a small real service: what passes through, and what happens if not."""

import contextlib
import json
import socket
from collections.abc import Iterator

import httpx2
import pytest

from integration.local_stack.upstreams import WAIT_S, Upstream, make_service
from serving import ask, serve
from waybill_local.gateway import create_app
from waybill_local.ports import HOST
from waybill_local.proxy import Upstreams
from waybill_shared.contract.hosts import LOOPBACK_ONLY, AllowedHosts, read_allowed_hosts
from waybill_shared.http import asyncapi


@pytest.fixture
def ingress() -> Upstream:
    return Upstream(name="ingress")


@pytest.fixture
def status() -> Iterator[Upstream]:
    upstream = Upstream(name="status")
    yield upstream
    upstream.go_on.set()


@pytest.fixture
def ports(ingress: Upstream, status: Upstream) -> Iterator[dict[str, int]]:
    with serve(make_service(ingress)) as one, serve(make_service(status)) as other:
        yield {"ingress": one, "token_tracker": one, "stage_runner": one, "status": other}


@pytest.fixture
def client(ports: dict[str, int]) -> Iterator[httpx2.Client]:
    with gateway(Upstreams(ports=ports)) as client:
        yield client


@contextlib.contextmanager
def gateway(
    upstreams: Upstreams, hosts: AllowedHosts | None = LOOPBACK_ONLY
) -> Iterator[httpx2.Client]:
    with (
        serve(create_app(upstreams, hosts)) as port,
        httpx2.Client(base_url=f"http://{HOST}:{port}", timeout=WAIT_S, trust_env=False) as client,
    ):
        yield client


def dead_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        return int(listener.getsockname()[1])


def test_request_reaches_its_service_as_it_was_sent(client: httpx2.Client) -> None:
    answer = client.put("/v1/pipelines/a%20b?state=fresh&x=%20", content=b"name: orders")
    assert answer.status_code == 202
    seen = answer.json()
    assert seen["service"] == "ingress"
    assert seen["target"] == "/v1/pipelines/a%20b?state=fresh&x=%20"
    assert seen["body"] == "name: orders"
    assert answer.headers["location"] == "/v1/operations/1"
    assert client.get("/v1/pipelines/orders").json()["service"] == "status"


def test_headers_for_the_next_connection_only_are_not_passed_on(client: httpx2.Client) -> None:
    sent = {"connection": "x-mine", "x-mine": "1", "te": "trailers", "x-kept": "2"}
    sent["authorization"] = "Bearer wb_dev_1_2"
    answer = client.post("/v1/tokens", headers=sent, json={})
    seen = answer.json()["headers"]
    assert seen["x-kept"] == "2"
    assert seen["authorization"] == "Bearer wb_dev_1_2"
    assert {"x-mine", "te"}.isdisjoint(seen)
    assert seen["x-forwarded-for"] == HOST
    assert answer.headers["x-upstream"] == "yes"
    assert "keep-alive" not in answer.headers


def test_spaces_around_a_header_are_no_part_of_it(client: httpx2.Client) -> None:
    request = (
        b"POST /v1/tokens HTTP/1.1\r\nHost: localhost\r\nX-Kept:  2 \t\r\n"
        b"Connection: close\r\nContent-Length: 2\r\n\r\n{}"
    )
    assert client.base_url.port is not None
    with socket.create_connection((HOST, client.base_url.port), timeout=10) as raw:
        raw.sendall(request)
        answer = raw.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 202"), answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["headers"]["x-kept"] == "2"


def test_compression_is_left_to_caller_and_service(client: httpx2.Client) -> None:
    request = client.build_request("POST", "/v1/tokens")
    del request.headers["accept-encoding"]
    assert "accept-encoding" not in client.send(request).json()["headers"]


def test_request_id_is_one_for_caller_and_service(client: httpx2.Client) -> None:
    answer = client.post("/v1/tokens", headers={"x-request-id": "mine"})
    assert answer.headers.get_list("x-request-id") == ["mine"]
    assert answer.json()["headers"]["x-request-id"] == "mine"
    made = client.post("/v1/tokens")
    assert made.headers["x-request-id"] == made.json()["headers"]["x-request-id"] != ""


def test_events_pass_through_one_by_one(client: httpx2.Client, status: Upstream) -> None:
    headers = {"accept": "text/event-stream"}
    with client.stream("GET", "/v1/tokens/stream", headers=headers) as answer:
        events = answer.iter_raw()
        assert next(events) == b"data: 1\n\n"  # the service has not made the second one yet
        status.go_on.set()
        assert next(events) == b"data: 2\n\n"


def test_body_passes_through_while_it_is_being_sent(
    client: httpx2.Client, ingress: Upstream
) -> None:
    def body() -> Iterator[bytes]:
        yield b"first"
        assert ingress.got_part.wait(WAIT_S), "the gateway kept the first part back"
        yield b"second"

    answer = client.post("/v1/pipelines/p/inputs/i/records", content=body())
    assert "".join(answer.json()["parts"]) == "firstsecond"


def test_stream_ends_at_the_service_when_its_caller_leaves(
    client: httpx2.Client, status: Upstream
) -> None:
    with client.stream("GET", "/v1/tokens/stream") as answer:
        assert next(answer.iter_raw()) == b"data: 1\n\n"
    assert status.cancelled.wait(WAIT_S)


def test_long_poll_ends_at_the_service_when_its_caller_leaves(
    client: httpx2.Client, status: Upstream
) -> None:
    with pytest.raises(httpx2.ReadTimeout):
        client.get("/v1/tokens/held?wait=30", timeout=0.3)
    assert status.got_part.is_set()
    assert status.cancelled.wait(WAIT_S)


def test_cut_off_answer_does_not_look_whole(client: httpx2.Client) -> None:
    with pytest.raises(httpx2.RemoteProtocolError):
        client.get("/v1/tokens/cut")


def test_dead_service_is_named(ports: dict[str, int]) -> None:
    with gateway(Upstreams(ports={**ports, "status": dead_port()})) as client:
        answer = client.get("/v1/pipelines/orders")
        assert answer.status_code == 502
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["x-request-id"]
        problem = answer.json()
        assert problem["type"] == "urn:waybill:problem:service_unreachable"
        assert problem["service"] == "status"
        assert "waybill ps" in problem["hint"]
        assert client.post("/v1/tokens").status_code == 202


def test_silent_service_is_named(ports: dict[str, int]) -> None:
    with gateway(Upstreams(ports=ports, read_timeout_s=0.2)) as client:
        answer = client.get("/v1/tokens/held")
        assert answer.status_code == 504
        assert answer.json()["service"] == "status"


def test_unknown_path_and_method_are_told_apart(client: httpx2.Client) -> None:
    assert client.get("/v2/nothing").status_code == 404
    refused = client.patch("/v1/pipelines/orders")
    assert refused.status_code == 405
    assert refused.headers["allow"] == "PUT, DELETE, GET"
    assert refused.headers["content-type"] == "application/problem+json"


def test_readiness_is_everybodys(client: httpx2.Client, status: Upstream) -> None:
    whole = client.get("/readyz")
    assert whole.status_code == 200
    assert set(whole.json()) == {"ingress", "token_tracker", "stage_runner", "status"}
    status.ready = False
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200


def test_dead_service_makes_the_whole_not_ready(ports: dict[str, int]) -> None:
    with gateway(Upstreams(ports={**ports, "stage_runner": dead_port()})) as client:
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert "error" in answer.json()["stage_runner"]


def test_openapi_holds_the_paths_of_both(client: httpx2.Client) -> None:
    document = client.get("/openapi.json").json()
    assert {"/v1/tokens", "/v1/tokens/{t}", "/v1/pipelines/{p}"} <= set(document["paths"])
    assert "/readyz" not in document["paths"]
    assert "openapi.json" in client.get("/docs").text


def test_asyncapi_describes_all_events(client: httpx2.Client) -> None:
    answer = client.get("/asyncapi.json")
    assert (answer.status_code, answer.json()) == (200, asyncapi.document())


def test_metrics_of_each_service(client: httpx2.Client) -> None:
    assert client.get("/metrics/status").text == "of_status 1\n"
    assert client.get("/metrics/ingress").text == "of_ingress 1\n"
    unknown = client.get("/metrics/nobody")
    assert unknown.status_code == 404
    assert "token_tracker" in unknown.json()["detail"]


def test_version_names_everybodys(client: httpx2.Client) -> None:
    answer = client.get("/version").json()
    assert answer["service"] == "gateway"
    assert set(answer["services"]) == {"ingress", "token_tracker", "stage_runner", "status"}


def test_a_web_page_with_a_name_that_leads_here_writes_and_reads_nothing(
    client: httpx2.Client, ingress: Upstream, status: Upstream
) -> None:
    assert client.base_url.port is not None
    page = ("Host: evil.example:8080", "Origin: http://evil.example:8080")
    path = "/v1/pipelines/orders/inputs/orders/records"
    for lines in (
        (f"POST {path} HTTP/1.1", *page, "Content-Type: application/json"),
        ("GET /v1/tokens/stream HTTP/1.1", page[0], "Accept: text/event-stream"),
        ("GET /v1/tokens/held?wait=30 HTTP/1.1", page[0]),
        ("GET /v1/pipelines/orders HTTP/1.1", page[0], "X-Forwarded-Host: localhost"),
    ):
        code, body = ask(client.base_url.port, *lines, body=b'{"order_id": 1}')
        assert (code, json.loads(body)["type"]) == (421, "urn:waybill:problem:host_refused")
    assert not ingress.got_part.is_set()
    assert not status.got_part.is_set()


def test_names_of_the_setting_and_all_where_there_are_keys_reach_the_services(
    ports: dict[str, int],
) -> None:
    for hosts in (read_allowed_hosts(["waybill.example"]), None):
        with gateway(Upstreams(ports=ports), hosts) as client:
            answer = client.post("/v1/tokens", headers={"host": "waybill.example:8080"})
            assert answer.json()["headers"]["host"] == "waybill.example:8080"
