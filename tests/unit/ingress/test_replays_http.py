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


def test_an_edited_record_is_sent_as_text_or_in_base64(
    client: TestClient, letters: FakeLetters
) -> None:
    wanted = {"ids": [letters.bury(17)]}
    text, base64 = {"value": '{"id": 7}'}, {"value_base64": "eyJpZCI6IDd9"}
    first = client.post(PATH, json={**wanted, "edited": text}).json()
    same = client.post(PATH, json={**wanted, "edited": base64}).json()
    assert (same["token"], same["already"]) == (first["token"], 1)
    other = client.post(PATH, json={**wanted, "edited": {**text, "key": None}})
    assert other.json()["type"] == "urn:waybill:problem:replayed_before"
    wrong = client.post(PATH, json={**wanted, "again": True, "edited": {"value": "{"}})
    assert (wrong.status_code, wrong.json()["rejected"][0]["index"]) == (422, 0)


@pytest.mark.parametrize(
    "edited",
    [
        {},
        {"value": "a", "value_base64": "YQ=="},
        {"key_base64": "?"},
        {"value": 1},
        {"headers": []},
    ],
)
def test_an_edit_that_says_nothing_or_too_much_is_invalid(
    client: TestClient, letters: FakeLetters, edited: dict[str, object]
) -> None:
    answer = client.post(PATH, json={"ids": [letters.bury(17)], "edited": edited})
    assert (answer.status_code, answer.json()["title"]) == (422, "invalid")


def test_an_edit_is_of_one_letter(client: TestClient, letters: FakeLetters) -> None:
    ids = [letters.bury(1), letters.bury(2)]
    answer = client.post(PATH, json={"ids": ids, "edited": {"value": '{"id": 7}'}})
    assert (answer.status_code, answer.json()["title"]) == (422, "invalid")


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
