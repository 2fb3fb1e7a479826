"""What the tests of the client share: a scripted Waybill, a clock, a clean environment."""

import pty
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from waybill import Client
from waybill.cli import render
from waybill.cli.main import app
from waybill.testing import ManualClock, ScriptedServer

Command = Callable[..., Result]
Terminal = Callable[..., str]  # runs a command on a real pseudo-terminal: what it wrote there
END = "<the end>"
NOT_SET = (
    "WAYBILL_URL", "WAYBILL_CONTEXT", "NO_COLOR", "FORCE_COLOR", "HTTP_PROXY", "http_proxy",
)  # fmt: skip
MANIFEST = "version: 1\nname: orders\n"


def make_fault(
    message: str = "no view is called `ordrs`",
    *,
    line: int | None = 12,
    column: int | None = 5,
    path: str = "stages.0.steps.0.sql",
    hint: str = "did you mean 'orders'?",
) -> dict[str, object]:
    """What is wrong with a manifest, as a problem tells it."""
    place = {"line": line, "column": column, "path": path}
    return {"message": message, **place, "hint": hint}


def waybill(*arguments: str) -> Result:
    """Run the command where no Waybill is named."""
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in NOT_SET:
        monkeypatch.setenv(name, "")  # so that it is not there afterwards, whatever a command sets
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(render, "_quiet", False)  # a command with `--quiet` sets it for its process
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as scripted:
        yield scripted


@pytest.fixture
def client(server: ScriptedServer, clock: ManualClock) -> Iterator[Client]:
    with Client(server.url, clock=clock) as opened:
        yield opened


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    """Its name, in the folder of the test."""
    (tmp_path / "orders.yaml").write_text(MANIFEST)
    return "orders.yaml"


@pytest.fixture
def command(server: ScriptedServer) -> Command:
    """Runs the command `waybill` with these arguments against the scripted server."""

    def run(
        *arguments: str, stdin: str | bytes = "", environment: dict[str, str] | None = None
    ) -> Result:
        runner = CliRunner(env={"WAYBILL_URL": server.url, **(environment or {})})
        return runner.invoke(app, list(arguments), input=stdin)

    return run


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """For who asks whether there is one."""

    class Here:
        def isatty(self) -> bool:
            return True

    class Sys:
        stdin = Here()
        stderr = Here()

    monkeypatch.setattr("waybill.cli.asking.sys", Sys())
    assert sys.stdin is not Sys.stdin


@pytest.fixture
def terminal(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("WAYBILL_URL", server.url)
    reading, writing = pty.openpty()
    with open(reading, "rb", buffering=0) as screen, open(writing, "w") as stream:

        def shown(*arguments: str) -> str:
            with monkeypatch.context() as swapped:
                swapped.setattr(sys, "stdout", stream)
                swapped.setattr(sys, "stderr", stream)
                with pytest.raises(SystemExit):
                    app(list(arguments))
            stream.write(END)
            stream.flush()
            text = ""
            while END not in text:
                text += screen.read(4096).decode()
            return text.removesuffix(END)

        yield shown
