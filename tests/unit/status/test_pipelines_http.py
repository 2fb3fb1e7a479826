"""Pipelines, operations and events over HTTP: what is told, to whom, and how long."""

import asyncio
import json
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from builders import MANIFEST, applied
from clocks import NOW, FixedClock
from unit.status.fakes import FakeOwners, FakeStore
from unit.status.histories import MINE, LifeTopic
from unit.status.slots import OPERATION, RING, life, record, sealed, slot, span, token
from waybill_shared.access.authentication import ANYONE, DEFAULT_TENANT
from waybill_shared.contract.driver_news import IgnoredFields
from waybill_shared.contract.errors import Refusal, TokenRefused
from waybill_shared.contract.events import Reply
from waybill_shared.contract.manifest.applied import EarlierManifest
from waybill_shared.contract.words import Action, OperationState
from waybill_shared.kafka.replies import Replies
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.app.pipelines.history import History
from waybill_status.app.pipelines.lookup import Pipelines


def test_pipelines_are_told_without_redis_too(client: TestClient, store: FakeStore) -> None:
    store.put(slot(), version=1)
    assert client.get("/v1/pipelines").json()["items"][0]["phase"] == "Created"
    store.away = True
    (item,) = client.get("/v1/pipelines").json()["items"]
    assert (item["phase"], item["reason"]) == ("Unknown", "redis does not answer")
    assert client.get("/v1/pipelines/orders").json()["manifest"] == MANIFEST


def test_what_is_left_out_is_told_of_its_input(client: TestClient, store: FakeStore) -> None:
    (name,) = (source["name"] for source in client.get("/v1/pipelines/orders").json()["inputs"])
    ignored = IgnoredFields(
        input=name,
        records=3,
        warnings=("field 'a' is no column",),
        dropped={"malformed": 2},
        warned={"positive": 1},
    )
    store.put(replace(slot(), ignored=(ignored,)), version=1)
    (told,) = client.get("/v1/pipelines/orders").json()["inputs"]
    assert (told["ignored_records"], told["warnings"]) == (3, ["field 'a' is no column"])
    assert (told["dropped"], told["warned"]) == ({"malformed": 2}, {"positive": 1})


def test_the_manifests_before_are_told_with_the_one_that_is_applied(store: FakeStore) -> None:
    earlier = tuple(
        EarlierManifest(generation=each, manifest=applied(f"# {each}"), until=NOW + each)
        for each in (2, 4)
    )
    owners = FakeOwners(replace(record(), generation=5, earlier=earlier))
    told = asyncio.run(Pipelines(owners.directory, owners, store).manifests(ANYONE, "orders"))
    assert [(each.generation, each.manifest) for each in told] == [
        (5, MANIFEST),
        (4, "# 4"),
        (2, "# 2"),
    ]
    assert [each.until for each in told] == [None, NOW + 4, NOW + 2]


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
    monkeypatch.setattr("waybill_status.app.pipelines.lookup.NEWS_WAIT_S", 0.01)
    owners = FakeOwners(record())
    owners.silent = True
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
    client: TestClient, replies: Replies, topic: LifeTopic
) -> None:
    place = f"/v1/operations/{OPERATION}"
    assert client.get(place).json()["actor"] is None
    client.portal.call(replies.take, reply(OPERATION))  # type: ignore[union-attr]
    assert client.get(place).json()["actor"] == "ada"
    topic.write(replace(life(), actor="ada"))
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
        owners, owners, store=store, hub=Hub(store, waiters_max=1), ring=RING, clock=FixedClock()
    )
    with pytest.raises(TokenRefused):
        tokens.open(other.tenant, sealed(token(span(0, 5))))


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
    check = f"validate.orders.{1:032x}"
    found = replace(reply(check), result='{"graph": []}')
    client.portal.call(replies.take, found)  # type: ignore[union-attr]
    assert client.get(f"/v1/operations/{check}").json()["result"] == {"graph": []}


def test_an_answer_that_is_written_twice_is_the_first_one(replies: Replies) -> None:
    """The runner writes it again if it cannot know that it is written."""
    replies.take(reply(OPERATION))
    replies.take(reply(OPERATION, at=NOW + 10_000))
    first = replies.get(ANYONE, OPERATION)
    assert first == reply(OPERATION)


def test_the_oldest_answers_make_room(replies: Replies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waybill_shared.kafka.replies.KEPT_MAX", 2)
    ids = [f"stop.orders.{number:032x}" for number in range(3)]
    for each in ids:
        replies.take(reply(each))
    assert [replies.get(ANYONE, each) is not None for each in ids] == [False, True, True]


def test_events_of_a_pipeline_are_there_as_soon_as_they_are_known(
    client: TestClient, topic: LifeTopic
) -> None:
    place = "/v1/pipelines/orders/events"
    assert client.get("/v1/pipelines/order/events").json()["hint"].startswith("did you mean")
    assert client.get(place).status_code == 503
    topic.write(life())
    (sent,) = client.get(place).json()["items"]
    assert (sent["id"], sent["kind"], sent["phase"]) == (
        f"topic-1.{MINE}.0",
        "transition",
        "Running",
    )
    assert sent["at"] == "2026-11-18T11:06:40.000Z"


def test_events_come_in_pages(client: TestClient, topic: LifeTopic) -> None:
    place = "/v1/pipelines/orders/events"
    written = [each.id for each in topic.phases(5)]
    page = client.get(place, params={"limit": 3}).json()
    assert [each["id"] for each in page["items"]] == written[2:]
    page = client.get(place, params={"cursor": page["next_cursor"]}).json()
    assert [each["id"] for each in page["items"]] == written[:2]
    assert (page["next_cursor"], page["gap"]) == (None, None)
    page = client.get(place, params={"after": written[1], "limit": 2}).json()
    assert [each["id"] for each in page["items"]] == written[2:4]
    page = client.get(place, params={"after": f"topic-0.{MINE}.1"}).json()
    assert (len(page["items"]), page["gap"]) == (5, "topic_recreated")


@pytest.mark.parametrize("asked", ["limit=0", "limit=1001", "after=7", "cursor=7"])
def test_a_page_that_does_not_exist_is_refused(
    client: TestClient, topic: LifeTopic, asked: str
) -> None:
    topic.phases(1)
    answer = client.get(f"/v1/pipelines/orders/events?{asked}")
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:waybill:problem:invalid")


def test_what_cannot_be_read_is_not_available_now(client: TestClient, topic: LifeTopic) -> None:
    topic.phases(1)
    topic.away = True
    answer = client.get("/v1/pipelines/orders/events?after=0")
    assert (answer.status_code, "items" in answer.json()) == (503, False)


def test_events_are_streamed_from_the_last_one_seen(
    client: TestClient, topic: LifeTopic, history: History
) -> None:
    written = topic.write(*map(life, ("Starting", "Running", "Failed")))
    history.close()  # so that the stream ends
    place, accept = "/v1/pipelines/orders/events", {"Accept": "text/event-stream"}
    after = {"Last-Event-ID": written[1].id}
    for answer in (
        client.get(place, headers={**accept, **after}),
        client.get(place, headers=accept, params={"after": written[1].id}),
    ):
        (event, data, own_id, *_) = answer.text.splitlines()
        assert (event, own_id) == ("event: event", f"id: {written[2].id}")
        assert json.loads(data.removeprefix("data: "))["phase"] == "Failed"


def test_a_stream_names_its_gap(client: TestClient, topic: LifeTopic, history: History) -> None:
    topic.phases(1)
    history.close()
    headers = {"Accept": "text/event-stream", "Last-Event-ID": f"topic-0.{MINE}.1"}
    answer = client.get("/v1/pipelines/orders/events", headers=headers)
    lines = answer.text.splitlines()
    assert lines[:2] == ["event: gap", 'data: {"gap": "topic_recreated"}']
    assert lines[3] == "event: event"
