"""`waybill events`: what happened, in the order in which it did, each once."""

import json
import time
from collections.abc import Mapping

import pytest

from unit.waybill.conftest import Command
from waybill.testing import Response, ScriptedServer, problem

PATH = "/v1/pipelines/orders/events"
RUNNING = {
    "id": "1.0",
    "at": "2026-11-21T09:00:00.000Z",
    "kind": "transition",
    "phase_from": "Starting",
    "phase": "Running",
    "reason": "driver runs",
    "blocked_by": None,
    "error": None,
}
SKIPPED = {**RUNNING, "id": "2.1", "kind": "schedule", "reason": "skipped: run 4 is Running"}
BLOCKED = {**RUNNING, "id": "2.0", "kind": "blocked", "blocked_by": "blocked_by_open_transaction"}
FAILED = {
    **RUNNING,
    "id": "3.0",
    "phase_from": "Running",
    "phase": "Failed",
    "reason": "no such column",
    "error": {"domain": "user", "message": "no such column", "hint": "mend the SQL"},
}


class Stopped(Exception):
    """The test has seen enough."""


def stream(*events: Mapping[str, object]) -> Response:
    text = "".join(f"event: event\nid: {e['id']}\ndata: {json.dumps(e)}\n\n" for e in events)
    return Response(content=text.encode(), content_type="text/event-stream")


def test_events_are_told_as_lines(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, Response(json={"items": [RUNNING, BLOCKED, FAILED]}))
    lines = command("events", "orders").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["2026-11-21T09:00:00.000Z", "Starting", "->", "Running", "driver", "runs"],
        ["2026-11-21T09:00:00.000Z", "blocked:", "blocked_by_open_transaction", "driver", "runs"],
        ["2026-11-21T09:00:00.000Z", "Running", "->", "Failed", "no", "such", "column"],
        ["error:", "no", "such", "column"],
        ["hint:", "mend", "the", "SQL"],
    ]
    assert json.loads(command("events", "orders", "-o", "json").stdout.splitlines()[1]) == BLOCKED


def test_a_time_that_was_skipped_is_told(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, Response(json={"items": [SKIPPED]}))
    (line,) = command("events", "orders").stdout.splitlines()
    assert line.split("Z", 1)[1].split() == [
        "time",
        "of",
        "its",
        "schedule",
        "skipped:",
        "run",
        "4",
        "is",
        "Running",
    ]


def test_why_a_table_was_not_kept_in_order_is_said(
    server: ScriptedServer, command: Command
) -> None:
    kept = {"stage": "load", "sink": "lake", "task": "compact", "done": {}, "problem": "its clock"}
    event = {**RUNNING, "kind": "maintenance", "maintenance": kept}
    server.answer("GET", PATH, Response(json={"items": [event]}))
    (line,) = command("events", "orders").stdout.splitlines()
    assert line.split()[1:] == ["compact:", "lake", "not", "done:", "its", "clock"]


def test_a_stream_that_breaks_is_taken_up_behind_the_last_event(
    server: ScriptedServer, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = iter([None])

    def pause(_: float) -> None:
        try:
            next(pauses)
        except StopIteration:
            raise Stopped from None

    monkeypatch.setattr(time, "sleep", pause)
    server.answer("GET", PATH, stream(RUNNING), stream(FAILED))
    result = command("events", "orders", "--follow", "-o", "json")
    assert isinstance(result.exception, Stopped)
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["1.0", "3.0"]
    first, second = server.asked("GET", PATH)
    assert "last-event-id" not in first.headers
    assert second.headers["last-event-id"] == "1.0"


def test_a_gap_in_a_stream_is_said(
    server: ScriptedServer, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(_: float) -> None:
        raise Stopped

    monkeypatch.setattr(time, "sleep", end)
    gap = b'event: gap\ndata: {"gap": "expired"}\n\n'
    content = gap + (stream(RUNNING).content or b"")
    server.answer("GET", PATH, Response(content=content, content_type="text/event-stream"))
    result = command("events", "orders", "--follow", "-o", "json")
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["1.0"]
    assert "events may be missing here: expired" in result.stderr


def test_an_unknown_pipeline_is_an_error(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, problem(404, "there is no pipeline 'orders'"))
    assert command("events", "orders", "--follow").exit_code == 1


def test_a_claim_says_where_queries_are_trusted(server: ScriptedServer, command: Command) -> None:
    claims = [
        {**RUNNING, "kind": "claim", "reason": "", "sql_guard": guard}
        for guard in ("strict", "trusted")
    ]
    server.answer("GET", PATH, Response(json={"items": claims}))
    strict, trusted = command("events", "orders").stdout.splitlines()
    assert strict.split()[1:] == ["claimed"]
    assert trusted.split()[1:] == ["claimed,", "SQL", "guard:", "trusted"]
