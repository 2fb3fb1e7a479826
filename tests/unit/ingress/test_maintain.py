"""`POST …/sinks/{s}/maintain`: what is refused at once, what is written, and what is answered."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from builders import applied
from local_client import local_client
from message_builders import make_reply
from unit.ingress.fakes import MANIFEST, FakeAnswers, FakeKafka, pipeline, source
from unit.ingress.in_memory import make_app
from waybill_shared.contract.codec import decode
from waybill_shared.contract.commands import Maintain
from waybill_shared.contract.events import Command
from waybill_shared.contract.words import Action

PATH = "/v1/pipelines/orders/sinks/lake/maintain"
ID = f"maintain.orders.{'ab' * 16}"
KEPT = MANIFEST.replace(
    "{name: out,", "{name: lake, iceberg: {table: a.b, maintenance: {compact: {}}}}, {name: out,"
)
DONE = {"sink": "lake", "dry_run": True, "tasks": {"compact": {"files": 12, "into": 1}}}


@pytest.fixture
def client(kafka: FakeKafka, answers: FakeAnswers) -> Iterator[TestClient]:
    known = replace(pipeline(source()), manifest=applied(KEPT))
    app = make_app(kafka, answers=answers, known_pipeline=known)
    with local_client(app, raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize(("query", "dry_run"), [("", False), ("?dry_run=true", True)])
def test_it_goes_to_who_runs_the_pipeline_and_stands_aside(
    client: TestClient, kafka: FakeKafka, query: str, dry_run: bool
) -> None:
    answer = client.post(PATH + query)
    assert (answer.status_code, answer.json()["operation"]) == (202, ID)
    (record,) = kafka.written
    written = decode(Command, record.value)
    assert (kafka.topics, record.key) == (["waybill.commands"], b"default/uid-1")
    assert written.body == Maintain(about="uid-1", sink="lake", dry_run=dry_run)
    assert (written.action, written.pipeline_uid) == (Action.MAINTAIN, "ab" * 16)


def test_what_was_done_is_the_answer(client: TestClient, answers: FakeAnswers) -> None:
    answers.reply = make_reply(id=ID, action=Action.MAINTAIN, result=json.dumps(DONE))
    answer = client.post(PATH)
    assert (answer.status_code, answer.json()["result"]) == (200, DONE)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/v1/pipelines/orders/sinks/river/maintain", 422, "there is no sink river"),
        ("/v1/pipelines/orders/sinks/out/maintain", 422, "of kind kafka"),
        ("/v1/pipelines/others/sinks/lake/maintain", 404, ""),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(
    client: TestClient, kafka: FakeKafka, path: str, status: int, said: str
) -> None:
    answer = client.post(path)
    assert answer.status_code == status
    assert said in answer.text
    assert kafka.written == []
