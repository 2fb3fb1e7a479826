"""Writes with an Idempotency-Key, on a broker: once, whoever is killed, and answered the same."""

import json
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from integration.conftest import Serving, StartService, Surroundings, serving
from integration.ingress.test_records import NDJSON, Known, make_pipeline, opened, stored
from integration.waiting import eventually
from waybill_shared.kafka.admin import KafkaAdmin, make_admin
from waybill_shared.kafka.clients import read_to_end
from waybill_shared.process.failpoints import FOLDER, REACHED

PATIENCE_S = 2
WAIT_S = 60.0
ROWS = '{"order_id": 1, "customer": "ada"}\n{"order_id": 2, "customer": "bob"}\nx\n'


@pytest.fixture(scope="module")
def admin(surroundings: Surroundings) -> KafkaAdmin:
    return make_admin(surroundings.kafka)


@pytest.fixture(scope="module")
def ingress(start_service: StartService) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=start_service("ingress", **SETTINGS), timeout=WAIT_S) as client:
        yield client


@pytest.fixture(scope="module")
def other(start_service: StartService) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=start_service("ingress", **SETTINGS), timeout=WAIT_S) as client:
        yield client


@pytest.fixture(scope="module")
def known(surroundings: Surroundings, admin: KafkaAdmin, ingress: httpx2.Client) -> Known:
    return make_pipeline(surroundings, admin, ingress)


SETTINGS = {"WAYBILL_INGRESS_KEY_PATIENCE_S": str(PATIENCE_S)}


def fresh_key() -> str:
    return str(uuid.uuid4())


def send(client: httpx2.Client, known: Known, key: str, rows: str = ROWS) -> httpx2.Response:
    headers = {**NDJSON, "Idempotency-Key": key}
    return client.post(known.path, content=rows, headers=headers)


def done(ask: Callable[[], httpx2.Response]) -> httpx2.Response:
    """What is answered at last, however often it is still being carried out."""
    answer: httpx2.Response | None = None

    def asked() -> bool:
        nonlocal answer
        answer = ask()
        return answer.status_code not in (409, 503)

    eventually(asked, within_s=WAIT_S)
    assert answer is not None
    return answer


def test_the_same_request_has_one_answer(
    surroundings: Surroundings, known: Known, ingress: httpx2.Client, other: httpx2.Client
) -> None:
    before = stored(surroundings, known.topic)
    key = fresh_key()
    first = send(ingress, known, key)
    assert first.status_code == 200, first.text
    assert first.json()["accepted"] == 2
    assert [each["index"] for each in first.json()["rejected"]] == [2]
    assert "Idempotent-Replayed" not in first.headers
    assert first.headers["Location"] == f"/v1/tokens/{first.json()['token']}"
    for client in (ingress, other):
        again = done(lambda client=client: send(client, known, key))
        assert again.content == first.content
        assert again.status_code == 200
        assert again.headers["Idempotent-Replayed"] == "true"
        assert again.headers["Location"] == first.headers["Location"]
        assert again.headers["Content-Type"] == first.headers["Content-Type"]
    new = {
        place: value for place, value in stored(surroundings, known.topic).items()
        if place not in before
    }
    assert len(new) == 2
    (part,) = opened(surroundings, first.json()["token"]).parts
    covered = {(s.partition, o) for s in part.spans for o in range(s.start, s.end)}
    assert covered == set(new)
