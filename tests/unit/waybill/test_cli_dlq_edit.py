"""`waybill dlq edit`: the record of a dead letter opens in an editor, and is replayed as saved."""

import json
from pathlib import Path

import pytest

from unit.waybill.conftest import Command
from unit.waybill.test_cli_dlq import AGES, LETTER, PATH, SENT
from waybill.testing import Response, ScriptedServer, problem

GOOD = '{"amount": 1}'
REJECTED = problem(
    422,
    "the edited record does not fit input 'orders': amount: INT takes a number",
    rejected=[{"index": 0, "reason": "amount: INT takes a number"}],
)
WHOLE = {**LETTER, "value_base64": None, "not_replayable": None}


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that saves what the next of these files has, and notes what it was given."""
    folder = tmp_path / "saves"
    folder.mkdir()
    script = tmp_path / "editor"
    script.write_text(
        f'#!/bin/sh\ncat "$1" >> {tmp_path}/given\nnext=$(ls {folder} | head -n 1)\n'
        f'[ -z "$next" ] || mv "{folder}/$next" "$1"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(script))
    monkeypatch.delenv("VISUAL", raising=False)
    return folder


def bodies(server: ScriptedServer) -> list[dict[str, object]]:
    return [json.loads(each.body) for each in server.requests if each.body]


@pytest.mark.usefixtures("on_terminal")
def test_what_is_saved_is_replayed(server: ScriptedServer, command: Command, editor: Path) -> None:
    (editor / "1").write_text(f"{GOOD}\n")
    server.answer("GET", f"{PATH}/L1", Response(json=WHOLE))
    server.answer("POST", f"{PATH}/replay", SENT)
    told = command("dlq", "edit", "orders", "L1")
    assert (told.exit_code, told.stdout.strip()) == (0, "wb1.x")
    assert bodies(server) == [{"ids": ["L1"], "again": False, "edited": {"value": GOOD}}]
    assert (editor.parent / "given").read_text().strip() == WHOLE["value"]


@pytest.mark.usefixtures("on_terminal")
def test_what_does_not_fit_opens_again_as_it_was_saved(
    server: ScriptedServer, command: Command, editor: Path
) -> None:
    (editor / "1").write_text('{"amount": "x"}')
    (editor / "2").write_text(GOOD)
    server.answer("GET", f"{PATH}/L1", Response(json=WHOLE))
    server.answer("POST", f"{PATH}/replay", REJECTED, SENT)
    told = command("dlq", "edit", "orders", "L1", stdin="y\n")
    assert told.exit_code == 0
    assert "amount: INT takes a number" in told.stderr
    assert [each["edited"] for each in bodies(server)] == [
        {"value": '{"amount": "x"}'},
        {"value": GOOD},
    ]
    assert '{"amount": "x"}' in (editor.parent / "given").read_text()


@pytest.mark.usefixtures("on_terminal", "editor")
def test_nothing_changed_is_nothing_sent(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", f"{PATH}/L1", Response(json=WHOLE))
    told = command("dlq", "edit", "orders", "L1")
    assert (told.exit_code, bodies(server)) == (1, [])
    assert "nothing was changed" in told.stderr


@pytest.mark.usefixtures("on_terminal")
def test_an_editor_that_does_not_run_says_what_would_do(
    server: ScriptedServer, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "no-such-editor --wait")
    monkeypatch.delenv("VISUAL", raising=False)
    server.answer("GET", f"{PATH}/L1", Response(json=WHOLE))
    told = command("dlq", "edit", "orders", "L1")
    assert (told.exit_code, bodies(server)) == (1, [])
    assert "EDITOR names another one" in told.stderr


def test_a_file_needs_no_terminal(server: ScriptedServer, command: Command, tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"\xff\x00")
    server.answer("GET", f"{PATH}/L1", Response(json=WHOLE))
    server.answer("POST", f"{PATH}/replay", SENT)
    told = command("dlq", "edit", "orders", "L1", "--value", str(tmp_path / "new"), "--key", "k")
    assert told.stdout.strip() == "wb1.x"
    assert bodies(server)[0]["edited"] == {"value_base64": "/wA=", "key": "k"}
    refused = command("dlq", "edit", "orders", "L1")
    assert refused.exit_code == 1
    assert "--value FILE" in refused.stderr


def test_where_an_old_row_may_replace_a_newer_one_it_asks_first(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("GET", f"{PATH}/L1", Response(json=WHOLE))
    server.answer("POST", f"{PATH}/replay", AGES, SENT)
    assert command("dlq", "edit", "orders", "L1", "--key", "k").exit_code == 2
    assert command("dlq", "edit", "orders", "L1", "--key", "k", "--yes").exit_code == 0
    assert [each.get("yes") for each in bodies(server)] == [None, True]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"not_replayable": "its stage is gone"}, "cannot be replayed: its stage is gone"),
        ({"value": None, "value_base64": "/w=="}, "its value is no text"),
        ({"value": None}, "its value is null"),
    ],
)
def test_what_cannot_be_edited_says_why(
    server: ScriptedServer, command: Command, changes: dict[str, object], said: str
) -> None:
    server.answer("GET", f"{PATH}/L1", Response(json={**WHOLE, **changes}))
    told = command("dlq", "edit", "orders", "L1")
    assert (told.exit_code, bodies(server)) == (1, [])
    assert said in told.stderr
