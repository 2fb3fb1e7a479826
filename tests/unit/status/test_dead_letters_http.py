"""Dead letters over HTTP."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from builders import applied
from local_client import local_client
from unit.status.fakes import FakeOwners, FakeStore
from unit.status.letters import TOPIC, FakeTopics, raw
from unit.status.slots import record
from waybill_shared.contract import dead_letters as named
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.http.app import create_app
from waybill_shared.http.examples import example
from waybill_shared.process.health import Health
from waybill_status.adapters.http.dead_letters import dead_letters_router
from waybill_status.adapters.http.models import DeadLettersAnswer
from waybill_status.app.dead_letters.reading import DeadLetterReader, dead_topics
from waybill_status.app.dead_letters.replays import KnownReplays
from waybill_status.app.pipelines.lookup import Pipelines
from waybill_status.core.dead_letters.dead_letter_view import DeadLetter

MANIFEST = """\
version: 1
name: orders
inputs:
  - name: orders
    kafka: {topic: orders.in}
    schema: "order_id BIGINT"
stages:
  - name: enrich
    inputs: [orders]
    sinks:
      - {name: copy, kafka: {topic: c}}
"""
PATH = "/v1/pipelines/orders/dead-letters"


@pytest.fixture
def topics() -> FakeTopics:
    return FakeTopics()


@pytest.fixture
def replays() -> KnownReplays:
    return KnownReplays()


@pytest.fixture
def client(topics: FakeTopics, replays: KnownReplays) -> Iterator[TestClient]:
    owners = FakeOwners(orders())
    pipelines = Pipelines(owners.directory, owners, FakeStore())
    reader = DeadLetterReader(pipelines, topics, replays)
    with local_client(create_app("status", [dead_letters_router(reader)], Health())) as client:
        yield client


def orders(more: str = "") -> PipelineRecord:
    return replace(record(), manifest=applied(MANIFEST + more))


def test_the_newest_come_first_page_by_page(client: TestClient, topics: FakeTopics) -> None:
    topics.letters = [raw(n, at=n) for n in range(5)]
    first = client.get(PATH, params={"limit": 3}).json()
    assert [each["offset"] for each in first["items"]] == [4, 3, 2]
    second = client.get(PATH, params={"limit": 3, "cursor": first["next_cursor"]}).json()
    assert [each["offset"] for each in second["items"]] == [1, 0]
    assert second["next_cursor"] is None
    assert first["items"][0] == {
        "id": "orders.in.dlq:0:4:41",
        "topic": TOPIC,
        "partition": 0,
        "offset": 4,
        "at": "1970-01-01T00:00:00.004Z",
        "stage": "enrich",
        "sink": None,
        "reason": "violated",
        "rule": "positive",
        "message": "amount > 0 is not true",
        "source": {"topic": "orders.in", "partition": 1, "offset": 41},
        "key": None,
        "value": "{}",
        "truncated": False,
        "not_replayable": None,
        "replayed_as": None,
    }


def test_filters_leave_others_out(client: TestClient, topics: FakeTopics) -> None:
    malformed = {named.REASON: "malformed", named.STAGE: "load"}
    topics.letters = [raw(0), raw(1, told=malformed), raw(2, at=5_000)]

    def found(**params: str) -> list[int]:
        return [each["offset"] for each in client.get(PATH, params=params).json()["items"]]

    assert found(reason="violated") == [2, 0]
    assert found(stage="load") == [1]
    assert found(since="1970-01-01T00:00:02Z") == [2]
    assert found(since="1970-01-01T00:00:02Z", reason="malformed") == []


@pytest.mark.parametrize(
    "params",
    [
        {"reason": "bad"},
        {"since": "yesterday"},
        {"since": "2026-11-21T09:00:00"},
        {"limit": 0},
        {"limit": 1_001},
        {"cursor": "x"},
    ],
)
def test_a_parameter_that_is_wrong_is_named(
    client: TestClient, params: dict[str, str | int]
) -> None:
    answer = client.get(PATH, params=params)
    assert answer.status_code == 422
    assert [error["path"] for error in answer.json()["errors"]] == [
        f"query.{name}" for name in params
    ]


def test_the_topics_are_those_of_the_manifest(client: TestClient, topics: FakeTopics) -> None:
    client.get(PATH)
    assert topics.asked == ["orders.enriched.dlq", "orders.in.dlq"], "also those between stages"
    assert dead_topics(orders("deadLetter: {topic: dead}\n")) == ["dead"]


def test_one_is_told_whole(client: TestClient, topics: FakeTopics) -> None:
    topics.letters = [raw(3, value=b"\xff" * 3)]
    told = client.get(f"{PATH}/{TOPIC}:0:3:41").json()
    assert (told["value"], told["value_base64"], told["headers"]) == (None, "////", [])


@pytest.mark.parametrize("id", [f"{TOPIC}:0:9:41", f"{TOPIC}:0:3:40", "nonsense", "%E2%82%AC"])
def test_what_is_no_dead_letter_is_not_found(
    client: TestClient, topics: FakeTopics, id: str
) -> None:
    topics.letters = [raw(3)]
    answer = client.get(f"{PATH}/{id}")
    assert (answer.status_code, answer.json()["type"]) == (
        404,
        "urn:waybill:problem:dead_letter_not_found",
    )


def test_what_retention_took_is_gone_and_says_since_when_there_are_records(
    client: TestClient, topics: FakeTopics
) -> None:
    topics.starts = {(TOPIC, 0): 7, ("foreign", 0): 7}
    answer = client.get(f"{PATH}/{TOPIC}:0:3:41")
    assert answer.status_code == 410
    assert answer.json()["detail"].endswith("it has records since 2026-11-21T09:00:00.120Z"), (
        answer.json()["detail"]
    )
    assert client.get(f"{PATH}/foreign:0:3:41").status_code == 404, "nobody knows whose it was"


def test_of_a_pipeline_that_is_none_nothing_is_told(client: TestClient) -> None:
    assert client.get("/v1/pipelines/other/dead-letters").status_code == 404
    assert client.get(f"/v1/pipelines/other/dead-letters/{TOPIC}:0:3:41").status_code == 404


@pytest.mark.parametrize(
    ("model", "example"),
    [
        (DeadLettersAnswer, example("status/dead_letters")),
        (DeadLetter, example("status/dead_letter")),
    ],
)
def test_examples_have_the_members_of_their_models(
    model: type[object], example: dict[str, object]
) -> None:
    described = TypeAdapter(model).json_schema(mode="serialization")["properties"]
    assert set(example) == set(described)
