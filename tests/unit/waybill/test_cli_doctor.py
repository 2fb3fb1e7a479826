"""`waybill doctor`: one line a question, the fix below, and an exit code for scripts."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.waybill.conftest import Command
from waybill.testing import Response, ScriptedServer
from waybill.version import client_version
from waybill_local.checks import CheckResult, Verdict

NOBODY = "http://127.0.0.1:9"
VERSION = ("GET", "/version")
READY = ("GET", "/readyz")
GOOD = Response(json={"service": "gateway", "version": client_version()})
SERVICES = Response(json={"ingress": {"kafka": "ok"}, "status": {"redis": "ok"}})


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> list[CheckResult]:
    """What is found on this machine; a test may add to it."""
    told = [CheckResult(name="java", verdict=Verdict.OK, text="21.0.4")]

    def look(_: Path) -> Iterator[CheckResult]:
        yield from told

    monkeypatch.setattr("waybill_local.checks.check_machine", look)
    return told


def test_all_is_well(command: Command, server: ScriptedServer) -> None:
    server.answer(*VERSION, GOOD)
    server.answer(*READY, SERVICES)
    result = command("doctor")
    assert result.exit_code == 0
    words = [line.split() for line in result.stdout.splitlines()]
    assert [line[0] for line in words] == ["ok"] * 4
    assert words[0] == ["ok", "java", "21.0.4"]
    assert words[2] == ["ok", "service", "ingress", "ready"]


def test_what_is_wrong_is_told_with_its_fix(
    command: Command, server: ScriptedServer, machine: list[CheckResult]
) -> None:
    machine.append(CheckResult(name="disk", verdict=Verdict.WRONG, text="full", fix="make room"))
    server.answer(*VERSION, Response(json={"service": "gateway", "version": "0.0.1"}))
    server.answer(
        *READY,
        Response(status=503, json={"status": {"redis": "no answer"}, "ingress": {"k": "ok"}}),
    )
    result = command("doctor", "-o", "json")
    told = json.loads(result.stdout)
    assert (result.exit_code, told["healthy"]) == (1, False)
    by_name = {check["name"]: check for check in told["checks"]}
    assert by_name["disk"]["fix"] == "make room"
    assert (by_name["waybill"]["verdict"], by_name["waybill"]["text"].split()[0]) == (
        "warn",
        "0.0.1",
    )
    assert by_name["service status"]["text"] == "redis: no answer"
    assert by_name["service status"]["fix"] == "see `waybill logs status`"
    assert by_name["service ingress"]["verdict"] == "ok"


def test_a_chosen_waybill_that_does_not_answer_is_wrong(command: Command) -> None:
    result = command("doctor", environment={"WAYBILL_URL": NOBODY})
    assert result.exit_code == 1
    assert "nothing listens at" in result.stdout


def test_no_waybill_at_all_is_only_a_warning(command: Command, tmp_path: Path) -> None:
    (tmp_path / ".waybill").mkdir()
    (tmp_path / ".waybill" / "state.json").write_text('{"ports": {"gateway": 9}}')
    result = command("doctor", environment={"WAYBILL_URL": ""})
    assert result.exit_code == 0
    assert "start the local stack with `waybill up`" in result.stdout


def test_without_the_local_stack_the_waybill_in_use_is_asked_all_the_same(
    command: Command, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "waybill_local", None)
    server.answer(*VERSION, GOOD)
    server.answer(*READY, SERVICES)
    result = command("doctor")
    assert result.exit_code == 0
    assert "not installed" in result.stdout
