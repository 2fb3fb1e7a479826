"""`waybill apply, list, get, describe, start, stop, restart, delete`: answers and exit codes."""

import json
from collections.abc import Callable

import pytest

from unit.waybill.conftest import MANIFEST, Command, make_fault
from waybill import questions
from waybill.testing import Response, ScriptedServer, problem

PATH = "/v1/pipelines/orders"
FAULT = make_fault("no column amout", path="stages[0].steps[0].sql", hint="did you mean amount?")
PIPELINE = {
    "name": "orders",
    "uid": "u-1",
    "phase": "Running",
    "desired": "running",
    "generation": 2,
    "reason": None,
    "since": "2026-11-21T09:00:00.120Z",
    "manifest": MANIFEST,
}


def make_operation(state: str, action: str = "apply", **more: object) -> Response:
    return Response(
        json={"id": "op-1", "pipeline": "orders", "action": action, "state": state, **more}
    )


def accept(server: ScriptedServer, method: str, path: str, action: str, end: Response) -> None:
    accepted = {"operation": "op-1", "pipeline": "orders", "action": action}
    server.answer(method, path, Response(status=202, json=accepted))
    server.answer("GET", "/v1/operations/op-1", end)


def test_apply_waits_for_the_operation(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    accept(server, "PUT", PATH, "apply", make_operation("done", warnings=["short trigger"]))
    result = command("apply", "-f", manifest)
    assert (result.exit_code, result.stdout) == (0, "orders apply done\n")
    assert result.stderr == "warning: short trigger\n"
    (asked,) = server.asked("GET", "/v1/operations/op-1")
    assert float(asked.params["wait"]) == pytest.approx(30, abs=5)


def test_apply_reads_stdin(server: ScriptedServer, command: Command) -> None:
    accept(server, "PUT", PATH, "apply", make_operation("done"))
    assert command("apply", "-f", "-", stdin=MANIFEST).exit_code == 0
    (sent,) = server.asked("PUT", PATH)
    assert sent.body == MANIFEST.encode()


def test_apply_tells_what_is_wrong_by_file_line_and_column(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    server.answer("PUT", PATH, problem(422, "the manifest is invalid", errors=[FAULT]))
    result = command("apply", "-f", manifest)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        "orders.yaml:12:5: stages[0].steps[0].sql: no column amout",
        "    hint: did you mean amount?",
    ]


def test_apply_tells_the_errors_of_the_operation_alike(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    fault = {"message": "the topic cannot be made", "line": None, "column": None}
    accept(server, "PUT", PATH, "apply", make_operation("failed", errors=[fault]))
    result = command("apply", "-f", manifest)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "orders.yaml: the topic cannot be made",
        "error: apply orders failed",
    ]


def test_apply_of_stdin_names_it_so(server: ScriptedServer, command: Command) -> None:
    server.answer("PUT", PATH, problem(422, "the manifest is invalid", errors=[FAULT]))
    assert command("apply", "-f", "-", stdin=MANIFEST).stderr.startswith("<stdin>:12:5: ")


def test_an_invalid_answer_without_places_is_told_as_it_is(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    server.answer("PUT", PATH, problem(422, "the name differs"))
    result = command("apply", "-f", manifest)
    assert (result.exit_code, result.stderr) == (1, "error: the name differs\n")


def test_apply_of_a_missing_file_is_a_usage_error(command: Command) -> None:
    result = command("apply", "-f", "missing.yaml")
    assert result.exit_code == 2
    assert "cannot read missing.yaml" in result.stderr


def test_apply_as_json_is_the_operation(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    end = make_operation("failed", errors=[FAULT])
    accept(server, "PUT", PATH, "apply", end)
    result = command("apply", "-f", manifest, "-o", "json")
    assert json.loads(result.stdout) == end.json
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("verb", "method", "path", "more"),
    [
        ("start", "POST", f"{PATH}/start", ()),
        ("stop", "POST", f"{PATH}/stop", ()),
        ("restart", "POST", f"{PATH}/restart", ()),
        ("delete", "DELETE", PATH, ("--yes",)),
    ],
)
def test_changes_wait_for_their_operation(
    server: ScriptedServer,
    command: Command,
    verb: str,
    method: str,
    path: str,
    more: tuple[str, ...],
) -> None:
    accept(server, method, path, verb, make_operation("done", verb))
    result = command(verb, "orders", *more)
    assert (result.exit_code, result.stdout) == (0, f"orders {verb} done\n")


@pytest.mark.parametrize(
    ("arguments", "params"),
    [
        ((), {}),
        (("--from", "earliest"), {"from": "earliest"}),
        (("--state", "resume"), {"state": "resume"}),
        (("--state", "Fresh", "--stage", "load"), {"state": "fresh", "stage": "load"}),
    ],
)
def test_restart_says_where_to_begin_only_if_it_is_told(
    server: ScriptedServer, command: Command, arguments: tuple[str, ...], params: dict[str, str]
) -> None:
    accept(server, "POST", f"{PATH}/restart", "restart", make_operation("done", "restart"))
    assert command("restart", "orders", *arguments).exit_code == 0
    (asked,) = server.asked("POST", f"{PATH}/restart")
    assert asked.params == {**params, "wait": "1"}


def test_restart_asks_before_records_come_again(server: ScriptedServer, command: Command) -> None:
    """Without a terminal it refuses, and says with which option it does not."""
    again = "stage enrich: up to 50 records of orders.in[0], from offset 40"
    fault, problem = {"message": again, "hint": "confirm it"}, "rewind_not_confirmed"
    other = {"message": "of another partition", "hint": "confirm it"}
    end = make_operation("failed", "restart", errors=[fault, other], problem=problem)
    accept(server, "POST", f"{PATH}/restart", "restart", end)
    result = command("restart", "orders", "--from", "orders.in[0]=40", "--stage", "enrich")
    assert result.exit_code == 2
    assert again in result.stderr
    assert result.stderr.count("confirm it") == 1, "a hint that all share comes once"
    assert "--yes" in result.stderr
    (asked,) = server.asked("POST", f"{PATH}/restart")
    assert asked.params == {"from": "orders.in[0]=40", "stage": "enrich", "wait": "1"}


def test_restart_with_a_fresh_state_asks_too(server: ScriptedServer, command: Command) -> None:
    end = make_operation("failed", "restart", errors=[FAULT], problem="rewind_not_confirmed")
    accept(server, "POST", f"{PATH}/restart", "restart", end)
    result = command("restart", "orders", "--state", "fresh")
    assert result.exit_code == 2
    assert str(FAULT["message"]) in result.stderr
    assert [asked.params.get("yes") for asked in server.asked("POST", f"{PATH}/restart")] == [None]


@pytest.mark.parametrize("state", ["fresh", "resume"])
def test_restart_takes_a_place_or_a_state(
    server: ScriptedServer, command: Command, state: str
) -> None:
    result = command("restart", "orders", "--from", "earliest", "--state", state)
    assert result.exit_code == 2
    assert "take --from WHERE, --state fresh, or neither" in result.stderr
    assert server.requests == []


def test_restart_with_yes_reads_again(server: ScriptedServer, command: Command) -> None:
    accept(server, "POST", f"{PATH}/restart", "restart", make_operation("done", "restart"))
    assert command("restart", "orders", "--from", "earliest", "--yes").exit_code == 0
    (asked,) = server.asked("POST", f"{PATH}/restart")
    assert asked.params == {"from": "earliest", "yes": "true", "wait": "1"}


def test_restart_that_must_be_told_where_to_begin_says_how(
    server: ScriptedServer, command: Command
) -> None:
    hint = "choose where to begin: `waybill restart orders --from earliest`, or latest"
    fault = {"message": "topic orders.in had id A, now it has id B", "hint": hint}
    end = make_operation("failed", "restart", errors=[fault])
    accept(server, "POST", f"{PATH}/restart", "restart", end)
    result = command("restart", "orders")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "orders: topic orders.in had id A, now it has id B",
        f"    hint: {hint}",
        "error: restart orders failed",
    ]


def test_a_conflict_is_told_with_its_hint(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", f"{PATH}/start", problem(409, "it is Stopping", hint="wait for Stopped"))
    result = command("start", "orders")
    assert result.exit_code == 1
    assert result.stderr == "error: it is Stopping\nhint: wait for Stopped\n"


def test_get_lists_pipelines_in_columns(server: ScriptedServer, command: Command) -> None:
    other = {**PIPELINE, "name": "a-much-longer-name", "phase": "Failed", "reason": "no table"}
    server.answer("GET", "/v1/pipelines", Response(json={"items": [PIPELINE, other]}))
    assert command("get").stdout.splitlines() == [
        "NAME                PHASE    DESIRED  GENERATION  SINCE                      REASON",
        "orders              Running  running  2           2026-11-21T09:00:00+00:00",
        "a-much-longer-name  Failed   running  2           2026-11-21T09:00:00+00:00  no table",
    ]


def test_get_says_which_stage_has_failed(server: ScriptedServer, command: Command) -> None:
    failed = {"kind": "degraded", "stage": "load", "cause": "stage_failed", "since": None}
    item = {**PIPELINE, "conditions": [failed]}
    server.answer("GET", "/v1/pipelines", Response(json={"items": [item]}))
    assert command("get").stdout.splitlines()[1].endswith("degraded: stage_failed in stage load")


def test_get_without_pipelines_says_what_to_do(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", "/v1/pipelines", Response(json={"items": []}))
    result = command("get")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "waybill apply -f" in result.stderr


def test_get_as_json(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", "/v1/pipelines", Response(json={"items": [PIPELINE]}))
    server.answer("GET", PATH, Response(json=PIPELINE))
    assert json.loads(command("get", "-o", "json").stdout) == {"items": [PIPELINE]}
    assert json.loads(command("get", "orders", "-o", "json").stdout) == PIPELINE


def test_get_of_a_missing_pipeline_is_an_error(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, problem(404, "no pipeline orders"))
    assert command("get", "orders").exit_code == 1


def test_list_asks_for_phases_and_tags(server: ScriptedServer, command: Command) -> None:
    failed = {**PIPELINE, "phase": "Failed"}
    server.answer("GET", "/v1/pipelines", Response(json={"items": [failed]}))
    asked = ("--phase", "failed", "--phase", "Recovering", "--tag", "shop")
    lines = command("list", *asked).stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["NAME", "PHASE"], ["orders", "Failed"]]
    told = command("list", *asked, "-o", "json")
    assert json.loads(told.stdout) == {"items": [failed]}
    # The server of this test keeps the last of several values.
    assert [each.params for each in server.requests] == [{"phase": "Recovering", "tag": "shop"}] * 2
    asked_for = questions.pipelines(None, ["Failed", "Recovering"], ["shop"]).params
    assert asked_for == {"phase": ["Failed", "Recovering"], "tag": ["shop"]}
    assert command("list", "--phase", "Broken").exit_code == 2


def test_a_list_without_pipelines_that_fit_says_so(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("GET", "/v1/pipelines", Response(json={"items": []}))
    result = command("list", "--phase", "Failed")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no pipeline is so now" in result.stderr
    assert "waybill apply -f" in command("list").stderr


TEXT = "# mine\r\nversion: 1\nname: orders   # \u00e9\n\n"


def applied(server: ScriptedServer, name: str = "orders", **more: object) -> None:
    body = {**PIPELINE, "name": name, "manifest": TEXT, **more}
    server.answer("GET", f"/v1/pipelines/{name}", Response(json=body))


def test_get_manifest_prints_the_text_as_it_was_applied(
    server: ScriptedServer, command: Command
) -> None:
    applied(server)
    result = command("get", "manifest", "orders")
    assert (result.exit_code, result.stdout_bytes) == (0, TEXT.encode())


def test_get_manifest_shows_a_terminal_no_control_characters(
    server: ScriptedServer, terminal: Callable[..., str]
) -> None:
    applied(server, manifest="name: orders # \x1b[2J\n")
    assert "name: orders # \\x1b[2J" in terminal("get", "manifest", "orders")


def test_get_manifest_as_json_has_its_generation(server: ScriptedServer, command: Command) -> None:
    applied(server)
    told = json.loads(command("get", "manifest", "orders", "-o", "json").stdout)
    assert told == {"name": "orders", "generation": 2, "manifest": TEXT}


def test_get_manifest_alone_is_a_pipeline_of_that_name(
    server: ScriptedServer, command: Command
) -> None:
    applied(server, "manifest")
    assert "manifest  Running" in command("get", "manifest").stdout
    assert command("get", "manifest", "manifest").stdout_bytes == TEXT.encode()


def test_get_of_two_names_is_a_usage_error(server: ScriptedServer, command: Command) -> None:
    result = command("get", "orders", "clicks")
    assert (result.exit_code, server.requests) == (2, [])
    assert "waybill get manifest clicks" in " ".join(result.stderr.split())


def test_get_manifest_that_is_not_told_is_an_error(
    server: ScriptedServer, command: Command
) -> None:
    applied(server, manifest=None)
    result = command("get", "manifest", "orders")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is not known" in result.stderr
