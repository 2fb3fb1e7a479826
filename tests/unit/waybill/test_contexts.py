"""Several Waybills by name: which one a command talks to, and what wins over what."""

import json
from pathlib import Path

import pytest

from unit.waybill.conftest import Command, waybill
from waybill.errors import WaybillError
from waybill.target import find_target
from waybill.testing import Response, ScriptedServer

STAGING = "http://staging.example"


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("WAYBILL_CONTEXT", raising=False)
    return tmp_path / "config" / "waybill" / "contexts.json"


def target(tmp_path: Path, **environment: str) -> tuple[str, str]:
    found = find_target(
        None, {"XDG_CONFIG_HOME": str(tmp_path / "config"), **environment}, tmp_path
    )
    return found.url, found.source


def test_a_context_is_added_used_listed_and_removed(tmp_path: Path, config: Path) -> None:
    assert waybill("context", "add", "staging", f"{STAGING}/").exit_code == 0
    assert target(tmp_path)[0] == "http://127.0.0.1:8080"
    assert waybill("context", "use", "staging").stderr == (
        f"talking to {STAGING} (context staging, in use)\n"
    )
    listed = waybill("context", "list").stdout.splitlines()
    assert [line.split()[:3] for line in listed[1:]] == [
        ["local", "the", "stack"],
        ["*", "staging", STAGING],
    ]
    assert json.loads(config.read_text()) == {"used": "staging", "contexts": {"staging": STAGING}}
    assert waybill("context", "remove", "staging").exit_code == 0
    assert json.loads(waybill("context", "list", "-o", "json").stdout) == {
        "used": "local",
        "contexts": {},
    }


def test_what_wins_over_what(tmp_path: Path) -> None:
    waybill("context", "add", "staging", STAGING)
    waybill("context", "add", "other", "http://other.example")
    waybill("context", "use", "staging")
    (tmp_path / ".waybill").mkdir()
    (tmp_path / ".waybill" / "state.json").write_text('{"ports": {"gateway": 8123}}')
    assert target(tmp_path) == (STAGING, "context staging, in use")
    assert target(tmp_path, WAYBILL_CONTEXT="other")[0] == "http://other.example"
    assert target(tmp_path, WAYBILL_CONTEXT="local")[0] == "http://127.0.0.1:8123"
    assert target(tmp_path, WAYBILL_CONTEXT="other", WAYBILL_URL="http://u")[0] == "http://u"


def test_the_option_wins_over_the_variable(
    command: Command, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_URL", "http://127.0.0.1:9")
    waybill("context", "add", "here", server.url)
    server.answer("GET", "/v1/pipelines", Response(json={"items": []}))
    assert waybill("get").exit_code == 1
    assert waybill("--context", "here", "get").exit_code == 0


@pytest.mark.parametrize("arguments", [["context", "use", "stagin"], ["--context", "x", "get"]])
def test_an_unknown_context_is_told_with_the_known_ones(arguments: list[str]) -> None:
    waybill("context", "add", "staging", STAGING)
    result = waybill(*arguments)
    assert result.exit_code == 1
    assert "known contexts: local, staging" in result.stderr


@pytest.mark.parametrize(
    "arguments", [["add", "local", STAGING], ["add", "x", "staging.example"], ["remove", "local"]]
)
def test_what_makes_no_sense_is_refused_as_usage(arguments: list[str]) -> None:
    assert waybill("context", *arguments).exit_code == 2


def test_a_damaged_file_is_named(tmp_path: Path, config: Path) -> None:
    config.parent.mkdir(parents=True)
    config.write_text("{")
    with pytest.raises(WaybillError, match=r"contexts\.json cannot be read"):
        target(tmp_path)
    assert target(tmp_path, WAYBILL_CONTEXT="local")[0] == "http://127.0.0.1:8080"
