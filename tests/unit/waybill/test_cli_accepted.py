"""`waybill apply && waybill wait`: what was only accepted is followed before a phase counts."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from unit.waybill.conftest import MANIFEST, Command, Terminal
from unit.waybill.test_accepted import ID, make_change
from unit.waybill.test_cli_pipelines import PATH, PIPELINE
from waybill.cli import accepted
from waybill.cli.operations import ANSWERS_KEPT_S
from waybill.testing import Response, ScriptedServer, problem

AT_ONCE = ("--timeout", "0")
WAIT = ("wait", "orders", *AT_ONCE)
ROUTES = {
    "apply": ("PUT", PATH),
    "start": ("POST", f"{PATH}/start"),
    "restart": ("POST", f"{PATH}/restart"),
    "stop": ("POST", f"{PATH}/stop"),
    "delete": ("DELETE", PATH),
}
NAMED = {"apply": ("-f", "-"), "delete": ("orders", "--yes")}
Ask = Callable[[str, str], int]


class Waybill(ScriptedServer):
    """One in which the pipeline runs as it did before, whatever becomes of its changes."""

    def __init__(self) -> None:
        super().__init__()
        self.answer("GET", PATH, Response(json=PIPELINE))

    def take(self, action: str, id: str = ID) -> None:
        body = {"operation": id, "pipeline": "orders", "action": action}
        self._replies[ROUTES[action]] = [Response(status=202, json=body)]

    def becomes(self, state: str, action: str = "apply", id: str = ID, **more: object) -> None:
        """From now on the operation is told so."""
        body = {"id": id, "pipeline": "orders", "action": action, "state": state, **more}
        if state == "failed":
            body["errors"] = [{"message": "no column amout"}]
        self._replies["GET", f"/v1/operations/{id}"] = [Response(json=body)]


@pytest.fixture
def server() -> Iterator[Waybill]:
    with Waybill() as scripted:
        yield scripted


@pytest.fixture
def ask(server: Waybill, command: Command) -> Ask:
    """Has this change made, which is in this state when the time is over; its exit code."""

    def run(action: str, state: str) -> int:
        asked = f"{action}.orders.1a"
        server.take(action, asked)
        server.becomes(state, action, asked)
        name = NAMED.get(action, ("orders",))
        return command(action, *name, *AT_ONCE, stdin=MANIFEST).exit_code

    return run


def kept(server: ScriptedServer) -> list[str]:
    return [c.operation for c in accepted.stored_changes(server.url, "orders", os.environ)]


@pytest.mark.parametrize("action", ["apply", "start", "restart"])
def test_a_change_that_is_refused_later_is_no_success(
    server: Waybill, command: Command, ask: Ask, action: str
) -> None:
    """Though the pipeline runs all the time. It is told as when the operation is asked for."""
    assert ask(action, "pending") == 0
    asked = f"{action}.orders.1a"
    server.becomes("failed", action, asked)
    by_operation = command("wait", asked, *AT_ONCE)
    assert ask(action, "pending") == 0
    server.becomes("failed", action, asked)
    result = command(*WAIT)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"orders: no column amout\nerror: {action} orders failed\n"
    assert (result.exit_code, result.stderr) == (by_operation.exit_code, by_operation.stderr)
    assert kept(server) == []


def test_a_change_that_is_done_lets_the_phase_count(
    server: Waybill, command: Command, ask: Ask
) -> None:
    ask("apply", "pending")
    server.becomes("done", warnings=["short trigger"])
    result = command(*WAIT)
    assert (result.exit_code, result.stdout) == (0, "orders Running\n")
    assert result.stderr == "warning: short trigger\n"
    assert [r.path for r in server.requests[-2:]] == [f"/v1/operations/{ID}", PATH]
    assert kept(server) == []
    ask("apply", "pending")
    server.becomes("done")
    assert command("wait", "orders", "--for", "stopped", *AT_ONCE).exit_code == 4


def test_a_change_that_goes_on_is_not_done_in_time(
    server: Waybill, command: Command, ask: Ask
) -> None:
    ask("apply", "pending")
    for _ in range(2):
        result = command(*WAIT)
        assert (result.exit_code, result.stdout) == (4, "")
        assert "apply orders is not done after 0 s" in result.stderr
        assert f"`waybill wait {ID}`" in result.stderr
    assert json.loads(command(*WAIT, "-o", "json").stdout)["state"] == "pending"
    assert kept(server) == [ID]


@pytest.mark.parametrize("change", [("apply", "--wait", "-f", "-"), ("stop", "orders")])
def test_what_ended_with_4_is_remembered_too(
    server: Waybill, command: Command, change: tuple[str, ...]
) -> None:
    server.take(change[0])
    server.becomes("pending", change[0])
    assert command(*change, *AT_ONCE, stdin=MANIFEST).exit_code == 4
    assert command(*WAIT).exit_code == 4


def test_a_command_that_was_stopped_while_it_waited_is_remembered(
    server: Waybill, command: Command
) -> None:
    server.take("apply")
    server._replies["GET", f"/v1/operations/{ID}"] = [problem(500, "the connection is gone")]
    assert command("apply", "-f", "-", *AT_ONCE, stdin=MANIFEST).exit_code == 1
    assert kept(server) == [ID]


@pytest.mark.parametrize("answer", [None, problem(404, "the id of no operation")])
def test_a_change_that_waybill_has_forgotten_is_neither_done_nor_refused(
    server: Waybill, command: Command, answer: Response | None
) -> None:
    """It tells one as pending whose answer is not kept any more."""
    if answer is None:
        server.becomes("pending")
    else:
        server.answer("GET", f"/v1/operations/{ID}", answer)
    accepted.remember(make_change(server.url, at=1.0), os.environ)
    result = command("wait", "orders")
    assert (result.exit_code, result.stdout) == (5, "")
    assert result.stderr.splitlines() == [
        "error: what became of apply orders is not known any more",
        f"Waybill keeps the answer to a change for an hour; this was {ID}",
        "hint: `waybill describe orders` says what is there now",
    ]
    assert command(*WAIT).exit_code == 0  # told once; now the phase is asked for


def test_an_old_change_that_waybill_still_knows_is_told(server: Waybill, command: Command) -> None:
    server.becomes("failed")
    accepted.remember(make_change(server.url, at=1.0), os.environ)
    assert command(*WAIT).exit_code == 1


def test_a_change_that_goes_on_for_an_hour_is_forgotten_only_then(
    server: Waybill, command: Command, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("apply", "pending")
    (change,) = accepted.stored_changes(server.url, "orders", os.environ)
    for later_s, code in ((-5, 4), (+5, 5)):
        now = change.at + ANSWERS_KEPT_S + later_s
        monkeypatch.setattr("waybill.cli.operations._now", lambda now=now: now)
        assert command(*WAIT).exit_code == code


@pytest.mark.parametrize("state", ["done", "failed"])
def test_what_was_told_of_an_operation_is_not_told_again(
    server: Waybill, command: Command, ask: Ask, state: str
) -> None:
    ask("apply", "pending")
    server.becomes(state)
    command("wait", ID)
    assert kept(server) == []
    assert command(*WAIT).exit_code == 0


@pytest.mark.parametrize(
    ("first", "then", "left"),
    [
        ("apply", "apply", []),
        ("restart", "apply", []),
        ("apply", "delete", []),
        ("start", "stop", []),
        ("apply", "restart", [ID]),
        ("apply", "stop", [ID]),
    ],
)
def test_a_later_change_that_is_done_replaces_what_it_says_anew(
    server: Waybill, command: Command, first: str, then: str, left: list[str]
) -> None:
    """A restart says nothing of the manifest: with the old one it is done, too."""
    accepted.remember(
        make_change(server.url, f"{first}.orders.1a", action=first, at=1.0), os.environ
    )
    server.take(then, "later")
    server.becomes("done", then, "later")
    name = NAMED.get(then, ("orders",))
    assert command(then, *name, stdin=MANIFEST).exit_code == 0
    assert kept(server) == left


def test_a_later_change_that_is_refused_replaces_nothing(
    server: Waybill, command: Command, ask: Ask
) -> None:
    ask("apply", "pending")
    server.take("apply", "later")
    server.becomes("failed", id="later")
    assert command("apply", "-f", "-", stdin=MANIFEST).exit_code == 1
    assert kept(server) == [ID]


@pytest.mark.parametrize(
    ("earlier", "later", "code"),
    [
        ("failed", "done", 0),  # the pipeline is as the later one says
        ("done", "failed", 1),
        ("pending", "pending", 4),
    ],
)
def test_of_two_changes_the_later_one_counts(
    server: Waybill, command: Command, earlier: str, later: str, code: int
) -> None:
    accepted.remember(make_change(server.url, at=1.0), os.environ)
    accepted.remember(make_change(server.url, "later", at=9e9), os.environ)
    server.becomes(earlier)
    server.becomes(later, id="later")
    assert command(*WAIT).exit_code == code


def test_a_restart_that_is_done_hides_no_manifest_that_was_refused(
    server: Waybill, command: Command, ask: Ask
) -> None:
    ask("apply", "pending")
    ask("restart", "pending")
    server.becomes("failed")
    server.becomes("done", "restart", "restart.orders.1a")
    result = command(*WAIT)
    assert result.exit_code == 1
    assert "apply orders failed" in result.stderr


def test_only_this_waybill_and_this_pipeline_are_meant(
    server: Waybill, command: Command, ask: Ask
) -> None:
    ask("apply", "pending")
    server.answer("GET", "/v1/pipelines/clicks", Response(json={**PIPELINE, "name": "clicks"}))
    assert command("wait", "clicks", *AT_ONCE).exit_code == 0
    with Waybill() as other:
        assert command(*WAIT, "--url", other.url).exit_code == 0
    assert command(*WAIT, "--url", f"{server.url}/").exit_code == 4


@pytest.mark.parametrize("action", ["apply", "start", "restart"])
def test_what_cannot_be_remembered_must_be_done_in_time(
    server: Waybill, command: Command, ask: Ask, tmp_path: Path, action: str
) -> None:
    (tmp_path / "state").write_text("a file")
    assert ask(action, "done") == 0
    server.becomes("pending", action, f"{action}.orders.1a")
    name = ("-f", "-") if action == "apply" else ("orders",)
    result = command(action, *name, *AT_ONCE, stdin=MANIFEST)
    assert (result.exit_code, result.stdout) == (4, "")
    assert f"warning: {tmp_path}/state/waybill/accepted/" in result.stderr
    assert "cannot be written: Not a directory" in result.stderr


def test_without_a_home_nothing_is_remembered(
    server: Waybill, command: Command, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", nobody)
    assert ask("apply", "pending") == 4
    assert ask("apply", "done") == 0
    assert command(*WAIT).exit_code == 0


def test_a_note_that_cannot_be_read_is_no_success(
    server: Waybill, command: Command, ask: Ask, tmp_path: Path
) -> None:
    ask("apply", "pending")
    (note,) = (tmp_path / "state" / "waybill" / "accepted").iterdir()
    note.write_text("{")
    result = command(*WAIT)
    assert result.exit_code == 1
    assert str(note) in result.stderr
    assert ask("stop", "done") == 0  # what is done is done


def test_on_a_terminal_it_is_shown_what_is_waited_for_first(
    server: Waybill, terminal: Terminal, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("apply", "pending")
    monkeypatch.setenv("NO_COLOR", "1")
    assert f"waiting for {ID}" in terminal("wait", "orders", "--timeout", "0.3")
