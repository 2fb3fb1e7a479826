"""What all commands keep: help that teaches, plain text off a terminal, one boundary of errors."""

import pytest
from typer.testing import CliRunner, Result

from unit.waybill.conftest import Command, Terminal
from waybill.cli.main import app
from waybill.testing import Response, ScriptedServer, event_stream

COMMANDS = [
    "up",
    "down",
    "ps",
    "env",
    "apply",
    "wait",
    "get",
    "describe",
    "offsets",
    "start",
    "stop",
    "delete",
    "send",
    "token show",
    "token wait",
    "token for",
    "version",
]
LOST = Response(json={"outcome": "lost", "pipeline": "orders\x1b[2J"})
ESCAPE = "\x1b["
ERASE_LINE = "\x1b[2K"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_an_example_and_the_exit_codes(name: str) -> None:
    result = run(*name.split(), "--help")
    assert result.exit_code == 0
    assert f"waybill {name}" in result.stdout.partition("Example:")[2]
    assert "Exit codes: 0 " in result.stdout


def test_help_lists_every_command() -> None:
    listed = run("--help").stdout.partition("Commands:")[2]
    for name in COMMANDS:
        assert f"\n  {name.split()[0]} " in listed


@pytest.mark.parametrize("arguments", [["send"], ["get", "-o", "xml"], ["nonsense"]])
def test_usage_errors_end_with_2(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_nobody_there_is_told_without_a_trace() -> None:
    result = CliRunner(env={"WAYBILL_URL": "http://127.0.0.1:9"}).invoke(app, ["get"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing listens at http://127.0.0.1:9 (from --url or WAYBILL_URL)" in result.stderr
    assert "`waybill up`" in result.stderr


def test_there_is_no_colour_off_a_terminal(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", "/v1/tokens/wb1.t", LOST)
    assert ESCAPE not in command("token", "show", "wb1.t").output


def test_control_characters_of_others_are_shown_not_obeyed(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("GET", "/v1/tokens/wb1.t", LOST)
    assert "orders\\x1b[2J" in command("token", "show", "wb1.t").stdout


@pytest.mark.parametrize(("no_colour", "coloured"), [("", True), ("1", False)])
def test_on_a_terminal_colour_follows_no_color(
    server: ScriptedServer,
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    no_colour: str,
    coloured: bool,
) -> None:
    server.answer("GET", "/v1/tokens/wb1.t", LOST)
    monkeypatch.setenv("NO_COLOR", no_colour)
    shown = terminal("token", "show", "wb1.t")
    assert (f"{ESCAPE}31mlost" in shown) == coloured
    assert (ESCAPE in shown) == coloured


def test_on_a_terminal_what_is_waited_for_is_shown(
    server: ScriptedServer, terminal: Terminal
) -> None:
    server.answer(
        "GET", "/v1/pipelines/orders", Response(json={"name": "orders", "phase": "Running"})
    )
    assert "waiting for orders to be Running" in terminal("wait", "orders")


def test_on_a_terminal_progress_is_one_block_that_goes_away(
    server: ScriptedServer, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_outcome(kind: str, state: str) -> dict[str, object]:
        sinks = [{"name": "lake", "state": state}]
        return {"outcome": kind, "stages": [{"stage": "load", "state": state, "sinks": sinks}]}

    changes = (make_outcome("in_progress", "waiting"), make_outcome("complete", "committed"))
    server.answer("GET", "/v1/tokens/wb1.t", event_stream(*changes))
    monkeypatch.setenv("NO_COLOR", "1")
    shown = terminal("token", "wait", "wb1.t")
    assert "load  lake  waiting" in shown
    before_outcome, outcome = shown.split("load  lake  committed")[-2:]
    assert ERASE_LINE in before_outcome
    assert outcome == "\r\n"
