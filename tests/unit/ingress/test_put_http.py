"""A record that a person puts into its dead-letter topic, over HTTP."""

import json

import pytest
from fastapi.testclient import TestClient

from unit.ingress.fakes import FakeKafka
from waybill_shared.contract.codec import decode
from waybill_shared.contract.commands import PutDeadLetter, Restart, StopMode
from waybill_shared.contract.events import Command

PATH = "/v1/pipelines/orders/dead-letters"
BODY = {"topic": "orders.in", "partition": 0, "offset": 40, "reason": "ends it", "stage": "load"}


def test_it_is_a_restart_that_kills_the_driver(client: TestClient, kafka: FakeKafka) -> None:
    answer = client.post(PATH, json=BODY)
    assert (answer.status_code, answer.json()["action"]) == (202, "restart")
    (written,) = kafka.written
    record = PutDeadLetter(topic="orders.in", partition=0, offset=40, reason="ends it")
    asked = Restart(mode=StopMode.FORCE, stage="load", dead_letter=record)
    assert decode(Command, written.value).body == asked


@pytest.mark.parametrize(
    "wrong", [{"offset": -1}, {"partition": "0"}, {"reason": ""}, {"reason": "x" * 201}, {"at": 1}]
)
def test_a_body_that_says_something_else_is_refused(
    client: TestClient, kafka: FakeKafka, wrong: dict[str, object]
) -> None:
    answer = client.post(PATH, content=json.dumps({**BODY, **wrong}))
    assert answer.status_code == 422
    assert kafka.written == []
