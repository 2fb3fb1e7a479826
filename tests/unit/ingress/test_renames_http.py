"""A rename over HTTP: a body with one name, and what became of it."""

import pytest
from fastapi.testclient import TestClient

from unit.ingress.fakes import FakeAnswers, FakeKafka
from waybill_shared.contract.codec import decode
from waybill_shared.contract.commands import Rename
from waybill_shared.contract.events import Command, Reply
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action, OperationState

PATH = "/v1/pipelines/orders/rename"


def reply(state: OperationState, problem: Slug | None = None) -> Reply:
    return Reply(
        tenant="default",
        pipeline_uid="next-sales",
        id="rename.sales.1",
        pipeline="sales",
        action=Action.RENAME,
        actor="anonymous",
        state=state,
        generation=None,
        errors=(),
        warnings=(),
        at=0,
        problem=problem,
    )


def bodies(kafka: FakeKafka) -> list[object]:
    return [decode(Command, written.value).body for written in kafka.written]


def test_name_that_another_one_gets_is_refused(
    client: TestClient, kafka: FakeKafka, answers: FakeAnswers
) -> None:
    answers.reply = reply(OperationState.FAILED, Slug.NAME_IN_USE)
    answer = client.post(PATH, json={"to": "sales"})
    assert answer.status_code == 409
    assert answer.json()["type"].endswith(":name_in_use")
    assert bodies(kafka) == [Rename(name="sales", reserved_for="uid-1", reserved_in=2)]


def test_name_that_nobody_answers_for_is_asked_for_again(
    client: TestClient, kafka: FakeKafka, answers: FakeAnswers
) -> None:
    answer = client.post(PATH, json={"to": "sales"})
    assert answer.status_code == 503
    assert "it goes on" in answer.json()["detail"]


def test_name_that_it_has_is_sent_at_once(client: TestClient, kafka: FakeKafka) -> None:
    answer = client.post(f"{PATH}?wait=0", json={"to": "orders"})
    assert (answer.status_code, answer.json()["action"]) == (202, "rename")
    assert bodies(kafka) == [Rename(name="orders")]


@pytest.mark.parametrize("body", ['{"to": "Sales"}', '{"to": ""}', "{}", "", '{"to": 4}'])
def test_what_is_no_name_is_refused(client: TestClient, kafka: FakeKafka, body: str) -> None:
    assert client.post(PATH, content=body).status_code == 422
    assert kafka.written == []


def test_request_with_a_key_reserves_the_name_before_its_transaction_and_once(
    client: TestClient, kafka: FakeKafka, answers: FakeAnswers
) -> None:
    key = {"Idempotency-Key": "k1"}
    assert client.post(PATH, json={"to": "sales"}, headers=key).status_code == 503
    answers.reply = reply(OperationState.FAILED, Slug.NAME_IN_USE)
    assert client.post(PATH, json={"to": "sales"}, headers=key).status_code == 409
    first = client.post(f"{PATH}?wait=0", json={"to": "orders"}, headers={"Idempotency-Key": "k2"})
    again = client.post(f"{PATH}?wait=0", json={"to": "orders"}, headers={"Idempotency-Key": "k2"})
    assert (first.json(), again.headers["idempotent-replayed"]) == (again.json(), "true")
    assert len(answers.waited) == 2
