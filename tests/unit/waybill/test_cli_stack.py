"""`waybill up, down, ps, env`: what they show of the local stack, and their exit codes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from stack_states import make_stack
from unit.waybill.conftest import waybill
from waybill.testing import Response, ScriptedServer
from waybill_local.errors import StackError
from waybill_local.processes import Interrupted
from waybill_local.reports import STACK, Report, Reporter, ReportKind
from waybill_local.stack import Options
from waybill_local.state import AlreadyRunning, StackState, save

READY = Report(kind=ReportKind.READY, name=STACK, address="http://127.0.0.1:8080", seconds=8.2)
KAFKA = Report(kind=ReportKind.READY, name="kafka", version="4.3.1", seconds=2.4)
JARS = Report(kind=ReportKind.WORKING, name="jars", text="kafka-clients 3 of 49")


def write_state(folder: Path, supervisor: psutil.Process) -> StackState:
    state = make_stack(folder / ".waybill", supervisor)
    state.folder.mkdir()
    save(state)
    return state


@pytest.fixture
def running(tmp_path: Path) -> Iterator[StackState]:
    """A stack of this folder whose only process is a real one that does nothing."""
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    with subprocess.Popen(command) as process:
        try:
            yield write_state(tmp_path, psutil.Process(process.pid))
        finally:
            process.kill()


def test_ps_shows_processes_and_addresses(running: StackState) -> None:
    result = waybill("ps")
    assert result.exit_code == 0
    pid = running.supervisor_pid
    assert result.stdout.splitlines() == [
        f"NAME   STATE  ADDRESS         VERSION  {'PID':<{len(str(pid))}}".rstrip(),
        f"kafka  ready  127.0.0.1:9092  4.3.1    {pid}",
        "",
        "  url      http://127.0.0.1:8080",
        "  console  http://127.0.0.1:8080/",
        "  docs     http://127.0.0.1:8080/docs",
        "  kafka    127.0.0.1:9092",
        "  redis    redis://127.0.0.1:6379/0",
        "  drivers  0 at work, 0 spare",
        f"  data     kept in {running.folder}",
    ]


def test_ps_finds_the_stack_of_a_folder_above(
    running: StackState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert json.loads(waybill("ps", "-o", "json").stdout)["folder"] == str(running.folder)


def test_ps_shows_the_services_of_the_url_that_is_named(
    running: StackState, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever runs in this folder, as for every other command."""
    services = {
        "ingress": {"service": "ingress", "version": "0.2.0"},
        "status": {"error": "refused"},
        "stage_runner": {"service": "stage_runner", "version": "0.2.0"},
    }
    about = {"service": "gateway", "version": "0.2.0", "services": services}
    server.answer("GET", "/version", Response(json=about))
    checks = {"ingress": {"kafka": "ok"}, "status": "refused", "stage_runner": {"kafka": "away"}}
    server.answer("GET", "/readyz", Response(status=503, json=checks))
    monkeypatch.setenv("WAYBILL_URL", server.url)
    result = waybill("ps")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "NAME          STATE      VERSION",
        "gateway       not ready  0.2.0",
        "ingress       ready      0.2.0",
        "status        no answer",
        "stage_runner  not ready  0.2.0",
        "",
        f"  url      {server.url}",
        f"  console  {server.url}/",
    ]
    assert "from --url or WAYBILL_URL" in result.stderr
    shown = json.loads(waybill("ps", "-o", "json").stdout)
    assert (shown["url"], len(shown["processes"])) == (server.url, 4)
    assert str(running.supervisor_pid) in waybill("ps", "--context", "local").stdout


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_ps_of_the_url_of_this_stack_shows_its_processes(
    running: StackState, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_URL", f"http://{host}:8080")
    assert str(running.supervisor_pid) in waybill("ps").stdout


def test_ps_says_where_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYBILL_URL", "http://127.0.0.1:9")
    result = waybill("ps")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing listens at http://127.0.0.1:9" in result.stderr


def test_ps_says_why_the_last_stack_ended_by_itself(running: StackState) -> None:
    save(replace(running, supervisor_began=1.0, failure="kafka ended\n  why: x\n  fix: y"))
    result = waybill("ps")
    assert result.exit_code == 1
    assert "the last one ended by itself: kafka ended\n  why: x\n  fix: y" in result.stderr


@pytest.mark.usefixtures("running")
def test_env_is_for_a_shell() -> None:
    assert waybill("env").stdout.splitlines() == [
        "export WAYBILL_URL=http://127.0.0.1:8080",
        "export WAYBILL_KAFKA=127.0.0.1:9092",
        "export WAYBILL_REDIS=redis://127.0.0.1:6379/0",
    ]
    assert json.loads(waybill("env", "-o", "json").stdout)["WAYBILL_KAFKA"] == "127.0.0.1:9092"


@pytest.mark.parametrize("name", ["ps", "env"])
def test_without_a_stack_the_way_to_one_is_told(name: str) -> None:
    result = waybill(name)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "start one with `waybill up`" in result.stderr


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize("arguments", [["up"], ["up", "--detach"]])
def test_a_second_up_shows_the_same_table(arguments: list[str]) -> None:
    result = waybill(*arguments)
    assert result.exit_code == 0
    assert result.stderr == "already running\n"
    assert result.stdout == waybill("ps").stdout


def test_an_up_that_comes_second_in_a_race_shows_the_first(
    running: StackState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(*_: object, **__: object) -> StackState:
        raise AlreadyRunning(running)

    monkeypatch.setattr("waybill_local.state.read_state", lambda _: None)
    monkeypatch.setattr("waybill_local.stack.up", taken)
    result = waybill("up", "--detach")
    assert result.exit_code == 0
    assert result.stderr.endswith("already running\n")
    assert "127.0.0.1:9092" in result.stdout


def test_up_detached_tells_each_step_and_then_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(folder: Path, report: Reporter, *, options: Options) -> StackState:
        for told in (JARS, JARS, KAFKA, READY):
            report(told)
        return write_state(folder, psutil.Process())

    monkeypatch.setattr("waybill_local.stack.up", start)
    result = waybill("up", "--detach")
    assert result.exit_code == 0
    words = [line.split() for line in result.stderr.splitlines()]
    assert words == [
        ["local", "stack", "in", str(tmp_path / ".waybill")],
        ["jars", "kafka-clients", "3", "of", "49"],
        ["kafka", "4.3.1", "ready", "2.4", "s"],
        ["stack", "http://127.0.0.1:8080", "ready", "8.2", "s"],
    ]
    assert "url      http://127.0.0.1:8080" in result.stdout


def test_up_shows_the_table_when_ready_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = Report(kind=ReportKind.STOPPED, name=STACK, seconds=1.0)

    def stay(folder: Path, _: object, report: Reporter) -> None:
        write_state(folder, psutil.Process())
        for told in (KAFKA, READY, stopped):
            report(told)

    monkeypatch.setattr("waybill_local.stack.run", stay)
    result = waybill("up")
    assert result.exit_code == 0
    assert "url      http://127.0.0.1:8080" in result.stdout
    assert result.output.index("redis://") < result.output.index("Ctrl-C stops it")
    assert result.stderr.splitlines()[-1].split()[:2] == ["stack", "stopped"]


def test_an_interrupted_start_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise Interrupted

    monkeypatch.setattr("waybill_local.stack.run", interrupt)
    result = waybill("up")
    assert result.exit_code == 130
    assert "nothing of it is left running" in result.stderr


def test_a_stack_that_cannot_start_says_what_why_and_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> StackState:
        raise StackError("kafka ended", why="the disk is full", fix="free some space")

    monkeypatch.setattr("waybill_local.stack.up", fail)
    result = waybill("up", "--detach")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[1:] == [
        "error: kafka ended",
        "  why: the disk is full",
        "  fix: free some space",
    ]


def test_down_ends_the_stack(running: StackState) -> None:
    result = waybill("down")
    assert result.exit_code == 0
    assert "stopped" in result.stderr or str(running.folder) in result.stderr
    assert waybill("ps").exit_code == 1


def test_down_without_a_stack_is_fine() -> None:
    result = waybill("down")
    assert result.exit_code == 0
    assert "no stack runs" in result.stderr


@pytest.mark.parametrize("name", ["up", "down", "ps", "env"])
def test_without_the_package_it_says_how_to_install_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "waybill_local", None)
    result = waybill(name)
    assert result.exit_code == 1
    assert result.stderr.strip().endswith("pip install 'waybill-client[local]'")
