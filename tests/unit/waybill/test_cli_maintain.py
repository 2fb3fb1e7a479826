"""`waybill maintain`: what was done to a table, in numbers, and exit codes."""

import pytest

from unit.waybill.conftest import Command
from waybill.testing import Response, ScriptedServer, problem

PATH = "/v1/pipelines/orders/sinks/lake/maintain"
ID = f"maintain.orders.{'ab' * 16}"
TASKS = {"compact": {"files": 12, "into": 1}, "rewriteManifests": {"manifests": 0}}


def operation(state: str, **more: object) -> Response:
    told = {"id": ID, "pipeline": "orders", "action": "maintain", "state": state, **more}
    return Response(json=told)


def done(*, dry_run: bool = False) -> Response:
    return operation("done", result={"sink": "lake", "dry_run": dry_run, "tasks": TASKS})


def test_what_was_done_is_told(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", PATH, done())
    result = command("maintain", "orders", "lake")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "compact: 12 files, into 1",
        "rewriteManifests: 0 manifests",
    ]
    assert "dry_run" not in server.requests[0].params


def test_what_would_be_done_is_told(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", PATH, done(dry_run=True))
    result = command("maintain", "orders", "lake", "--dry-run")
    assert result.stdout.splitlines()[0] == "compact would do: 12 files, into 1"
    assert server.requests[0].params["dry_run"] == "true"


def test_one_that_takes_longer_is_waited_for(server: ScriptedServer, command: Command) -> None:
    taken = {"operation": ID, "pipeline": "orders", "action": "maintain"}
    server.answer("POST", PATH, Response(status=202, json=taken))
    server.answer("GET", f"/v1/operations/{ID}", done())
    result = command("maintain", "orders", "lake")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 2)


@pytest.mark.parametrize("arguments", [("maintain", "orders", "lake", "--timeout", "0.1")])
def test_one_that_is_not_done_in_time_goes_on(
    server: ScriptedServer, command: Command, arguments: tuple[str, ...]
) -> None:
    taken = {"operation": ID, "pipeline": "orders", "action": "maintain"}
    server.answer("POST", PATH, Response(status=202, json=taken))
    server.answer("GET", f"/v1/operations/{ID}", operation("pending"))
    result = command(*arguments)
    assert (result.exit_code, result.stdout) == (4, "")
    assert f"waybill wait {ID}" in result.stderr


def test_why_it_was_refused_is_told(server: ScriptedServer, command: Command) -> None:
    fault = {"message": "there is no sink lake", "hint": "its sinks: out", "path": "sink"}
    server.answer("POST", PATH, problem(422, "there is no sink lake", errors=[fault]))
    result = command("maintain", "orders", "lake")
    assert result.exit_code == 1
    assert "its sinks: out" in result.stderr


def test_why_it_was_not_done_is_told(server: ScriptedServer, command: Command) -> None:
    fault = {"message": "there is no table raw.orders yet", "hint": "", "path": ""}
    server.answer("POST", PATH, operation("failed", problem="invalid", errors=[fault]))
    result = command("maintain", "orders", "lake")
    assert result.exit_code == 1
    assert "there is no table raw.orders yet" in result.stderr


def test_an_operation_is_followed_to_its_numbers(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", f"/v1/operations/{ID}", done())
    result = command("wait", ID)
    assert result.stdout.splitlines()[0] == "compact: 12 files, into 1"
