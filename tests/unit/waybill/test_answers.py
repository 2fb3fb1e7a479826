"""Changes that are answered at once: the operation is done or failed, and nobody asks again."""

import json
from collections.abc import Callable

import pytest

from unit.waybill.conftest import MANIFEST, Command, make_fault
from waybill import Client, Conflict, Invalid, NotReady, RecordLocation
from waybill.models import Operation
from waybill.testing import Response, ScriptedServer, problem

PATH = "/v1/pipelines/orders"
RECORDS = f"{PATH}/inputs/orders/records"
FAULT = make_fault(
    "stage load would lose all of its sinks",
    line=None, column=None, path="stages.load.sinks", hint="keep one",
)  # fmt: skip
DONE = {
    "id": "op-1",
    "pipeline": "orders",
    "pipeline_uid": "u-1",
    "action": "apply",
    "actor": "3f9c",
    "state": "done",
    "generation": 3,
    "at": "2026-11-21T09:00:00.120Z",
    "problem": None,
    "errors": [],
    "warnings": ["short trigger"],
    "result": None,
}
FAILED = {**DONE, "state": "failed", "problem": "plan_incompatible", "errors": [FAULT]}
ACCEPTED = Response(status=202, json={"operation": "op-1", "pipeline": "orders", "action": "apply"})
CHANGES: list[tuple[str, str, Callable[[Client], Operation]]] = [
    ("PUT", PATH, lambda client: client.apply(MANIFEST)),
    ("POST", f"{PATH}/start", lambda client: client.start("orders")),
    ("POST", f"{PATH}/stop", lambda client: client.stop("orders")),
    ("POST", f"{PATH}/restart", lambda client: client.restart("orders")),
    ("PATCH", f"{PATH}/offsets", lambda client: client.set_offsets("orders", "latest")),
    ("DELETE", f"{PATH}/offsets", lambda client: client.reset_offsets("orders")),
    ("POST", f"{PATH}/rescale", lambda client: client.rescale("orders", 4)),
    (
        "POST",
        f"{PATH}/dead-letters",
        lambda client: client.put_dead_letter(
            "orders", RecordLocation(topic="in", partition=0, offset=3), "x"
        ),
    ),
    ("DELETE", PATH, lambda client: client.delete("orders")),
]


def refused(status: int, operation: dict[str, object]) -> Response:
    return problem(status, "it is not to be", request_id="r-1", **operation)


@pytest.mark.parametrize(("method", "path", "change"), CHANGES)
def test_what_is_done_at_once_is_a_done_operation(
    server: ScriptedServer, client: Client, method: str, path: str, change: Callable[..., Operation]
) -> None:
    server.answer(method, path, Response(json=DONE))
    operation = change(client)
    assert (operation.state, operation.generation) == ("done", 3)
    assert (operation.warnings, operation.raw) == (("short trigger",), DONE)
    assert [request.params for request in server.requests] == [{"wait": "1"}]


@pytest.mark.parametrize("status", [409, 422, 500, 503])
@pytest.mark.parametrize(("method", "path", "change"), CHANGES)
def test_what_is_refused_after_it_was_taken_is_a_failed_operation(
    server: ScriptedServer,
    client: Client,
    method: str,
    path: str,
    change: Callable[..., Operation],
    status: int,
) -> None:
    """As it is for who asks for the operation later, so the same code serves both."""
    server.answer(method, path, refused(status, FAILED))
    operation = change(client)
    assert (operation.failed, operation.problem) == (True, "plan_incompatible")
    assert (operation.id, operation.errors[0].hint) == ("op-1", "keep one")
    assert operation.raw == FAILED
    assert len(server.requests) == 1


@pytest.mark.parametrize(("status", "kind"), [(409, Conflict), (422, Invalid), (503, NotReady)])
def test_what_was_not_taken_is_still_an_error(
    server: ScriptedServer, client: Client, status: int, kind: type[Exception]
) -> None:
    server.answer("PUT", PATH, problem(status, "no", errors=[FAULT]))
    with pytest.raises(kind):
        client.apply(MANIFEST)


@pytest.mark.parametrize(("wait_s", "sent"), [(0, "0"), (2.5, "2.5"), (10, "10")])
def test_who_changes_says_how_long_the_answer_may_take(
    server: ScriptedServer, client: Client, wait_s: float, sent: str
) -> None:
    server.answer("PUT", PATH, ACCEPTED)
    assert client.apply(MANIFEST, wait_s=wait_s).pending
    assert server.requests[0].params == {"wait": sent}


def test_a_client_knows_what_its_change_has_come_to(server: ScriptedServer, client: Client) -> None:
    """It gets no token of the pipeline as it was before."""
    server.answer("PUT", PATH, Response(json=DONE))
    server.answer("POST", RECORDS, Response(json={"token": "wb1.a", "accepted": 1, "rejected": []}))
    client.apply(MANIFEST)
    client.send("orders", "orders", [{"id": 1}])
    assert server.requests[-1].headers["if-match"] == '"u-1/3"'


@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize(
    ("at_once", "operation"), [(Response(json=DONE), DONE), (refused(422, FAILED), FAILED)]
)
def test_the_command_prints_and_ends_as_if_it_had_asked_later(
    server: ScriptedServer,
    command: Command,
    manifest: str,
    output: str,
    at_once: Response,
    operation: dict[str, object],
) -> None:
    server.answer("PUT", PATH, at_once, ACCEPTED)
    server.answer("GET", "/v1/operations/op-1", Response(json=operation))

    sooner = command("apply", "-f", manifest, "-o", output)
    assert server.asked("GET", "/v1/operations/op-1") == []
    later = command("apply", "-f", manifest, "-o", output)
    assert len(server.asked("GET", "/v1/operations/op-1")) == 1

    assert (sooner.exit_code, sooner.stdout, sooner.stderr) == (
        later.exit_code,
        later.stdout,
        later.stderr,
    )
    assert sooner.exit_code == (0 if operation is DONE else 1)
    if output == "json":
        assert json.loads(sooner.stdout) == operation


def test_a_restart_that_was_superseded_is_told_so(server: ScriptedServer, command: Command) -> None:
    fault = {"message": "superseded by a later stopped command", "hint": ""}
    failed = {**FAILED, "action": "restart", "warnings": [], "errors": [fault]}
    server.answer("POST", f"{PATH}/restart", refused(409, failed))
    result = command("restart", "orders")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        "orders: superseded by a later stopped command",
        "error: restart orders failed",
    ]
