"""What commands do while they wait, and when the time for it is over."""

import json
import re
from typing import NamedTuple

import pytest

from unit.waybill.conftest import MANIFEST, Command, Terminal
from unit.waybill.test_cli_pipelines import PATH, PIPELINE, accept, make_operation
from waybill.cli.phases import PipelinePhase
from waybill.testing import Response, ScriptedServer, problem
from waybill_shared.contract.manifest.fields import NAME_PATTERN


class Change(NamedTuple):
    """A command that changes a pipeline, and the request that it makes."""

    action: str
    method: str
    path: str
    arguments: tuple[str, ...]


TO_RUN = [
    Change("apply", "PUT", PATH, ("apply", "-f", "-")),
    Change("start", "POST", f"{PATH}/start", ("start", "orders")),
    Change("restart", "POST", f"{PATH}/restart", ("restart", "orders")),
]
TO_END = [
    Change("stop", "POST", f"{PATH}/stop", ("stop", "orders")),
    Change("delete", "DELETE", PATH, ("delete", "orders", "--yes")),
]
IN_LINE = {**PIPELINE, "phase": "Scheduling", "reason": "2. in the line for a driver"}


def pend(server: ScriptedServer, change: Change) -> None:
    """Accepted, and not done when the time is over."""
    pending = make_operation("pending", change.action)
    accept(server, change.method, change.path, change.action, pending)


@pytest.mark.parametrize("phase", [None, "Scheduling", "Starting", "Running", "Stopped"])
@pytest.mark.parametrize("change", TO_RUN)
def test_what_does_not_run_in_time_was_accepted(
    server: ScriptedServer, command: Command, change: Change, phase: str | None
) -> None:
    """Whatever the pipeline does meanwhile, and whether there is one: `waybill wait` follows it."""
    pend(server, change)
    new = problem(404, "there is no pipeline 'orders'")
    server.answer("GET", PATH, Response(json={**PIPELINE, "phase": phase}) if phase else new)
    asked = (*change.arguments, "--timeout", "0")
    result = command(*asked, stdin=MANIFEST)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        f"{change.action} orders is accepted, but not done after 0 s:"
        " `waybill wait op-1` follows it\n"
    )
    told = json.loads(command(*asked, "-o", "json", stdin=MANIFEST).stdout)
    assert told["state"] == "pending"


@pytest.mark.parametrize("change", TO_RUN + TO_END)
def test_what_must_be_done_in_time_ends_with_4(
    server: ScriptedServer, command: Command, change: Change
) -> None:
    pend(server, change)
    wait, follows = ("--wait",) if change in TO_RUN else (), "`waybill wait op-1` follows it"
    result = command(*change.arguments, *wait, "--timeout", "0", stdin=MANIFEST)
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.splitlines() == [
        f"{change.action} orders is not done after 0 s: it goes on, and {follows}",
        "hint: `waybill describe orders` says what it waits for",
    ]


def test_a_refusal_in_time_is_an_error_with_or_without_wait(
    server: ScriptedServer, command: Command
) -> None:
    accept(server, "POST", f"{PATH}/start", "start", make_operation("failed", "start"))
    assert command("start", "orders").exit_code == 1
    assert command("start", "orders", "--wait").exit_code == 1


@pytest.mark.parametrize(
    ("state", "code", "told"),
    [
        ("done", 0, "orders apply done"),
        ("pending", 4, "apply orders is not done after 0 s"),
        ("failed", 1, "error: apply orders failed"),
    ],
)
def test_wait_follows_an_operation(
    server: ScriptedServer, command: Command, state: str, code: int, told: str
) -> None:
    end = make_operation(state, errors=[{"message": "no column amout"}] * (state == "failed"))
    server.answer("GET", "/v1/operations/apply.orders.1a", end)
    result = command("wait", "apply.orders.1a", "--timeout", "0")
    assert result.exit_code == code
    assert told in result.output
    assert ("no column amout" in result.stderr) == (state == "failed")


def test_no_name_of_a_pipeline_is_that_of_an_operation() -> None:
    assert not re.match(NAME_PATTERN, "apply.orders.1a")


@pytest.mark.parametrize("name", ["apply", "start", "stop", "restart", "delete", "wait"])
def test_help_says_how_long_it_waits(command: Command, name: str) -> None:
    told = " ".join(command(name, "--help").stdout.split())
    assert "--timeout SECONDS how long to wait at most [default: 120.0; x>=0.0]" in told


def test_the_time_that_is_given_is_the_time_that_is_waited(
    server: ScriptedServer, command: Command
) -> None:
    accept(server, "POST", f"{PATH}/start", "start", make_operation("done", "start"))
    assert command("start", "orders", "--timeout", "7").exit_code == 0
    (asked,) = server.asked("GET", "/v1/operations/op-1")
    assert float(asked.params["wait"]) == pytest.approx(7, abs=1)


def test_a_check_that_nobody_makes_in_time_ends_with_4(
    server: ScriptedServer, command: Command
) -> None:
    accept(server, "POST", "/v1/validate", "validate", make_operation("pending", "validate"))
    assert command("check", "-f", "-", "--timeout", "0", stdin=MANIFEST).exit_code == 4


def test_wait_right_after_apply_waits_for_running(server: ScriptedServer, command: Command) -> None:
    unknown = Response(status=404, json={"detail": "no pipeline orders"})
    starting = Response(json={**PIPELINE, "phase": "Starting"})
    server.answer("GET", PATH, unknown, starting, Response(json=PIPELINE))
    result = command("wait", "orders")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "orders Running\n", "")


@pytest.mark.parametrize(
    ("phase", "arguments", "code"),
    [
        ("Running", (), 0),
        ("Stopped", ("--for", "Stopped"), 0),
        ("Starting", ("--timeout", "0"), 4),
        ("Failed", (), 1),
    ],
)
def test_wait_ends_with_the_code_of_the_phase(
    server: ScriptedServer, command: Command, phase: str, arguments: tuple[str, ...], code: int
) -> None:
    server.answer("GET", PATH, Response(json={**PIPELINE, "phase": phase}))
    result = command("wait", "orders", *arguments)
    assert result.exit_code == code
    assert result.stdout == (f"orders {phase}\n" if code == 0 else "")
    assert ("`waybill describe orders` says why" in result.stderr) == (code != 0)


def test_wait_for_what_needs_somebody_ends_at_once_with_what_to_do(
    server: ScriptedServer, command: Command
) -> None:
    stopped = Response(json={**PIPELINE, "phase": "Stopped", "desired": "stopped"})
    server.answer("GET", PATH, stopped, stopped, Response(json=PIPELINE))
    result = command("wait", "orders")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        "error: pipeline orders is Stopped, and not Running before somebody acts",
        "hint: `waybill start orders` lets it go on",
    ]
    assert command("wait", "orders", "--anybody").stdout == "orders Running\n"


@pytest.mark.parametrize("phase", list(PipelinePhase))
def test_a_pipeline_that_is_in_the_phase_is_not_waited_for(
    server: ScriptedServer, command: Command, phase: PipelinePhase
) -> None:
    server.answer("GET", PATH, Response(json={**PIPELINE, "phase": phase}))
    result = command("wait", "orders", "--for", phase.lower())
    assert (result.exit_code, result.stdout) == (0, f"orders {phase}\n")
    assert len(server.requests) == 1


@pytest.mark.parametrize("arguments", [("wait", "orders"), ("start", "orders")])
def test_on_a_terminal_its_phase_and_place_in_the_line_are_shown(
    server: ScriptedServer,
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.setattr("waybill.cli.phase_view.LOOK_INTERVAL_S", 0.05)
    monkeypatch.setenv("NO_COLOR", "1")
    in_line = [Response(json=IN_LINE)] * 8
    server.answer("GET", PATH, *in_line, Response(json=PIPELINE))
    pending, done = make_operation("pending", "start"), make_operation("done", "start")
    accept(server, "POST", f"{PATH}/start", "start", pending)
    server.answer("GET", "/v1/operations/op-1", done)
    assert "Scheduling, 2. in the line for a driver, 0 s" in terminal(*arguments)


@pytest.mark.parametrize("quiet", [("-o", "json"), ("-q",)])
def test_nothing_of_it_is_shown_to_who_wants_no_talk(
    server: ScriptedServer, terminal: Terminal, quiet: tuple[str, ...]
) -> None:
    server.answer("GET", PATH, Response(json=IN_LINE), Response(json=PIPELINE))
    shown = terminal("wait", "orders", *quiet)
    assert "waiting for" not in shown
    assert len(server.requests) == 2
