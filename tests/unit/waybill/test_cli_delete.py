"""`waybill delete`: what it says ends lost and what stays, and when it asks."""

import json

import pytest

from unit.waybill.conftest import Command
from unit.waybill.test_cli_pipelines import PATH, PIPELINE, accept, make_operation
from waybill.testing import Response, ScriptedServer, problem

STAGES = [
    {
        "name": "enrich",
        "inputs": ["orders"],
        "sinks": [
            {"name": "rich", "kind": "kafka", "target": "orders.rich", "terminal": False},
            {"name": "seen", "kind": "console", "target": "log", "terminal": False},
        ],
    },
    {
        "name": "load",
        "inputs": ["rich"],
        "sinks": [
            {"name": "lake", "kind": "iceberg", "target": "lakehouse.raw.orders", "terminal": True}
        ],
    },
]
ORDERS = {
    **PIPELINE,
    "inputs": [{"name": "orders", "topic": "orders.in", "bases": {}}],
    "stages": STAGES,
}
STAYS = [
    "stays: topics orders.in, orders.rich, and their dead-letter topics",
    "stays: iceberg lakehouse.raw.orders",
]


def arrived(server: ScriptedServer, arrived: int | None) -> None:
    """So many of ten records have."""
    counts = [] if arrived is None else [{"name": "orders", "written": 10, "arrived": arrived}]
    flow = {
        "name": "orders",
        "reason": "slot_missing" if arrived is None else None,
        "inputs": counts,
        "sinks": [],
        "dead": 0,
    }
    server.answer("GET", "/v1/flow", Response(json={"items": [flow]}))


@pytest.fixture(autouse=True)
def orders(server: ScriptedServer) -> None:
    server.answer("GET", PATH, Response(json=ORDERS))
    accept(server, "DELETE", PATH, "delete", make_operation("done", "delete"))


@pytest.mark.parametrize(
    ("count", "tokens"),
    [
        (7, "those that name what has not arrived end lost, pipeline_deleted; this is about 3"),
        (10, "all that was sent has arrived; tokens of what is sent from now on end lost"),
        (None, "those that are not final end lost, pipeline_deleted; how many records that are"),
    ],
)
def test_without_a_terminal_it_says_what_it_would_do_and_refuses(
    server: ScriptedServer, command: Command, count: int | None, tokens: str
) -> None:
    arrived(server, count)
    result = command("delete", "orders")
    assert (result.exit_code, result.stdout) == (2, "")
    lines = result.stderr.splitlines()
    assert tokens in lines[0]
    assert lines[1:3] == STAYS
    assert lines[3:] == [
        "error: this deletes pipeline orders, and there is no terminal to ask on",
        "hint: --yes deletes it; `waybill stop` only stops it, and its tokens wait",
    ]
    assert server.asked("DELETE", PATH) == []


def test_yes_says_the_same_and_deletes(server: ScriptedServer, command: Command) -> None:
    arrived(server, 7)
    result = command("delete", "orders", "--yes")
    assert (result.exit_code, result.stdout) == (0, "orders delete done\n")
    assert "3 records of input orders" in result.stderr
    assert result.stderr.splitlines()[1:] == STAYS
    quiet = command("delete", "orders", "--yes", "-o", "json")
    assert (json.loads(quiet.stdout)["state"], quiet.stderr) == ("done", "")


@pytest.mark.usefixtures("on_terminal")
@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 1)])
def test_on_a_terminal_it_asks(
    server: ScriptedServer, command: Command, typed: str, code: int
) -> None:
    arrived(server, 7)
    result = command("delete", "orders", stdin=typed)
    assert result.exit_code == code
    assert "This deletes pipeline orders. Delete it?" in result.stderr
    assert bool(server.asked("DELETE", PATH)) == (code == 0)


def test_no_such_pipeline_is_said_before_it_asks(server: ScriptedServer, command: Command) -> None:
    arrived(server, 7)
    gone = problem(404, "there is no pipeline 'late'")
    server.answer("GET", "/v1/pipelines/late", gone)
    result = command("delete", "late")
    assert (result.exit_code, result.stderr) == (1, "error: there is no pipeline 'late'\n")


def test_who_may_not_read_may_still_delete(server: ScriptedServer, command: Command) -> None:
    """As with a key that may not read, or while status does not answer."""
    refused = problem(403, "this needs scope read")
    server.answer("GET", "/v1/pipelines/late", refused)
    accept(server, "DELETE", "/v1/pipelines/late", "delete", make_operation("done", "delete"))
    result = command("delete", "late", "--yes")
    assert result.exit_code == 0
    assert "its topics and tables stay; their names are not known now" in result.stderr
