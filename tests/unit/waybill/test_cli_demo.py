"""What the demo says in the end can be typed as it is printed."""

import sys
from pathlib import Path
from typing import cast

import pytest

from waybill.cli import demo
from waybill.cli.demo import show_what_next
from waybill.errors import WaybillError
from waybill.sync.client import Client
from waybill_local import stack
from waybill_local.state import AlreadyRunning


def commands(capsys: pytest.CaptureFixture[str]) -> list[str]:
    lines = capsys.readouterr().out.splitlines()
    return [line.strip().partition("  ")[0] for line in lines if line.startswith("    ")]


def test_commands_have_a_path_where_the_shell_would_not_find_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / ".venv" / "bin" / "waybill"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(program), "demo"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    show_what_next(own=True)
    assert commands(capsys)[:2] == [
        ".venv/bin/waybill up --detach",
        ".venv/bin/waybill start orders",
    ]

    monkeypatch.setenv("PATH", str(program.parent))
    show_what_next(own=True)
    assert commands(capsys)[0] == "waybill up --detach"


def test_a_stack_that_was_there_before_runs_on(capsys: pytest.CaptureFixture[str]) -> None:
    show_what_next(own=False)
    assert not [command for command in commands(capsys) if " up " in command or "start" in command]


class Stops:
    """Acts for a client: notes which pipelines it is to stop."""

    def __init__(self) -> None:
        self.stopped: list[str] = []

    def stop(self, pipeline: str) -> None:
        self.stopped.append(pipeline)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("error", [KeyboardInterrupt, WaybillError, None])
def test_its_pipeline_is_stopped_however_the_demo_ends(
    own: bool, error: type[BaseException] | None
) -> None:
    """Else the next `up` would start it again."""
    client = Stops()
    raised: type[BaseException] | None = None
    try:
        with demo._stop_at_the_end(cast(Client, client), own=own):
            if error is not None:
                raise error
    except (KeyboardInterrupt, WaybillError) as found:
        raised = type(found)
    assert client.stopped == (["orders"] if own else [])
    assert raised is error


def test_interruption_is_told_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), demo._ends_in_a_sentence():
        raise KeyboardInterrupt
    assert capsys.readouterr().err.startswith("interrupted: what the demo started is stopped")


def test_stack_that_is_just_starting_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AlreadyRunning(None)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stack, "up", refuse)
    with pytest.raises(WaybillError, match="just starting: try again"), demo._stack(demo.Story()):
        pass
