"""`POST /v1/propose`: columns for a topic, or the problem that says why there are none."""

import pytest
from fastapi.testclient import TestClient

from local_client import local_client
from unit.ingress.fakes import FakeKafka, FakeSamples
from unit.ingress.in_memory import make_app
from waybill_ingress.adapters.http.manifest_models import ProposalAnswer, ProposeRequest

PATH = "/v1/propose"


@pytest.fixture
def samples() -> FakeSamples:
    return FakeSamples(values=[b'{"id": 1, "note": null}', b'{"id": 2}'])


@pytest.fixture
def client(kafka: FakeKafka, samples: FakeSamples) -> TestClient:
    return local_client(make_app(kafka, samples=samples), raise_server_exceptions=False)


def test_columns_are_proposed_and_nothing_is_written(client: TestClient, kafka: FakeKafka) -> None:
    answer = client.post(PATH, json={"topic": "orders.in"})
    assert answer.status_code == 200
    assert answer.json() == {
        "topic": "orders.in",
        "records": 2,
        "schema": "id BIGINT, note STRING",
        "notes": ["note: STRING, for no record has a value of it"],
    }
    assert ProposalAnswer.model_validate(answer.json())
    assert kafka.written == []


def test_topic_that_is_not_there_is_not_found(client: TestClient, kafka: FakeKafka) -> None:
    kafka.topic_id = None
    answer = client.post(PATH, json={"topic": "orders.in"})
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:waybill:problem:topic_not_found"
    assert answer.json()["detail"] == "there is no topic orders.in"


@pytest.mark.parametrize("body", [{"topic": "waybill.commits"}, {"topic": 7}, {}, {"topics": "a"}])
def test_wrong_request_is_invalid(client: TestClient, body: dict[str, object]) -> None:
    answer = client.post(PATH, json=body)
    assert (answer.status_code, answer.json()["title"]) == (422, "invalid")
    assert answer.json()["errors"][0]["path"].startswith("topic")


def test_empty_topic_has_nothing_to_propose(client: TestClient, samples: FakeSamples) -> None:
    samples.values = []
    answer = client.post(PATH, json={"topic": "orders.in"})
    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:waybill:problem:nothing_to_propose"
    assert "send some records first" in answer.json()["hint"]


def test_kafka_that_does_not_answer_is_a_matter_of_time(
    client: TestClient, samples: FakeSamples
) -> None:
    samples.away = True
    assert client.post(PATH, json={"topic": "orders.in"}).status_code == 503


def test_examples_are_of_their_models() -> None:
    for model in (ProposeRequest, ProposalAnswer):
        extra = model.model_config["json_schema_extra"]
        assert isinstance(extra, dict)
        assert model.model_validate(extra["example"])
