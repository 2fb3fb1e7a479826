"""Watches over HTTP: what is written of each, and what is refused."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from clocks import NOW, FixedClock
from local_client import local_client
from unit.ingress.fakes import OLD_ID, RING, FakeDirectory, FakeKafka, sealed_token, span
from unit.ingress.repeating import World
from unit.status.slots import TOPIC, UID, record
from waybill_ingress.adapters.http.idempotency import IdempotentRoutes
from waybill_ingress.adapters.http.watches import watches_router
from waybill_ingress.adapters.sealing_clock import RandomMint
from waybill_ingress.app import watches as of_watches
from waybill_ingress.app.idempotency import IdempotentRequests
from waybill_ingress.app.watches import Watches
from waybill_ingress.app.webhook_gate import WebhookGate
from waybill_shared.contract.addresses import allowed
from waybill_shared.contract.codec import decode
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.contract.vectors import Span
from waybill_shared.contract.watches import TokenWatch, as_reported
from waybill_shared.contract.webhooks import WebhookRules, open_secret, read_secret, write_secret
from waybill_shared.contract.words import WatchEnd, WatchState
from waybill_shared.http.app import create_app
from waybill_shared.process.health import Health
from waybill_shared.topic_views.pipelines import PipelineDirectory
from waybill_shared.topic_views.watches import WatchBook

TOKEN = sealed_token(span(0, 0, 5))


class FakeNames:
    def __init__(self) -> None:
        self.known = {"hooks.example": ("93.184.216.34",)}

    async def find(self, host: str, port: int, timeout_s: float) -> tuple[str, ...]:
        if host not in self.known:
            raise OSError("not found")
        return self.known[host]


class Around:
    def __init__(self) -> None:
        self.kafka, self.book, self.clock = FakeKafka(), WatchBook(with_tokens=False), FixedClock()
        self.news = FakeDirectory()
        self.names = FakeNames()
        self.directory = PipelineDirectory()

    def app(self) -> FastAPI:
        mint = RandomMint(RING, self.clock)
        rules = WebhookRules(allowed=allowed("hooks.internal,10.9.0.0/16"))
        watches = Watches(
            self.book,
            self.news,
            self.kafka,
            WebhookGate(rules, self.names),
            self.directory,
            mint=mint,
            vault=mint,
            topic="watches",
        )
        process = World().process()
        repeats = IdempotentRoutes(IdempotentRequests(process, process, process, patience_ms=1_000))
        return create_app("ingress", [watches_router(watches, repeats)], Health())

    def written(self) -> list[TokenWatch]:
        found = [decode(TokenWatch, each.value or b"") for each in self.kafka.written]
        assert [each.key for each in self.kafka.written] == [each.id.encode() for each in found]
        assert set(self.kafka.topics) <= {"watches"}
        return found


@pytest.fixture
def around() -> Around:
    return Around()


@pytest.fixture
def client(around: Around) -> Iterator[TestClient]:
    with local_client(around.app(), raise_server_exceptions=False) as client:
        yield client


def test_a_watch_is_written_and_answered(around: Around, client: TestClient) -> None:
    answer = client.post("/v1/watches", json={"token": TOKEN, "labels": {"a": "b"}})
    (written,) = around.written()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/watches/{written.id}"
    assert (answer.json()["id"], answer.json()["labels"]) == (written.id, {"a": "b"})
    assert (written.token, written.state, written.actor) == (TOKEN, WatchState.OPEN, "anonymous")
    assert TOKEN not in answer.text


def test_a_watch_is_ended_by_who_may_see_it(around: Around, client: TestClient) -> None:
    client.post("/v1/watches", json={"token": TOKEN})
    (begun,) = around.written()
    assert client.delete(f"/v1/watches/{begun.id}").status_code == 404, "it is not heard of yet"
    around.book.accept(begun)
    answer = client.delete(f"/v1/watches/{begun.id}")
    ended = around.written()[-1]
    assert (answer.status_code, answer.json()["state"]) == (200, WatchState.CLOSED)
    assert (ended.id, ended.state, ended.token) == (begun.id, WatchState.CLOSED, "")
    around.book.accept(ended)
    assert client.delete(f"/v1/watches/{begun.id}").status_code == 404


def test_whoever_is_not_up_to_date_does_not_say_that_there_is_none(
    around: Around, client: TestClient
) -> None:
    around.news.caught_up = False
    assert client.delete("/v1/watches/x").status_code == 503


@pytest.mark.parametrize(
    ("body", "status", "slug"),
    [
        ({"token": "wb1.of-another"}, 404, "token_not_found"),
        ({"token": ""}, 422, "invalid"),
        ({}, 422, "invalid"),
        ({"token": TOKEN, "view": {"through": "others"}}, 422, "invalid"),
        ({"token": TOKEN, "view": {"level": "seen"}}, 422, "invalid"),
        ({"token": TOKEN, "view": {"sinks": "lake"}}, 422, "invalid"),
        ({"token": TOKEN, "labels": {"a": 1}}, 422, "invalid"),
        ({"token": TOKEN, "labels": {"a": "x" * 1_000}}, 422, "invalid"),
    ],
)
def test_what_is_no_watch_is_refused_and_nothing_is_written(
    around: Around, client: TestClient, body: dict[str, Any], status: int, slug: str
) -> None:
    answer = client.post("/v1/watches", json=body)
    assert (answer.status_code, answer.json()["type"]) == (status, f"urn:waybill:problem:{slug}")
    assert around.written() == []


def test_an_expired_token_is_refused(around: Around, client: TestClient) -> None:
    old = sealed_token(span(0, 0, 5), issued_at=NOW - TOKEN_LIFE_MS - 1)
    answer = client.post("/v1/watches", json={"token": old})
    assert (answer.status_code, around.written()) == (410, [])


def test_a_key_has_so_many_open_ones_and_no_more(
    around: Around, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_watches, "WATCHES_MAX", 2)
    for _ in range(2):
        client.post("/v1/watches", json={"token": TOKEN})
        around.book.accept(around.written()[-1])
    answer = client.post("/v1/watches", json={"token": TOKEN})
    assert (answer.status_code, answer.json()["watches_max"]) == (429, 2)
    client.delete(f"/v1/watches/{around.written()[0].id}")
    around.book.accept(around.written()[-1])
    assert client.post("/v1/watches", json={"token": TOKEN}).status_code == 201


def test_what_kafka_does_not_take_is_not_answered_as_begun(
    around: Around, client: TestClient
) -> None:
    around.kafka.failing = {0: "no broker"}
    assert client.post("/v1/watches", json={"token": TOKEN}).status_code == 503


GIVEN = write_secret(bytes(range(24)))


def test_a_webhook_is_written_with_its_secret_sealed(around: Around, client: TestClient) -> None:
    hook = {"url": "https://hooks.example/orders?key=1", "secret": GIVEN}
    answer = client.post("/v1/watches", json={"token": TOKEN, "webhook": hook})
    (written,) = around.written()
    assert (answer.status_code, written.webhook is not None) == (201, True)
    assert written.webhook is not None
    assert written.webhook.url == hook["url"]
    assert open_secret(written.webhook.secret, RING, watch=written.id) == read_secret(GIVEN)
    shown = answer.json()["webhook"]
    assert (shown["url"], shown["secret"], shown["state"]) == (
        "https://hooks.example/orders",
        None,
        None,
    )


def test_a_secret_that_is_made_is_shown_once(around: Around, client: TestClient) -> None:
    hook = {"url": "https://hooks.example/"}
    answer = client.post("/v1/watches", json={"token": TOKEN, "webhook": hook})
    (written,) = around.written()
    assert written.webhook is not None
    made = read_secret(answer.json()["webhook"]["secret"])
    assert open_secret(written.webhook.secret, RING, watch=written.id) == made
    again = client.post("/v1/watches", json={"token": TOKEN, "webhook": hook})
    assert again.json()["webhook"]["secret"] != answer.json()["webhook"]["secret"]


def test_where_answers_are_remembered_a_secret_must_be_given(
    around: Around, client: TestClient
) -> None:
    hook = {"url": "https://hooks.example/"}
    key = {"Idempotency-Key": "one"}
    answer = client.post("/v1/watches", json={"token": TOKEN, "webhook": hook}, headers=key)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "webhook.secret")
    body = {"token": TOKEN, "webhook": {**hook, "secret": GIVEN}}
    assert client.post("/v1/watches", json=body, headers=key).status_code == 201


@pytest.mark.parametrize(
    ("url", "secret", "path", "said"),
    [
        ("hooks.example", None, "webhook.url", "it is no URL"),
        ("https://me:pass@hooks.example/", None, "webhook.url", "credentials"),
        ("http://hooks.example/", None, "webhook.url", "by https"),
        ("https://hooks.example:22/", None, "webhook.url", "WAYBILL_WEBHOOKS_PORTS"),
        ("https://10.0.0.1/", None, "webhook.url", "not at a public address"),
        ("https://[::ffff:10.0.0.1]/", None, "webhook.url", "not at a public address"),
        ("https://169.254.169.254/latest", None, "webhook.url", "not at a public address"),
        ("https://inside.example/", None, "webhook.url", "not at a public address"),
        ("https://2130706433/", None, "webhook.url", "not at a public address"),
        ("https://hooks.example/", "whsec_AAAA", "webhook.secret", "24 to 64 random bytes"),
    ],
)
def test_a_webhook_that_is_refused_is_told_which_rule_refused_it(
    around: Around, client: TestClient, url: str, secret: str | None, path: str, said: str
) -> None:
    around.names.known |= {"inside.example": ("10.0.0.1",), "2130706433": ("127.0.0.1",)}
    hook = {"url": url, "secret": secret}
    answer = client.post("/v1/watches", json={"token": TOKEN, "webhook": hook})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["path"]) == (422, path)
    assert said in error["message"]
    assert around.written() == []


def test_what_is_named_is_taken_and_what_is_not_known_now_may_be_later(
    around: Around, client: TestClient
) -> None:
    around.names.known["there.example"] = ("10.9.0.1",)
    for url in ("http://hooks.internal:9000/", "http://there.example/", "https://later.example/"):
        answer = client.post("/v1/watches", json={"token": TOKEN, "webhook": {"url": url}})
        assert answer.status_code == 201, answer.text


def told_watch(around: Around, client: TestClient) -> TokenWatch:
    hook = {"url": "https://hooks.example/", "secret": GIVEN}
    client.post("/v1/watches", json={"token": TOKEN, "webhook": hook})
    begun = around.written()[-1]
    around.book.accept(begun)
    return as_reported(begun, WatchEnd.COMPLETE, f"{begun.id}.final", NOW)


def test_what_was_told_is_sent_again_when_it_is_asked_for(
    around: Around, client: TestClient
) -> None:
    watch = told_watch(around, client)
    path = f"/v1/watches/{watch.id}/redeliver"
    refused = client.post(path)
    assert (refused.status_code, refused.json()["type"]) == (
        409,
        "urn:waybill:problem:nothing_to_deliver",
    )
    around.book.accept(watch)
    answer = client.post(path)
    assert (answer.status_code, answer.json()["state"]) == (202, WatchState.REPORTED)
    assert around.written()[-1] == replace(watch, redeliveries=1, redelivery_at=NOW)
    around.book.accept(around.written()[-1])
    client.post(path)
    assert around.written()[-1].redeliveries == 2
    around.clock.now += 7 * 24 * 3_600_000
    assert client.post(path).status_code == 409
    assert client.post("/v1/watches/x/redeliver").status_code == 404


def test_a_watch_without_a_webhook_has_nothing_to_send(around: Around, client: TestClient) -> None:
    client.post("/v1/watches", json={"token": TOKEN})
    begun = around.written()[-1]
    around.book.accept(as_reported(begun, WatchEnd.COMPLETE, "e", NOW))
    answer = client.post(f"/v1/watches/{begun.id}/redeliver")
    assert (answer.status_code, answer.json()["detail"]) == (409, "the watch has no webhook")


def test_a_view_names_sinks_that_each_part_of_the_token_waits_for(
    around: Around, client: TestClient
) -> None:
    def begin(*sinks: str, generation: int = 1) -> tuple[int, str]:
        asked = Span(topic_id=TOPIC, partition=0, start=0, end=5)
        token = sealed_token(asked, uid=UID, generation=generation)
        answer = client.post("/v1/watches", json={"token": token, "view": {"sinks": [*sinks]}})
        return answer.status_code, answer.text

    assert begin("lake")[0] == 503, "its pipeline is not known yet"
    around.directory.accept(record())
    assert begin("lake", generation=2)[0] == 503, "a later generation is not known yet"
    for sinks in (("lake",), ("enriched",), ("copy", "lake")):
        assert begin(*sinks)[0] == 201
        assert around.written()[-1].view.sinks == sinks
    status, said = begin("lak")
    assert (status, "copy, enriched, lake" in said, "view.sinks" in said) == (422, True, True)
    assert begin("lake", "lak")[0] == 422


def test_one_that_is_behind_no_sink_of_these_is_refused(around: Around, client: TestClient) -> None:
    around.directory.accept(record())
    spans = (
        Span(topic_id=TOPIC, partition=0, start=0, end=5),
        Span(topic_id=OLD_ID, partition=0, start=0, end=5),
    )
    token = sealed_token(*spans, uid=UID)
    answer = client.post("/v1/watches", json={"token": token, "view": {"sinks": ["lake"]}})
    assert (answer.status_code, around.written()) == (422, [])
    assert "a part of the token waits for none of lake" in answer.text
