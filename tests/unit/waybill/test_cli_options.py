"""The options of every command: before or behind its name, and what a wrong word is told."""

import json

import pytest
from typer.testing import CliRunner

from unit.waybill.conftest import Command
from unit.waybill.test_cli_shell import commands
from waybill.cli.main import app
from waybill.testing import Response, ScriptedServer

PATH = "/v1/pipelines"
NOBODY = "http://127.0.0.1:9"
EMPTY = Response(json={"items": []})


@pytest.mark.parametrize("names", list(commands()), ids=" ".join)
def test_every_command_takes_them_and_says_so_once(names: tuple[str, ...]) -> None:
    options = CliRunner().invoke(app, [*names, "--help"]).stdout.partition("Options:")[2]
    for option in ("-o, --output <table|json>", "-q, --quiet", "--context NAME", "--url URL"):
        assert options.count(option) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("-o", "json", "get"),
        ("get", "-o", "json"),
        ("-o", "table", "get", "-o", "json"),
        ("--output", "JSON", "get"),
    ],
)
def test_the_form_may_stand_on_both_sides_and_the_last_one_wins(
    server: ScriptedServer, command: Command, arguments: tuple[str, ...]
) -> None:
    server.answer("GET", PATH, EMPTY)
    assert json.loads(command(*arguments).stdout) == {"items": []}


@pytest.mark.parametrize(
    "arguments",
    [
        ("-o", "json", "context", "list"),
        ("context", "-o", "json", "list"),
        ("context", "list", "-o", "json"),
    ],
)
def test_a_command_in_a_group_takes_it_in_three_places(arguments: tuple[str, ...]) -> None:
    assert json.loads(CliRunner().invoke(app, arguments).stdout)["used"] == "local"


def test_the_inner_table_wins_over_the_outer_json(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, EMPTY)
    assert command("-o", "json", "get", "-o", "table").stdout == ""


@pytest.mark.parametrize("arguments", [("-q", "get"), ("get", "-q"), ("-q", "get", "--quiet")])
def test_quiet_may_stand_on_both_sides(
    server: ScriptedServer, command: Command, arguments: tuple[str, ...]
) -> None:
    server.answer("GET", PATH, EMPTY)
    assert command(*arguments).stderr == ""
    assert "no pipelines yet" in command("get").stderr


@pytest.mark.parametrize("outer", [(), ("--url", NOBODY), ("--context", "local")])
def test_the_url_behind_the_command_wins(
    server: ScriptedServer, command: Command, outer: tuple[str, ...]
) -> None:
    server.answer("GET", PATH, EMPTY)
    nobody = {"WAYBILL_URL": NOBODY, "WAYBILL_CONTEXT": ""}
    assert command(*outer, "get", "--url", server.url, environment=nobody).exit_code == 0
    if not outer:
        assert command("--url", server.url, "get", environment=nobody).exit_code == 0


def test_a_context_behind_the_command_wins_over_a_url(
    server: ScriptedServer, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill.target.DEFAULT_URL", NOBODY)
    named = {"WAYBILL_CONTEXT": ""}
    result = command("--url", server.url, "get", "--context", "local", environment=named)
    assert result.exit_code == 1
    assert server.requests == []


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080"])
def test_what_is_no_url_is_refused(url: str, command: Command) -> None:
    result = command("get", "--url", url)
    assert result.exit_code == 2
    assert "should begin with http:// or https://" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "known"),
    [
        (("wait", "orders", "--for", "Runing"), "'running', 'paused', 'recovering'"),
        (("get", "-o", "xml"), "'table', 'json'"),
        (("-o", "xml", "get"), "'table', 'json'"),
        (("completion", "tcsh"), "'bash', 'zsh', 'fish'"),
        (("keys", "new", "--file", "k", "--scope", "root"), "'read', 'write', 'admin'"),
    ],
)
def test_a_wrong_word_is_refused_at_once_with_the_right_ones(
    server: ScriptedServer, command: Command, arguments: tuple[str, ...], known: str
) -> None:
    result = command(*arguments)
    assert result.exit_code == 2
    assert known in result.stderr
    assert server.requests == []


@pytest.mark.parametrize("phase", ["running", "RUNNING", "Running"])
def test_case_does_not_matter(server: ScriptedServer, command: Command, phase: str) -> None:
    server.answer("GET", f"{PATH}/orders", Response(json={"name": "orders", "phase": "Running"}))
    assert command("wait", "orders", "--for", phase, "--timeout", "0").exit_code == 0
    assert command("completion", "BASH").exit_code == 0


def test_where_to_begin_is_sent_as_waybill_spells_it(
    server: ScriptedServer, command: Command
) -> None:
    done = {"id": "op-1", "pipeline": "orders", "action": "restart", "state": "done"}
    server.answer("POST", f"{PATH}/orders/restart", Response(json=done))
    assert command("restart", "orders", "--from", "Earliest").exit_code == 0
    assert server.requests[0].params["from"] == "earliest"


@pytest.mark.parametrize("more", [(), ("--state", "resume")])
def test_restart_of_one_stage_needs_to_say_where_it_begins(
    server: ScriptedServer, command: Command, more: tuple[str, ...]
) -> None:
    result = command("restart", "orders", "--stage", "load", *more)
    assert (result.exit_code, server.requests) == (2, [])
    assert "--from WHERE or --state fresh" in result.stderr


def test_wait_says_how_to_wait_for_a_token(command: Command) -> None:
    result = command("wait", "wb1.abc")
    assert result.exit_code == 2
    assert "waybill token wait wb1.abc" in result.stderr
