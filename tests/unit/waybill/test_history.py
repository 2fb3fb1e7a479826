"""The history of a pipeline: `client.history()` walks its pages, `waybill history` prints it."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from unit.waybill.conftest import Command
from waybill import AsyncClient, Client, NotFound, PipelineEvent
from waybill.testing import Response, ScriptedServer, problem

PATH = "/v1/pipelines/orders/events"


def event(number: int, **more: object) -> dict[str, Any]:
    return {
        "id": f"t.3.{number}",
        "at": f"2026-11-21T09:00:0{number}.000Z",
        "kind": "transition",
        "generation": 2,
        "phase_from": "Starting",
        "phase": "Running",
        "reason": "driver runs",
        "actor": "ada",
        "attempt": 0,
        "blocked_by": None,
        "error": None,
        "next_attempt_at": None,
        **more,
    }


FAILED = event(
    7,
    phase_from="Running",
    phase="Recovering",
    reason="it died",
    actor="stage_runner",
    attempt=3,
    error={"domain": "internal", "message": "exit code 1", "hint": "see the log"},
)


def page(*numbers: int, next: str | None = None, gap: str | None = None) -> Response:
    items = [event(number) for number in numbers]
    return Response(json={"items": items, "next_cursor": next, "gap": gap})


def asked(server: ScriptedServer) -> list[Mapping[str, str]]:
    return [dict(request.params) for request in server.asked("GET", PATH)]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_newest_come_first_page_by_page(server: ScriptedServer, kind: str) -> None:
    server.answer("GET", PATH, page(5, 6, next="c1"), page(next="c2"), page(3, 4))

    async def ask() -> list[PipelineEvent]:
        async with AsyncClient(server.url) as client:
            return [each async for each in client.history("orders")]

    if kind == "async":
        found = asyncio.run(ask())
    else:
        with Client(server.url) as client:
            found = [*client.history("orders")]
    assert [each.id for each in found] == ["t.3.6", "t.3.5", "t.3.4", "t.3.3"]
    assert (found[0].actor, found[0].phase_from, found[0].phase) == ("ada", "Starting", "Running")
    assert asked(server) == [
        {"limit": "1000"},
        {"cursor": "c1", "limit": "1000"},
        {"cursor": "c2", "limit": "1000"},
    ]


def test_after_an_event_the_oldest_come_first(server: ScriptedServer) -> None:
    server.answer("GET", PATH, page(next="c1", gap="expired"), page(3, 4, next="c2"), page(5))
    with Client(server.url) as client:
        found = [*client.history("orders", after="t.3.1")]
    assert [each.id for each in found] == ["t.3.3", "t.3.4", "t.3.5"]
    assert [each.gap for each in found] == ["expired", None, None]
    assert asked(server)[0] == {"after": "t.3.1", "limit": "1000"}


def test_no_more_is_asked_for_than_is_wanted(server: ScriptedServer) -> None:
    server.answer("GET", PATH, page(5, next="c1"), page(3, 4, next="c2"))
    with Client(server.url) as client:
        found = [*client.history("orders", limit=2)]
    assert [each.id for each in found] == ["t.3.5", "t.3.4"]
    assert asked(server) == [{"limit": "2"}, {"cursor": "c1", "limit": "1"}]


def test_a_pipeline_that_does_not_exist(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, problem(404, "there is no pipeline 'orders'"))
    with Client(server.url) as client, pytest.raises(NotFound):
        [*client.history("orders")]
    assert command("history", "orders").exit_code == 1


def test_the_command_prints_the_newest_last(server: ScriptedServer, command: Command) -> None:
    answer = Response(json={"items": [event(5), event(6), FAILED], "next_cursor": "c1"})
    server.answer("GET", PATH, answer)
    result = command("history", "orders", "--limit", "2")
    assert [" ".join(line.split()) for line in result.stdout.splitlines()] == [
        "2026-11-21T09:00:06.000Z Starting -> Running driver runs, by ada",
        "2026-11-21T09:00:07.000Z Running -> Recovering it died, by stage_runner, attempt 3",
        "error: exit code 1",
        "hint: see the log",
    ]
    assert "the newest 2: --limit shows more" in result.stderr
    assert asked(server) == [{"limit": "3"}]


def test_the_command_prints_json_a_line_each(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, Response(json={"items": [event(6), FAILED], "next_cursor": None}))
    result = command("history", "orders", "-o", "json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [event(6), FAILED]
    assert result.stderr == ""


def test_an_empty_history_is_said(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, page())
    result = command("history", "orders")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing is known of the last 30 days" in result.stderr


RUNS = "/v1/pipelines/orders/runs"


def run(number: int, **more: object) -> dict[str, Any]:
    return {
        "id": f"t.3.{number}",
        "run": number,
        "generation": 1,
        "began": f"2026-11-21T09:00:0{number}.000Z",
        "started_by": "ada",
        "attempt": 0,
        "phase": "Running",
        "ended": None,
        "end": None,
        "reason": None,
        "ended_by": None,
        "error": None,
        **more,
    }


STOPPED = run(
    2,
    began=None,
    started_by=None,
    phase="Stopped",
    ended="2026-11-21T09:00:02.500Z",
    end="stopped",
    reason="to be stopped",
    ended_by="bob",
)
CRASHED = run(
    3,
    phase="Recovering",
    ended="2026-11-21T09:00:03.500Z",
    end="crashed",
    reason="exit code 1",
    ended_by="stage_runner",
    error={"domain": "internal", "message": "exit code 1", "hint": "see the log"},
    parallelism=4,
)


def test_runs_come_page_by_page(server: ScriptedServer) -> None:
    pages = [{"items": [CRASHED, run(4)], "next_cursor": "c1"}, {"items": [STOPPED], "gap": "x"}]
    server.answer("GET", RUNS, *(Response(json=each) for each in pages))
    with Client(server.url) as client:
        found = [*client.runs("orders")]
    assert [(each.run, each.end, each.ended_by) for each in found] == [
        (4, None, None),
        (3, "crashed", "stage_runner"),
        (2, "stopped", "bob"),
    ]
    assert found[1].error is not None
    assert [each.parallelism for each in found] == [None, 4, None]
    assert (found[2].began, found[2].started_by, found[0].started_by) == (None, None, "ada")
    assert [dict(request.params) for request in server.asked("GET", RUNS)] == [
        {"limit": "1000"},
        {"cursor": "c1", "limit": "1000"},
    ]


def test_the_command_prints_runs_the_newest_last(server: ScriptedServer, command: Command) -> None:
    answer = Response(json={"items": [STOPPED, CRASHED, run(4)], "next_cursor": None})
    server.answer("GET", RUNS, answer)
    result = command("history", "orders", "--runs")
    crashed = f"run 3 {CRASHED['began']} {CRASHED['ended']} crashed exit code 1, by stage_runner"
    assert [" ".join(line.split()) for line in result.stdout.splitlines()] == [
        "run 2 before 2026-11-21T09:00:02.500Z stopped to be stopped, by bob",
        f"{crashed}, started by ada, parallelism 4",
        "error: exit code 1",
        "hint: see the log",
        "run 4 2026-11-21T09:00:04.000Z goes on Running started by ada",
    ]
    told = command("history", "orders", "--runs", "-o", "json", "-n", "1")
    assert json.loads(told.stdout)["run"] == 4


BATCHES = "/v1/pipelines/orders/stages/load/batches"


def batch(number: int, **more: object) -> dict[str, Any]:
    return {
        "id": f"c.3.{number}",
        "batch": number,
        "generation": 1,
        "started_at": f"2026-11-21T09:00:0{number}.000Z",
        "ranges": [{"topic": "in", "partition": p, "start": 1, "end": 6} for p in range(5)],
        "ranges_count": 5,
        "records": 25,
        "sinks": [
            {
                "name": "lake",
                "rows": 24,
                "committed_at": f"2026-11-21T09:00:0{number}.250Z",
                "version": {"iceberg_snapshot_id": "17"},
            },
            {"name": "copy", "rows": 24, "committed_at": None, "version": None},
        ],
        **more,
    }


def test_batches_come_page_by_page(server: ScriptedServer) -> None:
    pages = [{"items": [batch(1)], "next_cursor": "c1"}, {"items": [batch(2)], "gap": "expired"}]
    server.answer("GET", BATCHES, *(Response(json=each) for each in pages))
    with Client(server.url) as client:
        found = [*client.batches("orders", "load", after="0")]
    assert [(each.batch, each.records, each.gap) for each in found] == [
        (1, 25, None),
        (2, 25, "expired"),
    ]
    lake, copy = found[0].sinks
    assert (lake.version, copy.committed_at) == ({"iceberg_snapshot_id": "17"}, None)
    assert (found[0].ranges[4].partition, found[0].ranges[4].end) == (4, 6)
    assert [dict(request.params) for request in server.asked("GET", BATCHES)] == [
        {"after": "0", "limit": "500"},
        {"cursor": "c1", "limit": "500"},
    ]


def test_the_command_prints_batches(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", BATCHES, Response(json={"items": [batch(4)], "next_cursor": None}))
    result, began = command("history", "orders", "--batches", "load"), batch(4)["started_at"]
    assert [" ".join(line.split()) for line in result.stdout.splitlines()] == [
        f"batch 4 {began} 25 offsets of in[0] 1-6, in[1] 1-6, in[2] 1-6, and 2 more",
        "lake 24 rows, at 09:00:04.250, iceberg_snapshot_id 17",
        "copy 24 rows",
    ]
    assert command("history", "orders", "--batches", "load", "--runs").exit_code == 2
    assert command("history", "orders", "--batches", "").exit_code == 2
