"""What a shell and a script get from the command: completion, silence, help with examples."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from unit.waybill.conftest import Command
from waybill.cli.main import app
from waybill.testing import Response, ScriptedServer

PENDING = {"operation": "stop-orders-1", "pipeline": "orders", "action": "stop"}
DONE = {"id": "stop-orders-1", "pipeline": "orders", "action": "stop", "state": "done"}


def commands() -> Iterator[tuple[str, ...]]:
    """Every command, as it is typed."""
    root = typer.main.get_command(app)
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        yield from ((name, each) for each in inner) if inner else ((name,),)


@pytest.mark.parametrize("names", list(commands()), ids=" ".join)
def test_every_help_has_an_example_and_exit_codes(names: tuple[str, ...]) -> None:
    text = CliRunner().invoke(app, [*names, "--help"]).stdout
    assert f"waybill {' '.join(names)}" in text.split("Example:")[1]
    assert "Exit codes:" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str) -> None:
    result = CliRunner().invoke(app, ["completion", shell])
    assert result.exit_code == 0
    assert "_WAYBILL_COMPLETE" in result.stdout


def complete(line: str, url: str) -> list[str]:
    code = "from waybill.cli.main import app; app(prog_name='waybill')"
    words = {
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "_WAYBILL_COMPLETE": "complete_bash",
        "WAYBILL_URL": url,
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **words},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("waybill desc", ["describe"]),
        ("waybill context use lo", ["local"]),
        ("waybill get ord", ["orders"]),
        ("waybill get man", ["manifest"]),
        ("waybill get manifest ord", ["orders"]),
        ("waybill get orders ord", []),
        ("waybill wait ord", ["orders"]),
        ("waybill wait orders --for run", ["Running"]),
        ("waybill send orders cli", ["clicks"]),
        ("waybill token for orders cli", ["clicks"]),
    ],
)
def test_bash_completes_commands_phases_and_names(
    server: ScriptedServer, line: str, words: list[str]
) -> None:
    orders = {"name": "orders", "phase": "Running"}
    clicks = {"name": "clicks", "topic": "clicks.in"}
    server.answer("GET", "/v1/pipelines", Response(json={"items": [orders]}))
    server.answer("GET", "/v1/pipelines/orders", Response(json={**orders, "inputs": [clicks]}))
    assert complete(line, server.url) == words


@pytest.mark.parametrize("line", ["waybill get ord", "waybill send orders cli"])
def test_without_a_waybill_it_completes_nothing_and_says_nothing(line: str) -> None:
    assert complete(line, "http://127.0.0.1:9") == []


def test_quiet_leaves_answers_and_errors(command: Command, server: ScriptedServer) -> None:
    path = "/v1/pipelines/orders/inputs/orders/records"
    receipt = {
        "token": "wb1.t",
        "accepted": 1,
        "rejected": [{"index": 1, "reason": "amount: no"}],
        "request_id": "r",
    }
    server.answer("POST", path, Response(json=receipt))
    result = command("--quiet", "send", "orders", "orders", stdin='{"a": 1}\n{"amount": "x"}\n')
    assert result.stdout == "wb1.t\n"
    assert result.stderr == "line 2: amount: no\n"
    loud = command("send", "orders", "orders", stdin='{"a": 1}\n{"amount": "x"}\n')
    assert "1 accepted, 1 rejected" in loud.stderr
