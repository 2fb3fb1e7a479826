"""A rescale over HTTP: a body with one number."""

import pytest
from fastapi.testclient import TestClient

from unit.ingress.fakes import FakeKafka
from waybill_shared.contract.codec import decode
from waybill_shared.contract.commands import Rescale
from waybill_shared.contract.events import Command

PATH = "/v1/pipelines/orders/rescale"


def test_a_rescale_says_how_many_tasks_run_at_once(client: TestClient, kafka: FakeKafka) -> None:
    answer = client.post(PATH, json={"parallelism": 4})
    assert (answer.status_code, answer.json()["action"]) == (202, "rescale")
    (written,) = kafka.written
    assert decode(Command, written.value).body == Rescale(parallelism=4)
    missing = client.post("/v1/pipelines/other/rescale", json={"parallelism": 4})
    assert missing.status_code == 404


@pytest.mark.parametrize(
    "body",
    ['{"parallelism": 0}', '{"parallelism": 10001}', '{"parallelism": "4"}', "{}", "", "[4]"],
)
def test_a_rescale_to_no_number_is_refused(client: TestClient, kafka: FakeKafka, body: str) -> None:
    answer = client.post(PATH, content=body)
    assert answer.status_code == 422
    assert kafka.written == []
