"""Status over HTTP, with a store in memory: status codes, problems, streams, limits."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from scraping import Scrape, read_scrape
from unit.status.fakes import (
    KEY,
    NOW,
    FakeOwners,
    FakeStore,
    FixedClock,
    life,
    record,
    slot,
    span,
    token,
)
from unit.status.test_tokens import DONE, RING, SHORT, TICK_S
from waybill_shared.access.authentication import ANYONE, DEFAULT_TENANT
from waybill_shared.contract.errors import UNKNOWN_HINT, Refusal, TokenRefused
from waybill_shared.contract.events import Reply
from waybill_shared.contract.tokens import LIFE_MS, Token, seal
from waybill_shared.contract.words import (
    Action,
    LossReason,
    OperationState,
    StateInSink,
    meanings,
)
from waybill_shared.http.app import create_app
from waybill_shared.kafka.replies import Replies
from waybill_shared.process.health import Health
from waybill_status.adapters.http import (
    PATH_TOKEN_CHARACTERS_MAX,
    TOKENS_MAX,
    operations_router,
    tokens_router,
)
from waybill_status.adapters.pipelines_http import events_router, pipelines_router
from waybill_status.app.events import Events
from waybill_status.app.hub import Hub
from waybill_status.app.pipelines import Pipelines
from waybill_status.app.tokens import Tokens


class Silent(FakeOwners):
    """Kafka does not say what there is to know."""

    async def catch_up(self) -> bool:
        await asyncio.Event().wait()
        return True


OPERATION = f"stop.orders.{'0f' * 16}"


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def replies() -> Replies:
    return Replies()


@pytest.fixture
def hub(store: FakeStore) -> Hub:
    return Hub(store, waiters_max=1, tick_s=TICK_S)


@pytest.fixture
def events() -> Events:
    return Events(streams_max=1)


@pytest.fixture
def client(store: FakeStore, replies: Replies, hub: Hub, events: Events) -> Iterator[TestClient]:
    clock, owners = FixedClock(), FakeOwners(record())
    tokens = Tokens(owners, owners, store=store, hub=hub, ring=RING, clock=clock)
    pipelines = Pipelines(owners.directory, owners, store)
    routers = [
        tokens_router(tokens, query_bytes_max=300_000),
        pipelines_router(pipelines),
        events_router(pipelines, events, caught_up=lambda: bool(events.of(KEY))),
        operations_router(replies),
    ]

    app = create_app("status", routers, Health())
    with TestClient(app) as client:
        yield client


def sealed(asked: Token, *, tenant: str = DEFAULT_TENANT) -> str:
    return seal(asked, RING, tenant=tenant, nonce=bytes(12))


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
    answer = client.get(path(token(span(0, 5), issued_at=NOW - LIFE_MS - 1)))
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
    client = TestClient(app)
    for answer in (
        client.get(path(), params={"wait": 1}),
        client.get(path(), headers={"Accept": "text/event-stream"}),
    ):
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "1"


def test_pipelines_are_told_without_redis_too(client: TestClient, store: FakeStore) -> None:
    store.put(slot(), version=1)
    assert client.get("/v1/pipelines").json()["items"][0]["phase"] == "Created"
    store.away = True
    (item,) = client.get("/v1/pipelines").json()["items"]
    assert (item["phase"], item["reason"]) == ("Unknown", "redis does not answer")
    assert client.get("/v1/pipelines/orders").json()["manifest"] == "version: 1\n"


def test_an_unknown_pipeline_is_told_with_the_known_ones(client: TestClient) -> None:
    answer = client.get("/v1/pipelines/order")
    assert answer.status_code == 404
    assert answer.json()["known"] == ["orders"]


def test_whoever_was_told_of_a_change_finds_the_pipeline_as_it_is_now(store: FakeStore) -> None:
    """Also by an ingress that knew of it sooner."""
    owners = FakeOwners(record())
    owners.late = replace(record(), generation=7)
    pipelines = Pipelines(owners.directory, owners, store)
    assert asyncio.run(pipelines.one(ANYONE, "orders")).generation == 7
    (listed,) = asyncio.run(pipelines.all(ANYONE))
    assert listed.generation == 7


def test_where_kafka_is_away_what_is_known_is_told(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill_status.app.pipelines.NEWS_WAIT_S", 0.01)
    owners = Silent(record())
    pipelines = Pipelines(owners.directory, owners, store)
    assert asyncio.run(pipelines.one(ANYONE, "orders")).name == "orders"
    assert len(asyncio.run(pipelines.all(ANYONE))) == 1
    with pytest.raises(Refusal) as refused:
        asyncio.run(pipelines.one(ANYONE, "others"))
    assert refused.value.slug == "pipeline_not_ready"


def test_a_pipeline_is_not_called_unknown_by_who_cannot_know(store: FakeStore) -> None:
    owners = FakeOwners()
    owners.known = False
    pipelines = Pipelines(owners.directory, owners, store)
    with pytest.raises(Refusal) as refused:
        asyncio.run(pipelines.one(ANYONE, "orders"))
    assert refused.value.slug == "pipeline_not_ready"


def reply(id: str, at: int = NOW) -> Reply:
    return Reply(
        tenant=DEFAULT_TENANT,
        pipeline_uid="u",
        id=id,
        pipeline="orders",
        action=Action.STOP,
        actor="ada",
        state=OperationState.DONE,
        generation=3,
        errors=(),
        warnings=(),
        at=at,
    )


def test_an_operation_is_pending_until_answered(client: TestClient, replies: Replies) -> None:
    place = f"/v1/operations/{OPERATION}"
    assert client.get(place).json()["state"] == "pending"
    assert client.get(place, params={"wait": 0.01}).json()["pipeline"] == "orders"
    client.portal.call(replies.take, reply(OPERATION))  # type: ignore[union-attr]
    told = client.get(place, params={"wait": 30}).json()
    assert (told["state"], told["at"]) == ("done", "2026-11-18T11:06:40.000Z")
    assert told["generation"] == 3
    assert client.get("/v1/operations/stop.orders.12").status_code == 404


def test_what_a_check_has_found_is_told_as_long_as_there_is_room(
    client: TestClient, replies: Replies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operations stay."""
    monkeypatch.setattr("waybill_shared.kafka.replies.RESULTS_BYTES_MAX", 60)
    portal = client.portal
    assert portal is not None
    ids = [f"validate.orders.{number:032x}" for number in range(4)]
    for each in (*ids[:2], ids[1], *ids[2:]):
        portal.call(replies.take, replace(reply(each), result='{"errors": []}' + " " * 10))
    told = [client.get(f"/v1/operations/{each}").json() for each in ids]
    assert [each["result"] for each in told] == [None, None, {"errors": []}, {"errors": []}]
    assert {each["state"] for each in told} == {"done"}


def test_operations_and_events_name_who_wanted_them(
    client: TestClient, replies: Replies, events: Events
) -> None:
    place = f"/v1/operations/{OPERATION}"
    assert client.get(place).json()["actor"] is None
    client.portal.call(replies.take, reply(OPERATION))  # type: ignore[union-attr]
    assert client.get(place).json()["actor"] == "ada"
    events.take(replace(life(), actor="ada"))
    assert client.get("/v1/pipelines/orders/events").json()["items"][0]["actor"] == "ada"


def test_what_is_of_another_tenant_is_not_there(replies: Replies, store: FakeStore) -> None:
    other = replace(ANYONE, tenant="other")
    replies.take(reply(OPERATION))
    assert replies.get(ANYONE, OPERATION)
    assert replies.get(other, OPERATION) is None
    owners = FakeOwners(record())
    pipelines = Pipelines(owners.directory, owners, store)
    assert asyncio.run(pipelines.all(other)) == []
    for ask in (
        lambda: asyncio.run(pipelines.one(other, "orders")),
        lambda: asyncio.run(pipelines.key_of(other, "orders")),
    ):
        with pytest.raises(Refusal) as refused:
            ask()
        assert (refused.value.slug, refused.value.members["known"]) == ("pipeline_not_found", [])
    tokens = Tokens(
        owners,
        owners,
        store=store,
        hub=Hub(store, waiters_max=1),
        ring=RING,
        clock=FixedClock(),
    )
    with pytest.raises(TokenRefused):
        tokens.open(other, sealed(token(span(0, 5))))


def test_an_answer_is_told_whatever_the_runners_clock_shows(
    client: TestClient, replies: Replies
) -> None:
    late = reply(OPERATION, at=NOW - 86_400_000)
    client.portal.call(replies.take, late)  # type: ignore[union-attr]
    assert client.get(f"/v1/operations/{OPERATION}").json()["state"] == "done"


def test_an_operation_says_why_it_failed_and_what_a_check_has_found(
    client: TestClient, replies: Replies
) -> None:
    failed = replace(reply(OPERATION), state=OperationState.FAILED, problem="superseded")
    client.portal.call(replies.take, failed)  # type: ignore[union-attr]
    assert client.get(f"/v1/operations/{OPERATION}").json()["problem"] == "superseded"
    found = replace(reply(OPERATION), result='{"graph": []}')
    client.portal.call(replies.take, found)  # type: ignore[union-attr]
    assert client.get(f"/v1/operations/{OPERATION}").json()["result"] == {"graph": []}


def test_the_oldest_answers_make_room(replies: Replies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waybill_shared.kafka.replies.KEPT_MAX", 2)
    ids = [f"stop.orders.{number:032x}" for number in range(3)]
    for each in ids:
        replies.take(reply(each))
    assert [replies.get(ANYONE, each) is not None for each in ids] == [False, True, True]


def test_the_documentation_shows_examples(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    for path in ("/v1/tokens/{token}", "/v1/pipelines/{pipeline}"):
        answer = document["paths"][path]["get"]["responses"]["200"]
        assert answer["content"]["application/json"]["example"]
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
    count = "waybill_held_request_seconds_count"
    assert after.value(count, **held) == (before.value(count, **held) or 0) + 1
    timed = "waybill_http_request_seconds_count"
    assert after.value(timed, **route) == before.value(timed, **route)
    methods = {labels["method"] for labels in after.labels("waybill_http_requests_total")}
    routes = {labels["route"] for labels in after.labels("waybill_http_requests_total")}
    assert "BREW" not in methods
    assert "/no/such/path" not in routes


def shown(client: TestClient) -> Scrape:
    return read_scrape(client.get("/metrics").text)


def test_events_of_a_pipeline_are_told_as_soon_as_they_are_known(
    client: TestClient, events: Events
) -> None:
    place = "/v1/pipelines/orders/events"
    assert client.get("/v1/pipelines/order/events").json()["hint"].startswith("did you mean")
    assert client.get(place).status_code == 503
    events.take(life())
    (told,) = client.get(place).json()["items"]
    assert (told["id"], told["kind"], told["phase"]) == (f"{NOW}.0", "transition", "Running")
    assert told["at"] == "2026-11-18T11:06:40.000Z"


def test_events_are_streamed_from_the_last_one_seen(client: TestClient, events: Events) -> None:
    for phase in ("Starting", "Running", "Failed"):
        events.take(life(phase))
    events.close()  # so that the stream ends
    headers = {"Accept": "text/event-stream", "Last-Event-ID": f"{NOW}.1"}
    (event, data, own_id, *_) = client.get(
        "/v1/pipelines/orders/events", headers=headers
    ).text.splitlines()
    assert (event, own_id) == ("event: event", f"id: {NOW}.2")
    assert json.loads(data.removeprefix("data: "))["phase"] == "Failed"
