"""`POST …/dead-letters/replay`: what is asked, what is answered, and what is refused."""

import pytest
from fastapi.testclient import TestClient

from local_client import local_client
from unit.ingress.fakes import FakeKafka, unsealed
from unit.ingress.graves import FakeLetters, burying_pipeline, place
from unit.ingress.in_memory import make_app
from waybill_ingress.adapters.http.models import ReplayAnswer, ReplayRequest
from waybill_ingress.core.dead_letters import LETTERS_MAX

PATH = "/v1/pipelines/orders/dead-letters/replay"


@pytest.fixture
def letters() -> FakeLetters:
    return FakeLetters()


@pytest.fixture
def client(letters: FakeLetters) -> TestClient:
    app = make_app(FakeKafka(), letters=letters, known_pipeline=burying_pipeline())
    return local_client(app, raise_server_exceptions=False)


def test_replay_is_answered_with_a_token_and_the_same_one_again(
    client: TestClient, letters: FakeLetters
) -> None:
    wanted = {"ids": [letters.bury(17)]}
    answer = client.post(PATH, json=wanted, headers={"X-Request-Id": "mine"})
    assert answer.status_code == 200
    told = answer.json()
    assert (told["replayed"], told["already"], told["request_id"]) == (1, 0, "mine")
    (part,) = unsealed(told["token"]).parts
    assert (part.generation, part.into) == (2, ("copy/copy@1", "copy/lake@1"))
    assert told["sinks"] == ["copy/copy", "copy/lake"]
    assert ReplayAnswer.model_validate(told)
    same = client.post(PATH, json=wanted).json()
    assert (same["token"], same["replayed"], same["already"]) == (told["token"], 0, 1)
    again = client.post(PATH, json={**wanted, "again": True}).json()
    assert again["token"] != told["token"]
    assert again["replayed"] == 1


def test_letter_that_is_not_there_is_not_found(client: TestClient) -> None:
    answer = client.post(PATH, json={"ids": [str(place(4))]})
    assert answer.status_code == 404
    problem = answer.json()
    assert problem["type"] == "urn:waybill:problem:dead_letter_not_found"
    reason = "it is no dead letter of pipeline orders"
    assert problem["rejected"] == [
        {"index": 0, "problem": "dead_letter_not_found", "reason": reason}
    ]


def test_pipeline_that_is_not_there_is_not_found(client: TestClient) -> None:
    answer = client.post(PATH.replace("orders", "nobody"), json={"ids": ["x"]})
    assert answer.json()["type"] == "urn:waybill:problem:pipeline_not_found"


def test_generation_that_is_not_known_is_a_matter_of_moments(
    client: TestClient, letters: FakeLetters
) -> None:
    wanted = {"ids": [letters.bury(17)]}
    answer = client.post(PATH, json=wanted, headers={"If-Match": '"3"'})
    assert answer.json()["type"] == "urn:waybill:problem:pipeline_behind"


@pytest.mark.parametrize("body", [{}, {"ids": []}, {"ids": "x"}, {"ids": [1]}, {"id": ["x"]}])
def test_wrong_request_is_invalid(client: TestClient, body: dict[str, object]) -> None:
    answer = client.post(PATH, json=body)
    assert (answer.status_code, answer.json()["title"]) == (422, "invalid")


def test_too_many_ids_are_too_large(client: TestClient) -> None:
    answer = client.post(PATH, json={"ids": ["x"] * (LETTERS_MAX + 1)})
    assert answer.status_code == 413
    assert answer.json()["letters_max"] == LETTERS_MAX


def test_examples_are_of_their_models() -> None:
    for model in (ReplayRequest, ReplayAnswer):
        extra = model.model_config["json_schema_extra"]
        assert isinstance(extra, dict)
        assert model.model_validate(extra["example"])
