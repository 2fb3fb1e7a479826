"""`POST /v1/validate`: what is refused at once, what is written, and what is answered."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from ruamel.yaml import YAML

from builders import applied
from message_builders import make_reply
from unit.ingress.fakes import MANIFEST, FakeAnswers, FakeKafka
from waybill_ingress.adapters.http.manifest_models import FindingsAnswer, ValidateRequest
from waybill_shared.contract.codec import decode
from waybill_shared.contract.commands import Validate
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Command
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.words import Action
from waybill_shared.http.examples import example
from waybill_stage_runner.core.pipelines.change import Change
from waybill_stage_runner.core.pipelines.validation_result import validation_result

PATH = "/v1/validate"
FINDINGS = example("ingress/findings")
FOREIGN: list[dict[str, Any]] = YAML(typ="safe", pure=True).load(
    Path(__file__).parents[2] / "foreign.yaml"
)
ID = f"validate.orders.{'ab' * 16}"
AS_OBJECT: dict[str, Any] = {
    "version": 1,
    "name": "orders",
    "inputs": [{"name": "orders", "kafka": {"topic": "orders.in"}, "schema": "id BIGINT"}],
    "stages": [
        {
            "name": "copy",
            "inputs": ["orders"],
            "sinks": [{"name": "out", "kafka": {"topic": "orders.out"}}],
        }
    ],
}


def written(kafka: FakeKafka) -> Command:
    (record,) = kafka.written
    return decode(Command, record.value)


@pytest.mark.parametrize(
    "file", [each for each in FOREIGN if each.get("by") != "convert"], ids=lambda file: file["what"]
)
def test_a_file_of_another_system_is_refused_with_the_way(
    client: TestClient, kafka: FakeKafka, file: dict[str, Any]
) -> None:
    """By a check and by apply, before anything is written."""
    for answer in (
        client.post(PATH, json={"manifest": file["text"]}),
        client.put("/v1/pipelines/orders", content=file["text"].encode()),
    ):
        errors = answer.json()["errors"]
        assert answer.status_code == 422
        seen = [f"{e['line']}:{e['column']}: {e['message']} ({e['hint']})" for e in errors]
        assert seen == file["seen"]
    assert not kafka.written


def test_what_was_found_is_the_answer(
    client: TestClient, kafka: FakeKafka, answers: FakeAnswers
) -> None:
    answers.reply = make_reply(id=ID, action=Action.VALIDATE, result=json.dumps(FINDINGS))
    answer = client.post(PATH, json={"manifest": MANIFEST})
    assert (answer.status_code, answer.json()) == (200, FINDINGS)
    assert answers.waited == [(ID, 10.0)]
    assert written(kafka).action == "validate"
    assert written(kafka).id == ID


def test_a_validation_goes_to_who_runs_the_pipeline(client: TestClient, kafka: FakeKafka) -> None:
    """But has a uid of its own: no command of `orders` waits for this one, nor it for them."""
    client.post(PATH, json={"manifest": MANIFEST})
    (record,) = kafka.written
    assert (kafka.topics, record.key) == (["waybill.commands"], b"default/uid-1")
    assert written(kafka).body == Validate(manifest=applied(MANIFEST), about="uid-1")
    assert written(kafka).pipeline_uid == "ab" * 16


def test_a_validation_of_no_pipeline_has_a_key_of_its_own(
    client: TestClient, kafka: FakeKafka
) -> None:
    manifest = MANIFEST.replace("name: orders\n", "name: new\n", 1)
    client.post(PATH, json={"manifest": manifest})
    (record,) = kafka.written
    assert record.key == f"default/{'ab' * 16}".encode()
    assert written(kafka).body == Validate(manifest=applied(manifest))


def test_what_is_not_found_in_time_was_taken(client: TestClient) -> None:
    answer = client.post(PATH, json={"manifest": MANIFEST})
    assert (answer.status_code, answer.json()["operation"]) == (202, ID)
    assert answer.headers["location"] == f"/v1/operations/{ID}"


@pytest.mark.parametrize(
    ("problem", "status"), [("invalid", 422), ("internal", 500), ("too_many_checks", 429)]
)
def test_a_check_that_was_not_made_is_a_problem(
    client: TestClient, answers: FakeAnswers, problem: str, status: int
) -> None:
    answers.reply = make_reply("failed", id=ID, action=Action.VALIDATE, problem=problem)
    answer = client.post(PATH, json={"manifest": MANIFEST})
    assert (answer.status_code, answer.json()["id"]) == (status, ID)
    assert answer.json()["type"] == f"urn:waybill:problem:{problem}"
    assert ("retry-after" in answer.headers) == (status == 429)


def test_what_was_found_and_not_kept_is_asked_for_again(
    client: TestClient, answers: FakeAnswers
) -> None:
    answers.reply = make_reply(id=ID, action=Action.VALIDATE, result=None)
    answer = client.post(PATH, json={"manifest": MANIFEST})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_a_manifest_of_a_wrong_shape_is_refused_at_once(
    client: TestClient, kafka: FakeKafka
) -> None:
    answer = client.post(PATH, json={"manifest": MANIFEST.replace("kafka:", "kafak:")})
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:waybill:problem:invalid")
    told = [(each["line"], each["hint"]) for each in answer.json()["errors"]]
    assert told == [(6, "did you mean 'kafka'?"), (10, "did you mean 'kafka'?")]
    assert kafka.written == []


@pytest.mark.parametrize(
    "body",
    [
        {"manifest": "x: " + "é" * 32_768},
        {"manifest": {"version": 1, "name": "é" * 32_768}},
        {"manifest": 7},
        {"manifest": None},
        {},
        {"manifest": MANIFEST, "name": "orders"},
    ],
)
def test_a_body_that_cannot_be_is_refused_at_once(
    client: TestClient, kafka: FakeKafka, body: dict[str, Any]
) -> None:
    answer = client.post(PATH, json=body)
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:waybill:problem:invalid")
    assert answer.json()["errors"]
    assert kafka.written == []


def test_a_body_that_no_manifest_needs_is_not_read(client: TestClient) -> None:
    answer = client.post(PATH, json={"manifest": "x" * 300_000})
    assert (answer.status_code, answer.json()["type"]) == (
        413,
        "urn:waybill:problem:body_too_large",
    )


def test_a_manifest_may_be_an_object_which_has_no_lines(
    client: TestClient, kafka: FakeKafka
) -> None:
    assert client.post(PATH, json={"manifest": AS_OBJECT}).status_code == 202
    body = written(kafka).body
    assert isinstance(body, Validate)
    assert (json.loads(body.manifest.native), body.manifest.places) == (AS_OBJECT, ())

    answer = client.post(PATH, json={"manifest": {**AS_OBJECT, "version": 2}})
    (error,) = answer.json()["errors"]
    assert (error["path"], error["line"], error["column"]) == ("version", None, None)


def test_the_documentation_shows_each_answer(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    described = document["paths"][PATH]["post"]
    assert {"200", "202", "422", "429", "500"} <= described["responses"].keys()
    schema = described["requestBody"]["content"]["application/json"]["schema"]
    text = schema["example"]["manifest"]
    read_manifest(text)
    documented = FindingsAnswer.model_validate(FINDINGS)
    (error,) = documented.errors
    assert error.line is not None
    assert error.column is not None
    assert text.splitlines()[error.line - 1][error.column - 1 :].startswith("ordrs")


def test_what_a_runner_has_found_is_as_the_documentation_shows_it() -> None:
    text = ValidateRequest.model_json_schema()["example"]["manifest"]
    problems = [Problem(**error) for error in FINDINGS["errors"]]
    changes = [Change(**change) for change in FINDINGS["changes"]]
    told = validation_result(
        Validate(manifest=applied(text)),
        problems,
        {"copy": {"copied": "`order_id` bigint"}},
        changes,
    )
    assert json.loads(told) == FINDINGS
