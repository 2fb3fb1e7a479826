"""What the demo says in the end can be typed as it is printed."""

import sys
from pathlib import Path

import pytest

from waybill.cli.demo import show_what_next


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
