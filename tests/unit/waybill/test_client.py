"""Each question of the SDK: what goes over the wire, and what the answer becomes."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from waybill import (
    Client,
    Invalid,
    Operation,
    Payload,
    Position,
    Rejected,
    Span,
    UnexpectedAnswer,
    Unusable,
)
from waybill.testing import Response, ScriptedServer, problem

RECORDS_PATH = "/v1/pipelines/orders/inputs/orders/records"
RECEIPT = {"token": "wb1.abc", "accepted": 2, "rejected": [], "request_id": "r-1"}


def test_send_writes_one_json_line_per_record(server: ScriptedServer, client: Client) -> None:
    server.answer("POST", RECORDS_PATH, Response(json=RECEIPT))
    receipt = client.send("orders", "orders", [{"id": 1}, b'{"id": 2}\n'], request_id="mine")
    (request,) = server.requests
    assert request.body == b'{"id": 1}\n{"id": 2}\n'
    assert request.headers["content-type"] == "application/x-ndjson"
    assert request.headers["x-request-id"] == "mine"
    assert (receipt.token, receipt.accepted, receipt.rejected) == ("wb1.abc", 2, ())
    assert receipt.request_id == "r-1"


def test_send_takes_any_iterable(server: ScriptedServer, client: Client) -> None:
    server.answer("POST", RECORDS_PATH, Response(json=RECEIPT))
    client.send("orders", "orders", ({"id": number} for number in range(2)))
    assert server.requests[0].body.count(b"\n") == 2


def test_send_takes_a_payload_with_its_options(server: ScriptedServer, client: Client) -> None:
    server.answer("POST", RECORDS_PATH, Response(json=RECEIPT))
    table = Payload(content=b"1;2\n", media_type="text/csv", options={"delimiter": ";"})
    client.send("orders", "orders", table, atomic=True)
    (request,) = server.requests
    assert (request.body, request.headers["content-type"]) == (b"1;2\n", "text/csv")
    assert dict(request.params) == {"delimiter": ";", "atomic": "true"}


def test_send_names_the_rejected_rows(server: ScriptedServer, client: Client) -> None:
    rejected = [{"index": 1, "reason": "amount is missing"}]
    server.answer("POST", RECORDS_PATH, Response(json={**RECEIPT, "rejected": rejected}))
    receipt = client.send("orders", "orders", [{}, {}])
    assert receipt.rejected == (Rejected(index=1, reason="amount is missing"),)


def test_send_asks_for_all_or_nothing(server: ScriptedServer, client: Client) -> None:
    server.answer("POST", RECORDS_PATH, Response(json=RECEIPT))
    client.send("orders", "orders", [{}], atomic=True)
    client.send("orders", "orders", [{}])
    assert [dict(request.params) for request in server.requests] == [{"atomic": "true"}, {}]


def test_send_of_only_bad_rows_raises_with_them(server: ScriptedServer, client: Client) -> None:
    rejected = [{"index": 0, "reason": "not JSON"}]
    server.answer("POST", RECORDS_PATH, problem(422, "all rows are bad", rejected=rejected))
    with pytest.raises(Invalid) as raised:
        client.send("orders", "orders", [b"nonsense"])
    assert raised.value.rejected == (Rejected(index=0, reason="not JSON"),)


def test_send_without_records_asks_nothing(server: ScriptedServer, client: Client) -> None:
    with pytest.raises(Unusable, match=r"no records to send to orders\.orders"):
        client.send("orders", "orders", [])
    assert server.requests == []


def test_names_are_quoted_in_paths(server: ScriptedServer, client: Client) -> None:
    path = "/v1/pipelines/a%2Fb/inputs/c%2Fd/records"
    server.answer("POST", path, Response(json=RECEIPT))
    assert client.send("a/b", "c/d", [{}]).token == "wb1.abc"


def test_token_for_an_input(server: ScriptedServer, client: Client) -> None:
    issued = {"token": "wb1.t", "pipeline": "orders", "issued_at": "2026-11-21T09:00:00.120Z"}
    server.answer("POST", "/v1/tokens", Response(json=issued))
    made = client.token_for("orders", input="orders")
    assert json.loads(server.requests[0].body) == {"pipeline": "orders", "input": "orders"}
    assert made.token == "wb1.t"
    assert made.issued_at == datetime(2026, 11, 21, 9, 0, 0, 120_000, tzinfo=UTC)


def test_token_for_positions_and_spans(server: ScriptedServer, client: Client) -> None:
    server.answer("POST", "/v1/tokens", Response(json={"token": "wb1.t", "pipeline": "orders"}))
    place = {"topic": "orders.in", "topic_id": "Hb0c", "partition": 3}
    client.token_for(
        "orders",
        positions=[
            Position(topic="orders.in", topic_id="Hb0c", partition=3, offset=41),
            Span(topic="orders.in", topic_id="Hb0c", partition=3, start=50, end=60),
        ],
    )
    positions = json.loads(server.requests[0].body)["positions"]
    assert positions == [{**place, "offset": 41}, {**place, "start": 50, "end": 60}]


def test_token_for_needs_one_of_input_and_positions(client: Client) -> None:
    with pytest.raises(Unusable, match="either an input or positions"):
        client.token_for("orders")
    with pytest.raises(Unusable, match="either an input or positions"):
        client.token_for("orders", input="orders", positions=[])


def test_apply_puts_the_manifest_under_its_own_name(server: ScriptedServer, client: Client) -> None:
    accepted = {"operation": "op-1", "pipeline": "orders", "action": "apply"}
    server.answer("PUT", "/v1/pipelines/orders", Response(status=202, json=accepted))
    operation = client.apply("version: 1\nname: orders\n")
    assert server.requests[0].body == b"version: 1\nname: orders\n"
    assert server.requests[0].headers["content-type"] == "application/yaml"
    assert (operation.id, operation.action, operation.pending) == ("op-1", "apply", True)


@pytest.mark.parametrize(
    ("word", "method", "path"),
    [
        ("start", "POST", "/v1/pipelines/orders/start"),
        ("stop", "POST", "/v1/pipelines/orders/stop"),
        ("restart", "POST", "/v1/pipelines/orders/restart"),
        ("delete", "DELETE", "/v1/pipelines/orders"),
    ],
)
def test_changes_are_accepted_as_operations(
    server: ScriptedServer, client: Client, word: str, method: str, path: str
) -> None:
    accepted = {"operation": "op-1", "pipeline": "orders", "action": word}
    server.answer(method, path, Response(status=202, json=accepted))
    changes: dict[str, Callable[[str], Operation]] = {
        "start": client.start,
        "stop": client.stop,
        "restart": client.restart,
        "delete": client.delete,
    }
    operation = changes[word]("orders")
    assert isinstance(operation, Operation)
    assert (operation.id, operation.action) == ("op-1", word)
    assert server.requests[0].params == {"wait": "1"}


def test_restart_may_say_where_to_begin(server: ScriptedServer, client: Client) -> None:
    path = "/v1/pipelines/orders/restart"
    accepted = {"operation": "op-1", "pipeline": "orders", "action": "restart"}
    server.answer("POST", path, Response(status=202, json=accepted))
    assert client.restart("orders", start_from="latest").pending
    assert [request.params for request in server.asked("POST", path)] == [
        {"from": "latest", "wait": "1"}
    ]


def test_operation_tells_its_errors_with_their_place(
    server: ScriptedServer, client: Client
) -> None:
    fault = {"message": "no column amout", "line": 12, "column": 5, "path": None, "hint": "amount"}
    body = {"id": "op-1", "pipeline": "orders", "action": "apply", "state": "failed"}
    server.answer("GET", "/v1/operations/op-1", Response(json={**body, "errors": [fault]}))
    operation = client.operation("op-1")
    assert operation.failed
    (error,) = operation.errors
    assert (error.message, error.line, error.column, error.hint) == (
        "no column amout",
        12,
        5,
        "amount",
    )


def test_operation_waits_until_it_is_not_pending(server: ScriptedServer, client: Client) -> None:
    body = {"id": "op-1", "pipeline": "orders", "action": "stop"}
    pending, done = {**body, "state": "pending"}, {**body, "state": "done", "actor": "3f9c"}
    server.answer("GET", "/v1/operations/op-1", Response(json=pending), Response(json=done))
    operation = client.operation("op-1", wait_s=30)
    assert (operation.state, operation.actor) == ("done", "3f9c")
    assert [request.params for request in server.requests] == [{"wait": "30"}, {"wait": "29.8"}]


def test_operation_still_pending_is_returned_when_the_time_is_over(
    server: ScriptedServer, client: Client
) -> None:
    body = {"id": "op-1", "pipeline": "orders", "action": "stop", "state": "pending"}
    server.answer("GET", "/v1/operations/op-1", Response(json=body))
    assert client.operation("op-1", wait_s=2).pending


def test_pipelines_reads_every_page(server: ScriptedServer, client: Client) -> None:
    first = {"items": [{"name": "a", "phase": "Running"}], "next_cursor": "a"}
    second = {"items": [{"name": "b", "phase": "Stopped"}], "next_cursor": None}
    server.answer("GET", "/v1/pipelines", Response(json=first), Response(json=second))
    assert [pipeline.name for pipeline in client.pipelines()] == ["a", "b"]
    assert [request.params for request in server.requests] == [{}, {"cursor": "a"}]


def test_pages_without_an_end_are_an_error(
    server: ScriptedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill.plans.PAGES_MAX", 2)
    page = {"items": [{"name": "a", "phase": "Running"}], "next_cursor": "a"}
    server.answer("GET", "/v1/pipelines", *[Response(json=page)] * 2)
    with pytest.raises(UnexpectedAnswer, match="has more than 2 pages"):
        client.pipelines()


def test_pipeline_has_its_details(server: ScriptedServer, client: Client) -> None:
    sink = {"name": "lake", "kind": "iceberg", "target": "raw.orders", "terminal": True}
    body = {
        "name": "orders",
        "phase": "Failed",
        "desired": "running",
        "generation": 3,
        "error": {"domain": "user", "message": "no such column", "hint": "correct the SQL"},
        "inputs": [{"name": "orders", "topic": "orders.in", "partitions": 4, "bases": {"0": 7}}],
        "stages": [{"name": "load", "inputs": ["orders"], "sinks": [sink], "last_batch": None}],
    }
    server.answer("GET", "/v1/pipelines/orders", Response(json=body))
    pipeline = client.pipeline("orders")
    assert pipeline.failed
    assert pipeline.error is not None
    assert pipeline.error.hint == "correct the SQL"
    assert pipeline.inputs[0].bases == {0: 7}
    assert pipeline.stages[0].sinks[0].terminal
    assert pipeline.raw == body
