"""`/v0` of ingress over HTTP, with a Kafka in memory: Feldera's answers and errors."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from clocks import FixedClock
from local_client import local_client
from unit.ingress.fakes import (
    RING,
    FakeAnswers,
    FakeDirectory,
    FakeFetcher,
    FakeKafka,
    pipeline,
    source,
)
from unit.ingress.repeating import World
from waybill_ingress.adapters.http.bodies import RecordSpool
from waybill_ingress.adapters.http.feldera import feldera_commands_router, feldera_router
from waybill_ingress.adapters.http.idempotency import IdempotentRoutes
from waybill_ingress.adapters.sealing_clock import RandomMint
from waybill_ingress.app.commands import Commands
from waybill_ingress.app.idempotency import IdempotentRequests
from waybill_ingress.app.records import Records
from waybill_ingress.app.registry import Registry
from waybill_ingress.app.tokens import TokenIssuer
from waybill_ingress.core.bodies.packed import BodyLimits, UnpackLimits
from waybill_ingress.core.rows import RowLimits
from waybill_shared.http.app import create_app
from waybill_shared.process.health import Health

INGRESS = "/v0/pipelines/orders/ingress/ORDERS"
JSON = {"format": "json", "update_format": "raw"}
LIMITS = BodyLimits(bytes_max=1_000, unpacked=UnpackLimits(bytes_max=1_000, ratio_max=200))


@pytest.fixture
def client(kafka: FakeKafka) -> Iterator[TestClient]:
    mint, directory = RandomMint(RING, FixedClock()), FakeDirectory(pipeline(source()))
    registry = Registry(directory, directory, kafka, mint)
    rows = RowLimits(records_max=10, record_bytes_max=500, bytes_max=10_000_000)
    records = Records(registry, kafka, kafka, mint, rows, spool=RecordSpool)
    process = World().process()
    repeats = IdempotentRoutes(IdempotentRequests(process, process, process, patience_ms=1_000))
    tokens, commands = (
        TokenIssuer(registry, kafka, mint),
        Commands(registry, kafka, mint, "waybill", fetcher=FakeFetcher(), places=dict),
    )
    routers = [
        feldera_router(records, tokens, registry, repeats, limits=LIMITS),
        feldera_commands_router(commands, FakeAnswers(), registry, repeats),
    ]
    with local_client(create_app("ingress", routers, Health())) as client:
        yield client


def post(
    client: TestClient,
    body: str,
    path: str = INGRESS,
    params: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, Any]]:
    answer = client.post(path, content=body, params={**JSON, **(params or {})}, headers=headers)
    return answer.status_code, answer.json()


def test_the_table_is_found_without_regard_to_capitals(
    client: TestClient, kafka: FakeKafka
) -> None:
    status, said = post(client, '{"id": 1}\n{"id": 2}')
    assert (status, list(said)) == (200, ["token"])
    assert [record.value for record in kafka.written] == [b'{"id": 1}', b'{"id": 2}']
    status, said = post(client, "{}", '/v0/pipelines/orders/ingress/"ORDERS"')
    assert (status, said["error_code"]) == (404, "UnknownInputStream")


@pytest.mark.parametrize("body", ["", "[]", " {} \n", "null"])
def test_a_body_without_a_record_has_a_token(
    client: TestClient, kafka: FakeKafka, body: str
) -> None:
    status, said = post(client, body)
    assert (status, kafka.written) == (200, [])
    token = RandomMint(RING, FixedClock()).open(said["token"], tenant="default")
    assert [(span.start, span.end) for part in token.parts for span in part.spans] == [(0, 0)]


def test_null_is_a_row_of_csv(client: TestClient, kafka: FakeKafka) -> None:
    answer = client.post(INGRESS, content="null")
    assert answer.status_code == 400  # no number
    assert client.post(INGRESS, content="").status_code == 200
    assert post(client, "[ ]", params={"array": "true"})[0] == 200
    assert kafka.written == []


def test_errors_name_each_record_and_the_token_of_the_others(client: TestClient) -> None:
    status, said = post(client, '{"id": 1}\nx')
    details = said["details"]
    assert (status, said["error_code"]) == (400, "ParseErrors")
    assert said["message"] == "Errors parsing input data (1 error)"
    assert (details["num_errors"], details["errors"][0]["event_number"]) == (1, 2)
    assert details["token"]
    status, said = post(client, '[{"id": 1}, 3]', params={"array": "true"})
    assert (status, said["error_code"], "token" in said["details"]) == (400, "ParseErrors", False)
    status, said = post(client, "3", params={"array": "true"})
    assert (status, said["error_code"], said["details"]["num_errors"]) == (400, "ParseErrors", 1)


def test_a_repeated_request_is_told_the_same_errors(client: TestClient) -> None:
    headers = {"Idempotency-Key": "one"}
    first = post(client, '{"id": 1}\nx', headers=headers)
    assert post(client, '{"id": 1}\nx', headers=headers) == first


@pytest.mark.parametrize(
    ("body", "status"), [('{"id": 1}', 200), ("[]", 200), ('{"id": 1}\nx', 400)]
)
def test_each_answer_with_a_token_says_where_it_is_asked(
    client: TestClient, body: str, status: int
) -> None:
    answer = client.post(INGRESS, content=body, params=JSON)
    said = answer.json()
    token = said.get("details", said)["token"]
    assert (answer.status_code, answer.headers["location"]) == (status, f"/v1/tokens/{token}")


def test_what_may_be_written_is_not_answered_so_that_the_client_sends_again(
    client: TestClient, kafka: FakeKafka
) -> None:
    kafka.failing = {0: "timed out"}
    status, said = post(client, '{"id": 1}')
    assert (status, said["error_code"]) == (500, "WrittenPerhaps")
    kafka.failing, kafka.away_after_write = {}, True
    status, said = post(client, '{"id": 1}')
    assert (status, said["error_code"]) == (500, "WrittenPerhaps")
    assert "the records are written, but have no token" in said["message"]
    kafka.away, kafka.seen = True, None  # asked before anything is written
    status, said = post(client, '{"id": 1}')
    assert (status, said["error_code"]) == (503, "NotAvailableNow")


def test_a_wrong_parameter_and_an_unknown_pipeline_are_named(client: TestClient) -> None:
    status, said = post(client, "", params={"update_format": "weighted"})
    assert (status, said["error_code"]) == (400, "InvalidParam")
    assert said["message"] == "update_format=weighted is not accepted"
    status, said = post(client, "", "/v0/pipelines/order/ingress/orders")
    assert (status, said["error_code"]) == (404, "UnknownPipelineName")
    status, said = post(client, "", "/v0/pipelines/orders/start", params={"initial": "standby"})
    assert (status, said["error_code"]) == (400, "InvalidParam")


def test_what_does_nothing_wants_a_pipeline_that_exists(client: TestClient) -> None:
    for action in ("clear", "dismiss_error"):
        assert client.post(f"/v0/pipelines/orders/{action}").json() == {}
        assert client.post(f"/v0/pipelines/other/{action}").status_code == 404


def test_other_routes_are_501_and_name_the_way(client: TestClient) -> None:
    answer = client.post("/v0/pipelines/orders/query")
    assert (answer.status_code, answer.json()["error_code"]) == (501, "NotImplemented")
    assert "read the tables and topics" in answer.json()["message"]
    assert answer.json()["details"]["route"] == "/v0/pipelines/orders/query"
    assert client.put("/v0/pipelines/orders/start").status_code == 501
