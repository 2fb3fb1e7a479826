"""Status over HTTP, with a store in memory: status codes, problems, streams, limits."""

import json
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from clocks import NOW, FixedClock
from local_client import local_client
from scraping import Scrape, read_scrape
from unit.status.fakes import FakeOwners, FakeStore
from unit.status.slots import OPERATION, RING, record, sealed, slot, span, token
from unit.status.worlds import DONE, SHORT
from waybill_shared.contract.errors import UNKNOWN_HINT
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.word import meanings
from waybill_shared.contract.words import LossReason, StateInSink
from waybill_shared.http.app import create_app
from waybill_shared.process.health import Health
from waybill_status.adapters.http.tokens import PATH_TOKEN_CHARACTERS_MAX, TOKENS_MAX, tokens_router
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.tokens import Tokens


def path(asked: Token | None = None) -> str:
    return f"/v1/tokens/{sealed(asked or token(span(0, 5)))}"


def test_an_outcome_is_told(client: TestClient, store: FakeStore) -> None:
    store.put(DONE, version=1)
    answer = client.get(path())
    assert answer.status_code == 200
    assert answer.json()["outcome"] == "complete"


def test_unknown_is_a_503_that_carries_the_outcome(client: TestClient) -> None:
    answer = client.get(path())
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["outcome"] == "unknown"
    assert answer.json()["reason"] == "slot_missing"
    assert answer.json()["type"] == "urn:waybill:problem:outcome_unknown"


def test_all_that_is_no_token_of_ours_is_one_404(client: TestClient) -> None:
    good = sealed(token(span(0, 5)))
    for bad in (good[:-4], good[:10], "x", "wb1.", "wb1.é", sealed(token(), tenant="other")):
        answer = client.get(f"/v1/tokens/{bad}")
        assert answer.status_code == 404
        assert answer.json() == {
            **answer.json(),
            "type": "urn:waybill:problem:token_not_found",
            "detail": "no such token",
            "hint": UNKNOWN_HINT,
        }


def test_an_old_token_has_expired(client: TestClient) -> None:
    answer = client.get(path(token(span(0, 5), issued_at=NOW - TOKEN_LIFE_MS - 1)))
    assert answer.status_code == 410
    assert "a new token" in answer.json()["hint"]


def test_a_long_token_is_asked_by_a_query(client: TestClient) -> None:
    answer = client.get(f"/v1/tokens/{'x' * (PATH_TOKEN_CHARACTERS_MAX + 1)}")
    assert answer.status_code == 413
    assert "/v1/tokens/query" in answer.json()["detail"]


@pytest.mark.parametrize("wait", ["-1", "61", "nan", "inf", "x"])
def test_a_wait_has_its_limits(client: TestClient, wait: str) -> None:
    assert client.get(path(), params={"wait": wait}).status_code == 422
    assert client.get(f"/v1/operations/{OPERATION}", params={"wait": wait}).status_code == 422


def test_a_query_answers_in_order(client: TestClient, store: FakeStore) -> None:
    store.put(SHORT, version=1)
    asked = [sealed(token(span(0, 5))), "forged", sealed(token(span(0, 4)))]
    answer = client.post("/v1/tokens/query", json={"tokens": asked}).json()
    assert [each.get("outcome") for each in answer["outcomes"]] == ["in_progress", None, "complete"]
    assert answer["outcomes"][1]["error"]["status"] == 404


def test_a_long_token_is_answered_by_a_query(client: TestClient, store: FakeStore) -> None:
    store.put(DONE, version=1)
    scattered = sealed(token(*(span(at, at + 1) for at in range(0, 4_000, 2))))
    assert len(scattered) > PATH_TOKEN_CHARACTERS_MAX
    asked = {"tokens": [scattered]}
    answer = client.post("/v1/tokens/query", params={"wait": 0.01}, json=asked).json()
    assert answer["outcomes"][0]["accepted"] == 2_000


def test_a_query_has_its_limits(client: TestClient) -> None:
    too_many = {"tokens": ["x"] * (TOKENS_MAX + 1)}
    assert client.post("/v1/tokens/query", json=too_many).status_code == 413
    assert client.post("/v1/tokens/query", json={"tokens": ["x" * 300_000]}).status_code == 413
    assert client.post("/v1/tokens/query", json={"tokens": "x"}).status_code == 422
    misspelt = client.post("/v1/tokens/query", json={"tokens": [], "token": "x"})
    assert "token: unknown field: did you mean 'tokens'?" in misspelt.json()["detail"]
    assert client.post("/v1/tokens/query", json={"tokens": ["x" * 262_145]}).status_code == 413
    assert client.post("/v1/tokens/query", json={"tokens": []}).json() == {"outcomes": []}


PART = slot(enriched=(5,), copy=(4,), lake=(5,))


@pytest.mark.parametrize(
    ("query", "outcome"),
    [
        ("", "in_progress"),
        ("sinks=lake", "complete"),
        ("sinks=lake&sinks=enriched", "complete"),
        ("sinks=lake&sinks=copy", "in_progress"),
        ("sinks=lake,%20copy", "in_progress"),
        ("sinks=lake&wait=1", "complete"),
        ("level=accepted", "complete"),
        ("level=processed", "in_progress"),
    ],
)
def test_a_part_of_the_way_may_be_asked_for(
    client: TestClient, store: FakeStore, query: str, outcome: str
) -> None:
    store.put(PART, version=1)
    assert client.get(f"{path()}?{query}").json()["outcome"] == outcome


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("sinks=", "at least 1 character"),
        ("sinks=,", "at least 1 character"),
        ("sinks=lake,", "at least 1 character"),
        ("sinks=lak", "waits for none of lak"),
        ("sinks=lak&wait=30", "waits for none of lak"),
        ("sinks=lake,lak", "waits for some of lak, lake, and not for all"),
        ("level=seen", "level"),
    ],
)
def test_what_the_token_does_not_wait_for_is_refused(
    client: TestClient, store: FakeStore, query: str, said: str
) -> None:
    store.put(PART, version=1)
    answer = client.get(f"{path()}?{query}")
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:waybill:problem:invalid")
    assert said in answer.text


def test_a_query_refuses_each_token_by_itself(client: TestClient, store: FakeStore) -> None:
    store.put(replace(PART, generation=2), version=1)
    old, other = sealed(token(span(0, 5))), sealed(token(span(0, 5), generation=2))
    asked = {"tokens": [old, other], "view": {"sinks": ["lake"]}}
    answers = client.post("/v1/tokens/query", json=asked).json()["outcomes"]
    assert [each["outcome"] for each in answers] == ["complete", "complete"]
    asked["view"] = {"sinks": ["lak"]}
    answers = client.post("/v1/tokens/query?wait=30", json=asked).json()["outcomes"]
    assert [each["error"]["status"] for each in answers] == [422, 422]
    assert "copy, enriched, lake" in answers[0]["error"]["hint"]
    assert client.post("/v1/tokens/query", json={**asked, "view": {"x": 1}}).status_code == 422


def stream(client: TestClient, **headers: str) -> str:
    accept = {"Accept": "text/event-stream", **headers}
    return client.get(path(), headers=accept).text


def test_a_stream_of_what_is_final_has_one_event(client: TestClient, store: FakeStore) -> None:
    store.put(DONE, version=7)
    event, data, own_id, *rest = stream(client).splitlines()
    assert event == "event: outcome"
    assert json.loads(data.removeprefix("data: "))["outcome"] == "complete"
    assert own_id.startswith("id: 7.")
    assert rest == [""]
    assert stream(client, **{"Last-Event-ID": own_id.removeprefix("id: ")}) == ""
    assert stream(client, **{"Last-Event-ID": "7.00000000"}) != ""


def test_a_stream_of_a_forged_token_is_a_404(client: TestClient) -> None:
    answer = client.get("/v1/tokens/x", headers={"Accept": "text/event-stream"})
    assert answer.status_code == 404


def test_too_many_waiters_are_sent_away(store: FakeStore) -> None:
    hub, owners = Hub(store, waiters_max=0), FakeOwners(record())
    tokens = Tokens(owners, owners, store=store, hub=hub, ring=RING, clock=FixedClock())
    app = create_app("status", [tokens_router(tokens, query_bytes_max=1)], Health())
    client = local_client(app)
    for answer in (
        client.get(path(), params={"wait": 1}),
        client.get(path(), headers={"Accept": "text/event-stream"}),
    ):
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "1"


def test_the_documentation_shows_examples(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    for path, shown in (
        ("/v1/tokens/{token}", "examples"),
        ("/v1/pipelines/{pipeline}", "example"),
    ):
        answer = document["paths"][path]["get"]["responses"]["200"]
        assert answer["content"]["application/json"][shown]
    for name in ("PipelinesAnswer", "OperationAnswer"):
        assert document["components"]["schemas"][name]["example"]


def test_the_documentation_says_what_each_word_means(client: TestClient) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["StateInSink"] == {"type": "string", "description": meanings(StateInSink)}
    assert schemas["LostSpan"]["properties"]["reason"]["description"] == meanings(LossReason)


def test_requests_are_measured_by_route_and_method_and_held_ones_apart(
    client: TestClient, store: FakeStore
) -> None:
    route = {"route": "/v1/tokens/{token}", "method": "GET"}
    before = shown(client)

    client.get(f"{path()}?wait=0.01")
    client.request("BREW", "/v1/tokens/x")
    client.get("/no/such/path")

    after = shown(client)
    held = {"outcome": "unknown"}
    count = "waybill_long_poll_seconds_count"
    assert after.value(count, **held) == (before.value(count, **held) or 0) + 1
    timed = "waybill_http_request_seconds_count"
    assert after.value(timed, **route) == before.value(timed, **route)
    methods = {labels["method"] for labels in after.labels("waybill_http_requests_total")}
    routes = {labels["route"] for labels in after.labels("waybill_http_requests_total")}
    assert "BREW" not in methods
    assert "/no/such/path" not in routes


def shown(client: TestClient) -> Scrape:
    return read_scrape(client.get("/metrics").text)
