"""What changes something goes to a Waybill that somebody has named."""

import pty
import sys

import pytest

from unit.waybill.conftest import Command
from waybill.cli.main import app
from waybill.testing import Response, ScriptedServer

VERSION = {"service": "status", "version": "1.2.3"}
STOPPED = {"id": "op", "pipeline": "orders", "action": "stop", "state": "done", "generation": 1}
NOBODY = {"WAYBILL_URL": ""}


@pytest.fixture
def found(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> ScriptedServer:
    """It answers where a stack usually does."""
    monkeypatch.setattr("waybill.target.DEFAULT_URL", server.url)
    server.answer("GET", "/version", Response(json=VERSION))
    server.answer("POST", "/v1/pipelines/orders/stop", Response(json=STOPPED))
    return server


@pytest.mark.parametrize(
    "asked",
    [
        ["delete", "orders"],
        ["stop", "orders"],
        ["start", "orders"],
        ["restart", "orders"],
        ["send", "orders", "orders", "{}"],
    ],
    ids=lambda asked: asked[0],
)
def test_without_a_terminal_nothing_is_changed_where_nobody_is_named(
    found: ScriptedServer, command: Command, asked: list[str]
) -> None:
    result = command(*asked, environment=NOBODY)
    assert result.exit_code == 2
    told = f"error: no stack runs in this folder or above, but Waybill 1.2.3 answers at {found.url}"
    assert told in result.stderr
    assert f"--url {found.url}" in result.stderr
    assert [request.method for request in found.requests] == ["GET"]


def test_who_names_it_is_not_asked(found: ScriptedServer, command: Command) -> None:
    assert command("stop", "orders", "--url", found.url, environment=NOBODY).exit_code == 0
    assert [request.method for request in found.requests] == ["POST"]


def test_who_only_looks_is_not_asked(found: ScriptedServer, command: Command) -> None:
    found.answer("GET", "/v1/pipelines", Response(json={"items": []}))
    assert command("get", environment=NOBODY).exit_code == 0


def test_where_nothing_answers_that_is_told(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill.target.DEFAULT_URL", "http://127.0.0.1:9")
    result = command("stop", "orders", environment=NOBODY)
    assert result.exit_code == 1
    assert "nothing listens at http://127.0.0.1:9" in result.stderr


@pytest.mark.parametrize(("typed", "sent"), [("y\n", ["GET", "POST"]), ("\n", ["GET"])])
def test_a_person_is_asked(
    found: ScriptedServer, monkeypatch: pytest.MonkeyPatch, typed: str, sent: list[str]
) -> None:
    person, slave = pty.openpty()
    with (
        open(person, "wb", buffering=0) as keyboard,
        open(slave, closefd=False) as reading,
        open(slave, "w") as screen,
    ):
        monkeypatch.setattr(sys, "stdin", reading)
        monkeypatch.setattr(sys, "stderr", screen)
        keyboard.write(typed.encode())
        with pytest.raises(SystemExit) as ended:
            app(["stop", "orders"])
    assert [request.method for request in found.requests] == sent
    assert ended.value.code == (0 if len(sent) > 1 else 1)
