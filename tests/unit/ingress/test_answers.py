"""A command that is done or refused within a moment is answered so, over HTTP."""

import asyncio
from typing import Any

import pytest
from fastapi.testclient import TestClient

from local_client import local_client
from message_builders import make_reply
from scraping import read_scrape
from unit.ingress.fakes import MANIFEST, FakeAnswers, FakeKafka
from unit.ingress.in_memory import make_app
from waybill_ingress.adapters.kafka.replies import FollowedAnswers
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.operations import OperationId
from waybill_shared.contract.words import Action
from waybill_shared.http.operations import OperationAnswer
from waybill_shared.kafka.follower import TopicFollower

START = "/v1/pipelines/orders/start"
OPERATION = OperationId(action=Action.START, pipeline="orders", nonce="ab" * 16)
CHANGES = [
    ("PUT", "/v1/pipelines/orders"),
    ("POST", START),
    ("POST", "/v1/pipelines/orders/stop"),
    ("POST", "/v1/pipelines/orders/restart"),
    ("DELETE", "/v1/pipelines/orders"),
]


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_what_is_done_in_time_is_told_as_its_operation_is(
    client: TestClient, answers: FakeAnswers, method: str, path: str
) -> None:
    answers.reply = make_reply(id=str(OPERATION))
    answer = client.request(method, path, content=MANIFEST if method == "PUT" else None)
    assert answer.status_code == 200
    assert answer.json() == OperationAnswer.model_validate(answers.reply).model_dump(mode="json")
    assert (answer.json()["id"], answer.json()["state"]) == (str(OPERATION), "done")
    ((asked, wait_s),) = answers.waited
    assert (asked.split(".")[1], wait_s) == ("orders", 1.0)


@pytest.mark.parametrize(
    ("problem", "status", "slug"),
    [
        ("superseded", 409, "superseded"),
        ("pipeline_gone", 409, "pipeline_gone"),
        ("plan_incompatible", 422, "plan_incompatible"),
        ("command_given_up", 503, "command_given_up"),
        ("of a later version", 500, "internal"),
        (None, 500, "internal"),
    ],
)
def test_what_is_refused_in_time_is_a_problem_that_carries_the_operation(
    client: TestClient, answers: FakeAnswers, problem: str | None, status: int, slug: str
) -> None:
    answers.reply = make_reply("failed", id=str(OPERATION), problem=problem)
    answer = client.post(START)
    assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["type"] == f"urn:waybill:problem:{slug}"
    assert told["detail"] == "a step is wrong"
    assert (told["id"], told["state"], told["generation"]) == (str(OPERATION), "failed", 1)
    assert (told["errors"][0]["line"], told["errors"][0]["hint"]) == (3, "mend it")
    assert told["request_id"] == answer.headers["x-request-id"]


def test_what_is_not_known_in_time_was_taken(client: TestClient, answers: FakeAnswers) -> None:
    answer = client.post(START, params={"wait": 2.5})
    operation = answer.json()["operation"]
    assert (answer.status_code, answers.waited) == (202, [(operation, 2.5)])
    assert answer.headers["location"] == f"/v1/operations/{operation}"


def test_who_does_not_wait_is_told_that_it_was_taken(
    client: TestClient, answers: FakeAnswers
) -> None:
    answers.reply = make_reply()
    assert client.post(START, params={"wait": 0}).status_code == 202
    assert answers.waited == []


@pytest.mark.parametrize("wait", ["-1", "10.1", "inf", "nan", "soon"])
def test_a_wait_that_cannot_be_is_refused_before_anything_is_done(wait: str) -> None:
    kafka = FakeKafka()
    answer = local_client(make_app(kafka)).post(START, params={"wait": wait})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "query.wait")
    assert kafka.written == []


def test_how_long_a_command_was_held_is_not_how_slow_ingress_is(client: TestClient) -> None:
    def measured() -> float | None:
        scrape = read_scrape(client.get("/metrics").text)
        labels = {"route": "/v1/pipelines/{pipeline}/start", "method": "POST"}
        return scrape.value("waybill_http_request_seconds_count", **labels)

    client.post(START, params={"wait": 0})
    before = measured()
    client.post(START)
    assert measured() == before


def test_nobody_waits_for_answers_that_are_not_followed() -> None:
    """The topic is not read to its end, or no longer: the answer is that the command was taken."""
    pipelines = TopicFollower("nowhere", "waybill.pipelines", PipelineRecord, lambda record: None)
    answers = FollowedAnswers("nowhere", "waybill", pipelines, lambda reply: None, since_ms=0)

    async def ask() -> object:
        async with asyncio.timeout(5):
            return await answers.within(ANYONE, OPERATION, 10)

    assert asyncio.run(ask()) is None


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_the_documentation_shows_each_answer(client: TestClient, method: str, path: str) -> None:
    document = client.get("/openapi.json").json()
    described = document["paths"][path.replace("orders", "{pipeline}")][method.lower()]
    answers: dict[str, Any] = described["responses"]
    assert {"200", "202", "409", "422", "503"} <= answers.keys()
    for status, slug in (
        ("409", "superseded"),
        ("422", "plan_incompatible"),
        ("503", "command_given_up"),
    ):
        content = answers[status]["content"]["application/problem+json"]
        example = content["examples"][slug]["value"]
        assert (example["status"], example["state"]) == (int(status), "failed")
        assert (
            OperationAnswer.model_fields.keys() - {"result"} <= example.keys()
        )  # null is left out
    (wait,) = (each for each in described["parameters"] if each["name"] == "wait")
    assert (wait["schema"]["default"], wait["schema"]["maximum"]) == (1.0, 10)
