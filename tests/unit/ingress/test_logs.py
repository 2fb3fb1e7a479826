"""`GET …/logs`: who is asked, and what is answered."""

import json

import pytest
from fastapi.testclient import TestClient

from message_builders import make_reply
from unit.ingress.fakes import FakeAnswers, FakeKafka
from waybill_shared.contract.codec import decode
from waybill_shared.contract.commands import Logs
from waybill_shared.contract.events import Command
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action

PATH = "/v1/pipelines/orders/logs"
ID = f"logs.orders.{'ab' * 16}"
TOLD = {"pipeline": "orders", "lines": ["first", "last"]}


@pytest.mark.parametrize(("query", "lines"), [("", 200), ("?lines=5", 5)])
def test_who_runs_the_pipeline_is_asked_and_answers(
    client: TestClient, kafka: FakeKafka, answers: FakeAnswers, query: str, lines: int
) -> None:
    answers.reply = make_reply(id=ID, action=Action.LOGS, result=json.dumps(TOLD))
    answer = client.get(PATH + query)
    assert (answer.status_code, answer.json()) == (200, TOLD)
    (record,) = kafka.written
    written = decode(Command, record.value)
    assert (kafka.topics, record.key) == (["waybill.commands"], b"default/uid-1")
    assert (written.action, written.pipeline_uid) == (Action.LOGS, "ab" * 16)
    assert written.body == Logs(about="uid-1", lines=lines)


def test_a_runner_that_is_silent_is_no_empty_log(client: TestClient) -> None:
    answer = client.get(PATH)
    assert answer.status_code == 503
    assert "the runner of orders has not answered" in answer.json()["detail"]


def test_a_pipeline_that_went_meanwhile_is_told(client: TestClient, answers: FakeAnswers) -> None:
    answers.reply = make_reply("failed", id=ID, action=Action.LOGS, problem=Slug.PIPELINE_GONE)
    answer = client.get(PATH)
    assert answer.json()["type"].endswith("pipeline_gone")


@pytest.mark.parametrize(
    ("path", "status"),
    [("/v1/pipelines/others/logs", 404), (f"{PATH}?lines=0", 422), (f"{PATH}?lines=1001", 422)],
)
def test_what_cannot_be_asked_is_refused(
    client: TestClient, kafka: FakeKafka, path: str, status: int
) -> None:
    assert client.get(path).status_code == status
    assert kafka.written == []
