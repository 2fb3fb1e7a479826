"""`waybill diff`, and what `waybill apply` tells and asks before it does the same."""

import json
from pathlib import Path

import pytest

from unit.waybill.conftest import Command
from unit.waybill.test_check import FAULT, GRAPH, later
from unit.waybill.test_cli_pipelines import PATH, PIPELINE, accept, make_operation
from waybill import Change, Client
from waybill.testing import Response, ScriptedServer, problem

CHECK = "/v1/validate"
NOW = "version: 1\nname: orders\n# changed\n"
HARMLESS = {
    "kind": "change_stage",
    "path": "stages.enrich",
    "message": "~ stage enrich: step taxed changed; continues where it is",
    "effect": "",
}
AGAIN = {**HARMLESS, "kind": "add_stage", "message": "+ stage load2", "effect": "writes_again"}
LOSES = {**HARMLESS, "kind": "remove_stage", "message": "- stage load", "effect": "loses"}
Found = list[dict[str, str]] | None


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    (tmp_path / "orders.yaml").write_text(NOW)
    return "orders.yaml"


def find(
    server: ScriptedServer, changes: Found, *errors: object, graph: object = None
) -> dict[str, object]:
    told: dict[str, object] = {"errors": list(errors), "warnings": []}
    told |= {"graph": graph, "changes": changes}
    server.answer("POST", CHECK, Response(json=told))
    return told


def known(server: ScriptedServer) -> None:
    """The pipeline exists, and would take the change."""
    server.answer("GET", PATH, Response(json=PIPELINE))
    accept(server, "PUT", PATH, "apply", make_operation("done"))


def applied(server: ScriptedServer) -> bool:
    return bool(server.asked("PUT", PATH))


def test_the_sdk_tells_changes(server: ScriptedServer, client: Client) -> None:
    find(server, [HARMLESS, LOSES])
    changes = client.check(NOW).changes
    assert changes == (Change(**HARMLESS), Change(**LOSES))
    assert str(changes[1]) == "- stage load"


@pytest.mark.parametrize("told", [{}, {"changes": None}])
def test_what_is_compared_with_nothing_has_no_changes(
    server: ScriptedServer, client: Client, told: dict[str, None]
) -> None:
    server.answer("POST", CHECK, Response(json={"errors": [], "warnings": [], **told}))
    assert client.check(NOW).changes is None


def test_diff_tells_what_would_change(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    told = find(server, [HARMLESS, LOSES])
    result = command("diff", "-f", manifest)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{HARMLESS['message']}\n- stage load\n"
    assert json.loads(command("diff", "-f", manifest, "-o", "json").stdout) == told
    assert not applied(server)


def test_diff_tells_that_nothing_would_change(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    find(server, [])
    result = command("diff", "-f", manifest)
    assert (result.exit_code, result.stdout) == (0, "nothing would change\n")


def test_diff_of_a_new_pipeline_tells_what_it_would_be(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    find(server, None, graph=GRAPH)
    result = command("diff", "-f", manifest)
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        ["+ pipeline orders: new", "+ stage enrich: reads orders; writes lake, other"],
    )


def test_diff_never_calls_new_what_it_does_not_know(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    find(server, None, graph=GRAPH)
    known(server)
    result = command("diff", "-f", manifest)
    assert (result.exit_code, result.stdout) == (5, "")
    assert "not known now" in result.stderr


def test_diff_tells_errors_as_check_does(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    find(server, None, FAULT)
    result = command("diff", "-f", manifest)
    assert (result.exit_code, result.stdout[:18]) == (1, "orders.yaml:12:5: ")


def test_apply_tells_a_harmless_change_and_does_it(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    known(server)
    find(server, [HARMLESS])
    result = command("apply", "-f", manifest)
    assert (result.exit_code, result.stdout) == (0, "orders apply done\n")
    assert result.stderr == f"{HARMLESS['message']}\n"
    assert command("apply", "-q", "-f", manifest).stderr == ""


@pytest.mark.parametrize("exists", [True, False])
def test_what_is_new_or_unchanged_is_not_checked_first(
    server: ScriptedServer, command: Command, manifest: str, *, exists: bool
) -> None:
    if exists:
        server.answer("GET", PATH, Response(json={**PIPELINE, "manifest": NOW}))
    accept(server, "PUT", PATH, "apply", make_operation("done"))
    result = command("apply", "-f", manifest)
    assert (result.exit_code, result.stderr) == (0, "")
    assert server.asked("POST", CHECK) == []


@pytest.mark.parametrize(
    ("change", "said"), [(AGAIN, "writes rows again"), (LOSES, "lets tokens end lost")]
)
def test_without_a_terminal_what_needs_a_word_is_refused(
    server: ScriptedServer, command: Command, manifest: str, change: dict[str, str], said: str
) -> None:
    known(server)
    find(server, [HARMLESS, change])
    for form in ("table", "json"):
        result = command("apply", "-f", manifest, "-o", form)
        assert (result.exit_code, result.stdout) == (2, "")
        assert said in result.stderr
        assert result.stderr.count(change["message"]) == 1
        assert "--yes applies it" in result.stderr
    assert not applied(server)


@pytest.mark.parametrize("yes", ["--yes", "-y"])
def test_yes_is_the_word(server: ScriptedServer, command: Command, manifest: str, yes: str) -> None:
    known(server)
    find(server, [LOSES])
    result = command("apply", "-f", manifest, yes)
    assert (result.exit_code, result.stderr) == (0, "- stage load\n")
    assert applied(server)


@pytest.mark.usefixtures("on_terminal")
@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_on_a_terminal_it_asks(
    server: ScriptedServer, command: Command, manifest: str, answer: str, code: int
) -> None:
    known(server)
    find(server, [AGAIN, LOSES])
    result = command("apply", "-f", manifest, stdin=answer)
    assert "This writes rows again and lets tokens end lost. Apply it?" in result.stderr
    assert (result.exit_code, applied(server)) == (code, code == 0)


def test_a_dry_run_does_nothing(server: ScriptedServer, command: Command, manifest: str) -> None:
    known(server)
    find(server, [LOSES])
    result = command("apply", "-f", manifest, "--dry-run", "--yes")
    assert (result.exit_code, result.stdout) == (0, "- stage load\n")
    assert not applied(server)


def test_apply_stops_at_what_the_check_refuses(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    known(server)
    find(server, None, FAULT)
    result = command("apply", "-f", manifest)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("orders.yaml:12:5: ")
    assert result.stderr.endswith("error: apply orders failed\n")
    assert not applied(server)


@pytest.mark.parametrize("yes", [True, False])
def test_a_check_that_cannot_be_made_needs_a_word(
    server: ScriptedServer, command: Command, manifest: str, *, yes: bool
) -> None:
    known(server)
    later(server, "failed", problem="internal", errors=[{"message": "the driver ended"}])
    result = command("apply", "-f", manifest, *(["--yes"] if yes else []))
    assert (result.exit_code, applied(server)) == (0 if yes else 1, yes)
    assert "what would change is not known now: " in result.stderr


def test_a_pipeline_that_cannot_be_asked_for_needs_a_word(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    server.answer("GET", PATH, problem(503, "away"))
    accept(server, "PUT", PATH, "apply", make_operation("done"))
    assert command("apply", "-f", manifest).exit_code == 1
    assert not applied(server)


def test_the_help_says_what_apply_cannot_know(command: Command) -> None:
    told = " ".join(command("apply", "--help").stdout.split())
    assert "what was removed earlier is not known" in told


def test_diff_tells_warnings(server: ScriptedServer, command: Command, manifest: str) -> None:
    found: dict[str, object] = {"errors": [], "graph": None, "changes": []}
    server.answer("POST", CHECK, Response(json={**found, "warnings": ["sink lake: shared"]}))
    result = command("diff", "-f", manifest)
    assert result.stdout == "orders.yaml: warning: sink lake: shared\nnothing would change\n"


@pytest.mark.parametrize("arguments", [("apply",), ("apply", "--yes"), ("diff",)])
def test_a_text_that_is_no_manifest_is_refused_with_its_place(
    server: ScriptedServer, command: Command, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """Not with the name that was not found in it, nor with a hint to apply it all the same."""
    (tmp_path / "orders.yaml").write_text("a: [\n")
    find(server, None, {**FAULT, "message": "not YAML", "line": 2, "column": 1, "path": ""})
    result = command(*arguments, "-f", "orders.yaml")
    assert result.exit_code == 1
    assert "orders.yaml:2:1: not YAML" in result.output
    assert "top-level name" not in result.output
    assert "--yes applies" not in result.output
    assert not applied(server)
