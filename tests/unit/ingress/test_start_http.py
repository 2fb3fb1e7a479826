"""A start over HTTP: of a pipeline, or of one of its stages that have failed."""

import pytest
from fastapi.testclient import TestClient

from unit.ingress.fakes import FakeKafka
from waybill_shared.contract.codec import decode
from waybill_shared.contract.commands import Start
from waybill_shared.contract.events import Command


@pytest.mark.parametrize(("params", "stage"), [({}, None), ({"stage": "load"}, "load")])
def test_a_start_may_name_one_stage(
    client: TestClient, kafka: FakeKafka, params: dict[str, str], stage: str | None
) -> None:
    answer = client.post("/v1/pipelines/orders/start", params=params)
    assert (answer.status_code, answer.json()["action"]) == (202, "start")
    (written,) = kafka.written
    assert decode(Command, written.value).body == Start(stage=stage)
