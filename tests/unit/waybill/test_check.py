"""`client.check` and `waybill check`: what was found, however it was answered."""

import asyncio
import json
from typing import Any

import pytest

from unit.waybill.conftest import MANIFEST, Command, make_fault
from waybill import (
    AsyncClient,
    Client,
    Findings,
    Invalid,
    NotReady,
    ProblemError,
    UnexpectedAnswer,
    WaitEnded,
    WaybillError,
)
from waybill.testing import Response, ScriptedServer, problem

PATH = "/v1/validate"
ID = f"validate.orders.{'ab' * 16}"
FAULT = make_fault()
GRAPH = {
    "nodes": [
        {"id": "input/orders", "kind": "input"},
        {"id": "stage/enrich", "kind": "stage", "columns": {"lake": "`a` int, `b` string"}},
        {"id": "sink/lake", "kind": "sink"},
        {"id": "sink/other", "kind": "sink"},
    ],
    "edges": [
        {"from": "input/orders", "to": "stage/enrich"},
        {"from": "stage/enrich", "to": "sink/lake"},
        {"from": "stage/enrich", "to": "sink/other"},
    ],
}
MANY = problem(429, "too many", type="urn:waybill:problem:too_many_checks")


def found(*errors: object, warnings: tuple[str, ...] = (), graph: object = None) -> dict[str, Any]:
    return {"errors": list(errors), "warnings": list(warnings), "graph": graph, "changes": None}


def answer(
    server: ScriptedServer, *errors: object, warnings: tuple[str, ...] = (), graph: object = None
) -> None:
    told = found(*errors, warnings=warnings, graph=graph)
    server.answer("POST", PATH, Response(json=told))


def later(server: ScriptedServer, state: object, **more: object) -> None:
    """It takes longer than one request is held."""
    taken = {"operation": ID, "pipeline": "orders", "action": "validate"}
    server.answer("POST", PATH, Response(status=202, json=taken))
    told = {"id": ID, "pipeline": "orders", "action": "validate", "state": state, **more}
    server.answer("GET", f"/v1/operations/{ID}", Response(json=told))


def test_a_check_is_asked_with_the_text_as_it_is(server: ScriptedServer, client: Client) -> None:
    answer(server, graph=GRAPH)
    checked = client.check(MANIFEST)
    assert json.loads(server.requests[0].body) == {"manifest": MANIFEST}
    (stage,) = checked.stages
    assert (checked.good, stage.name, stage.inputs) == (True, "enrich", ("orders",))
    assert (stage.sinks, stage.columns) == (("lake", "other"), {"lake": "`a` int, `b` string"})


def test_the_asynchronous_client_says_the_same(server: ScriptedServer, client: Client) -> None:
    answer(server, FAULT, graph=GRAPH)

    async def check() -> Findings:
        async with AsyncClient(server.url) as asking:
            return await asking.check(MANIFEST)

    checked = asyncio.run(check())
    assert checked == client.check(MANIFEST)
    assert (checked.good, checked.errors[0].line) == (False, 12)


def test_a_node_without_a_name_is_an_error(server: ScriptedServer, client: Client) -> None:
    answer(server, graph={"nodes": [{"id": "enrich", "kind": "stage"}], "edges": []})
    with pytest.raises(UnexpectedAnswer, match="has a node 'enrich'"):
        client.check(MANIFEST)


def test_what_is_no_manifest_has_errors_too(server: ScriptedServer, client: Client) -> None:
    server.answer("POST", PATH, problem(422, "not YAML", errors=[FAULT]))
    checked = client.check(MANIFEST)
    assert (checked.good, checked.errors[0].line, checked.stages) == (False, 12, ())
    assert checked.raw == found(FAULT)


def test_a_check_that_takes_longer_is_waited_for(server: ScriptedServer, client: Client) -> None:
    later(server, "done", result=found(FAULT, graph=GRAPH))
    assert client.check(MANIFEST).errors[0].hint == FAULT["hint"]


@pytest.mark.parametrize(
    ("errors", "code", "told"), [((), 0, "orders is ok"), ((FAULT,), 1, "did you mean 'orders'?")]
)
def test_wait_tells_what_a_check_has_found(
    server: ScriptedServer, command: Command, errors: tuple[object, ...], code: int, told: str
) -> None:
    """That the check is done does not say that the manifest is good."""
    later(server, "done", result=found(*errors))
    result = command("wait", ID)
    assert result.exit_code == code
    assert told in result.output


def test_a_check_that_was_not_made_to_its_end_is_no_good_manifest(
    server: ScriptedServer, client: Client
) -> None:
    """Though it has errors, as that of a text which is no manifest."""
    operation = {"id": ID, "pipeline": "orders", "action": "validate", "state": "failed"}
    server.answer("POST", PATH, problem(422, "too slow", errors=[FAULT], **operation))
    with pytest.raises(Invalid, match="too slow"):
        client.check(MANIFEST)


@pytest.mark.parametrize(
    ("told", "error", "match"),
    [
        ({"state": "done", "result": None}, WaybillError, "not kept"),
        ({"state": "pending"}, WaitEnded, ID),
        ({"state": "failed", "problem": "internal", "errors": [FAULT]}, ProblemError, "ordrs"),
        ({"state": "failed", "problem": "invalid", "errors": [FAULT]}, Invalid, "ordrs"),
        ({"state": "failed", "problem": "too_many_checks"}, NotReady, "not made"),
    ],
)
def test_what_is_not_known_is_not_good(
    server: ScriptedServer,
    client: Client,
    told: dict[str, object],
    error: type[WaybillError],
    match: str,
) -> None:
    later(server, **told)
    with pytest.raises(error, match=match):
        client.check(MANIFEST, timeout_s=0)


def test_where_too_many_wait_it_is_asked_again(server: ScriptedServer, client: Client) -> None:
    server.answer("POST", PATH, MANY, Response(json=found()))
    assert client.check(MANIFEST).good


def test_it_is_not_asked_without_end(server: ScriptedServer, client: Client) -> None:
    server.answer("POST", PATH, MANY)
    with pytest.raises(NotReady):
        client.check(MANIFEST, timeout_s=1)


def test_the_command_says_file_line_and_column(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    answer(server, FAULT, {**FAULT, "line": 20, "hint": ""}, warnings=("short trigger",))
    result = command("check", "-f", manifest)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "orders.yaml:12:5: stages.0.steps.0.sql: no view is called `ordrs`",
        "    hint: did you mean 'orders'?",
        "orders.yaml:20:5: stages.0.steps.0.sql: no view is called `ordrs`",
        "orders.yaml: warning: short trigger",
    ]


def test_the_command_ends_well_and_shows_the_graph(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    answer(server, graph=GRAPH)
    result = command("check", "-f", manifest)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "orders.yaml is ok\n")
    result = command("check", "-f", "-", "--graph", stdin=MANIFEST)
    assert result.stdout.splitlines() == [
        "enrich reads orders, writes",
        "  lake: `a` int, `b` string",
        "  other",
    ]


@pytest.mark.parametrize(("errors", "code"), [((), 0), ((FAULT,), 1)])
def test_the_command_answers_scripts(
    server: ScriptedServer, command: Command, manifest: str, errors: tuple[object, ...], code: int
) -> None:
    answer(server, *errors, graph=GRAPH)
    result = command("check", "-f", manifest, "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (code, found(*errors, graph=GRAPH))


def test_a_check_that_failed_is_told_with_its_place(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    later(server, "failed", problem="invalid", errors=[FAULT])
    result = command("check", "-f", manifest)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("orders.yaml:12:5: ")


def test_a_file_that_is_not_there_is_a_matter_of_usage(command: Command) -> None:
    assert command("check", "-f", "nothing.yaml").exit_code == 2
    assert command("check").exit_code == 2
