"""Ingress over HTTP, with a Kafka in memory: status codes, problems, ids, limits."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from local_client import local_client
from unit.ingress.fakes import MANIFEST, NEW_ID, OLD_ID, FakeKafka, sealed_token, span, unsealed
from unit.ingress.in_memory import BODY_BYTES_MAX, make_app
from waybill_ingress.core.bodies.forms import FORMS
from waybill_shared.access.api_keys import add_key
from waybill_shared.access.authentication import KeysInForce
from waybill_shared.contract.codec import decode
from waybill_shared.contract.events import Command
from waybill_shared.contract.routes import Scope
from waybill_shared.process.clock import SystemClock

RECORDS = "/v1/pipelines/orders/inputs/orders/records"
NDJSON = {"Content-Type": "application/x-ndjson"}


def test_records_are_answered_with_a_token(client: TestClient) -> None:
    answer = client.post(
        RECORDS, content=b'{"id": 1}\nx', headers={**NDJSON, "X-Request-Id": "mine"}
    )
    assert answer.status_code == 200
    assert answer.headers["x-request-id"] == "mine"
    assert answer.json() == {
        "token": "wb1.token",
        "accepted": 1,
        "rejected": [{"index": 1, "reason": "not JSON at character 1: Expecting value"}],
        "request_id": "mine",
    }


@pytest.mark.parametrize(
    ("headers", "slug"),
    [
        ({"Content-Type": "text/xml"}, "unsupported_media_type"),
        ({"Content-Type": ""}, "unsupported_media_type"),
        ({**NDJSON, "Content-Encoding": "br"}, "unsupported_encoding"),
        ({**NDJSON, "Content-Encoding": "gzip, gzip"}, "unsupported_encoding"),
    ],
)
def test_other_forms_are_refused(client: TestClient, headers: dict[str, str], slug: str) -> None:
    answer = client.post(RECORDS, content=b'{"id": 1}', headers=headers)
    assert answer.status_code == 415
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == f"urn:waybill:problem:{slug}"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_an_atomic_request_is_refused_for_one_bad_record(
    client: TestClient, kafka: FakeKafka
) -> None:
    answer = client.post(f"{RECORDS}?atomic=true", content=b'{"id": 1}\nx', headers=NDJSON)
    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:waybill:problem:records_rejected"
    assert [each["index"] for each in answer.json()["rejected"]] == [1]
    assert kafka.written == []
    assert client.post(f"{RECORDS}?atomic=false", content=b"x", headers=NDJSON).status_code == 422


def test_atomic_is_true_or_false(client: TestClient, kafka: FakeKafka) -> None:
    answer = client.post(f"{RECORDS}?atomic=yes", content=b'{"id": 1}', headers=NDJSON)
    assert (answer.status_code, kafka.written) == (422, [])
    assert answer.json()["detail"] == "query.atomic: 'yes' is neither true nor false"
    (error,) = answer.json()["errors"]
    assert error == {"message": "'yes' is neither true nor false", "path": "query.atomic"}


def test_the_documentation_tells_of_records_that_are_rejected(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    described = document["paths"]["/v1/pipelines/{pipeline}/inputs/{input}/records"]["post"]
    assert "`rejected` has the others" in described["responses"]["200"]["description"]
    assert "atomic" in [parameter["name"] for parameter in described["parameters"]]


def test_a_content_type_may_have_parameters(client: TestClient) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert client.post(RECORDS, content=b'[{"id": 1}]', headers=headers).status_code == 200


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_above_the_cap_is_refused(
    client: TestClient, kafka: FakeKafka, declared: bool
) -> None:
    body = b'{"id": 1}\n' * 101
    content = body if declared else iter([body[:500], body[500:]])
    answer = client.post(RECORDS, content=content, headers=NDJSON)
    assert answer.status_code == 413
    assert answer.json()["bytes_max"] == BODY_BYTES_MAX
    assert kafka.written == []


def test_too_many_records_are_refused(client: TestClient) -> None:
    assert client.post(RECORDS, content=b"{}\n" * 11, headers=NDJSON).status_code == 413


def test_what_is_not_ready_says_when_to_come_again(client: TestClient, kafka: FakeKafka) -> None:
    kafka.away = True
    answer = client.post(RECORDS, content=b'{"id": 1}', headers=NDJSON)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["detail"] == "kafka is away"


def test_a_manifest_is_taken_and_answered_with_its_operation(client: TestClient) -> None:
    answer = client.put("/v1/pipelines/orders", content=MANIFEST)
    assert answer.status_code == 202
    operation = f"apply.orders.{'ab' * 16}"
    assert answer.headers["location"] == f"/v1/operations/{operation}"
    assert answer.json() == {"operation": operation, "pipeline": "orders", "action": "apply"}


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", ""), ("POST", "/start"), ("POST", "/restart"), ("DELETE", "")]
)
def test_a_command_carries_the_id_of_the_key_that_sent_it(
    kafka: FakeKafka, tmp_path: Path, method: str, path: str
) -> None:
    file, now = tmp_path / "api_keys.json", datetime(2026, 11, 21, tzinfo=UTC)
    key, kept = add_key(file, frozenset({Scope.ADMIN}), env="test", now=now)
    client = local_client(make_app(kafka, KeysInForce(file, SystemClock())))
    headers = {"Authorization": f"Bearer {key}"}
    body = MANIFEST if method == "PUT" else None
    answer = client.request(method, f"/v1/pipelines/orders{path}", headers=headers, content=body)
    assert answer.status_code == 202
    assert decode(Command, kafka.written[0].value).actor == kept.id


def test_where_no_keys_are_in_use_a_command_is_anonymous(
    client: TestClient, kafka: FakeKafka
) -> None:
    client.post("/v1/pipelines/orders/stop")
    assert decode(Command, kafka.written[0].value).actor == "anonymous"


def test_an_invalid_manifest_names_the_place(client: TestClient) -> None:
    answer = client.put("/v1/pipelines/orders", content=MANIFEST.replace("key: name", "key: nme"))
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["line"], error["path"]) == (8, "inputs.0.key")
    assert "columns: id, name" in error["hint"]


def test_a_manifest_that_is_too_large_or_no_text_is_refused(client: TestClient) -> None:
    assert client.put("/v1/pipelines/orders", content=b"#" * 70_000).status_code == 413
    answer = client.put("/v1/pipelines/orders", content=b"name: \xff")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["message"] == "byte 7 is not UTF-8"


@pytest.mark.parametrize(
    ("method", "path", "action"),
    [
        ("POST", "/start", "start"),
        ("POST", "/stop", "stop"),
        ("POST", "/pause", "pause"),
        ("POST", "/resume", "resume"),
        ("POST", "/restart", "restart"),
        ("POST", "/restart?mode=force", "restart"),
        ("POST", "/restart?from=latest", "restart"),
        ("DELETE", "", "delete"),
    ],
)
def test_a_pipeline_is_started_stopped_restarted_deleted(
    client: TestClient, method: str, path: str, action: str
) -> None:
    answer = client.request(method, f"/v1/pipelines/orders{path}")
    assert (answer.status_code, answer.json()["action"]) == (202, action)
    assert client.request(method, f"/v1/pipelines/other{path}").status_code == 404


def test_a_recreated_topic_is_refused_with_the_command_that_goes_on(
    client: TestClient, kafka: FakeKafka
) -> None:
    kafka.topic_id = NEW_ID
    answer = client.post(RECORDS, content=b'{"id": 1}', headers=NDJSON)
    assert answer.status_code == 503
    assert "`waybill restart orders --from earliest`" in answer.json()["hint"]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"pipeline": "orders"}, ""),
        ({"pipeline": "orders", "input": "orders", "positions": []}, "positions"),
        ({"pipeline": "orders", "positions": [{"topic": "t", "partition": 0}]}, "positions.0"),
        (
            {"pipeline": "orders", "positions": [{"topic": "t", "partition": "0", "offset": 1}]},
            "positions.0.partition",
        ),
        (
            {
                "pipeline": "orders",
                "positions": [{"topic": "t", "partition": 0, "start": 3, "end": 3}],
            },
            "positions.0",
        ),
        ({"pipeline": "orders", "input": "orders", "inputs": 1}, "inputs"),
        ({"input": "orders"}, ""),
        ({"merge": []}, "merge"),
        ({"merge": ["wb1.x"], "pipeline": "orders"}, ""),
        ({"merge": ["wb1.x"], "positions": []}, "positions"),
        ({"pipeline": "orders", "input": "orders", "cluster_id": "x"}, ""),
    ],
)
def test_a_malformed_question_for_a_token_names_the_place(
    client: TestClient, body: dict[str, object], place: str
) -> None:
    answer = client.post("/v1/tokens", json=body)
    assert answer.status_code == 422
    assert place in [error["path"] for error in answer.json()["errors"]]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (
            {"pipelin": "orders", "input": "orders", "cluster_id": "c"},
            (
                "pipelin: unknown field: did you mean 'pipeline'?"
                " fields: pipeline, input, connector, positions, cluster_id, merge"
            ),
        ),
        (
            {"pipeline": "orders", "positions": [{"topic": "t", "partition": 0, "offst": 3}]},
            (
                "positions.0.offst: unknown field: did you mean 'offset'?"
                " fields: topic, topic_id, partition, offset, start, end"
            ),
        ),
        (
            {"pipeline": "orders", "positions": [{"topic": "t", "offset": 3}]},
            "positions.0.partition: is missing",
        ),
        ({"pipeline": "orders", "input": 3}, "input: Input should be a valid string"),
    ],
)
def test_a_field_that_is_wrong_is_named_with_the_nearest_right_one(
    client: TestClient, body: dict[str, object], detail: str
) -> None:
    answer = client.post("/v1/tokens", json=body)
    assert (answer.status_code, answer.json()["detail"]) == (422, detail)


def test_tokens_become_one(client: TestClient) -> None:
    first, second = sealed_token(span(0, 0, 3)), sealed_token(span(0, 3, 5))
    answer = client.post("/v1/tokens", json={"merge": [first, second]})
    assert answer.status_code == 200
    assert answer.json()["pipeline"] is None
    assert unsealed(answer.json()["token"]).parts == unsealed(sealed_token(span(0, 0, 5))).parts


def test_what_is_no_token_is_named_by_its_place(client: TestClient) -> None:
    good = sealed_token(span(0, 0, 3))
    answer = client.post("/v1/tokens", json={"merge": [good, "wb1.forged", good, good[:-4]]})
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:waybill:problem:token_not_found"
    assert answer.json()["detail"] == "merge[1]: no such token, and 1 more"
    assert [row["index"] for row in answer.json()["rejected"]] == [1, 3]


def test_positions_of_another_kafka_are_refused(client: TestClient, kafka: FakeKafka) -> None:
    kafka.ends_now = {0: 9, 1: 9}
    positions = [{"topic": "orders.in", "topic_id": OLD_ID, "partition": 0, "offset": 1}]
    body = {"pipeline": "orders", "positions": positions}
    answer = client.post("/v1/tokens", json={**body, "cluster_id": "cluster-2"})
    assert answer.status_code == 400
    assert "cluster cluster-2, the pipeline reads from cluster-1" in answer.json()["detail"]
    assert client.post("/v1/tokens", json={**body, "cluster_id": "cluster-1"}).status_code == 200


def test_the_documentation_names_answers_and_bodies(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    writing = paths["/v1/pipelines/{pipeline}/inputs/{input}/records"]["post"]
    assert set(writing["requestBody"]["content"]) == set(FORMS)
    assert paths["/v1/pipelines/{pipeline}/start"]["post"]["summary"]
    (start_from,) = (
        parameter
        for parameter in paths["/v1/pipelines/{pipeline}/restart"]["post"]["parameters"]
        if parameter["name"] == "from"
    )
    assert (start_from["in"], start_from["required"]) == ("query", False)
    assert start_from["description"]
    assert "requestBody" in paths["/v1/tokens"]["post"]


def test_a_fault_of_ours_is_a_problem_with_its_request_id(
    client: TestClient, kafka: FakeKafka
) -> None:
    kafka.failing = None  # type: ignore[assignment]
    answer = client.post(RECORDS, content=b'{"id": 1}', headers=NDJSON)
    assert answer.status_code == 500
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_an_unknown_address_is_a_problem(client: TestClient) -> None:
    answer = client.get("/v1/nothing")
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:waybill:problem:not_found"
    assert client.get("/v1/tokens").status_code == 405
