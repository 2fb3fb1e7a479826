"""Watches over HTTP: what is written of each, and what is refused."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from unit.ingress.fakes import NOW, RING, FakeDirectory, FakeKafka, FixedClock, sealed_token, span
from unit.ingress.repeating import World
from waybill_ingress.adapters.mint import RandomMint
from waybill_ingress.adapters.repeats_http import RepeatsHttp
from waybill_ingress.adapters.watches_http import watches_router
from waybill_ingress.app import watches as of_watches
from waybill_ingress.app.repeats import Repeats
from waybill_ingress.app.watches import Watches
from waybill_shared.contract.codec import decode
from waybill_shared.contract.tokens import LIFE_MS
from waybill_shared.contract.watches import TokenWatch, WatchBook
from waybill_shared.contract.words import WatchState
from waybill_shared.http.app import create_app
from waybill_shared.process.health import Health

TOKEN = sealed_token(span(0, 0, 5))


class Around:
    def __init__(self) -> None:
        self.kafka, self.book, self.clock = FakeKafka(), WatchBook(with_tokens=False), FixedClock()
        self.news = FakeDirectory()

    def app(self) -> FastAPI:
        mint = RandomMint(RING, self.clock)
        watches = Watches(self.book, self.news, self.kafka, mint=mint, vault=mint, topic="watches")
        process = World().process()
        repeats = RepeatsHttp(Repeats(process, process, process, patience_ms=1_000))
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
    with TestClient(around.app(), raise_server_exceptions=False) as client:
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
        ({"token": TOKEN, "view": {}}, 422, "invalid"),
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
    old = sealed_token(span(0, 0, 5), issued_at=NOW - LIFE_MS - 1)
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
