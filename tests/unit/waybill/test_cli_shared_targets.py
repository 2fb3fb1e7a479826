"""`waybill apply` where another pipeline writes: it asks, and says which."""

import json
from pathlib import Path

import pytest

from unit.waybill.conftest import Command
from unit.waybill.test_cli_diff import CHECK, HARMLESS, find, known
from unit.waybill.test_cli_pipelines import PATH, make_operation
from waybill.testing import ScriptedServer, problem

NOW = "version: 1\nname: orders\n# changed\n"


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    (tmp_path / "orders.yaml").write_text(NOW)
    return "orders.yaml"


SHARED = {
    "message": "iceberg lakehouse.raw.orders is written by sink 'lake' of pipeline 'orders', too",
    "line": 9,
    "column": 3,
    "path": "stages.0.sinks.0.iceberg.table",
    "hint": "say `shared: true` here",
}


def shared(server: ScriptedServer, slug: str = "target_shared") -> None:
    """The sink of a pipeline that is new would write where another one writes."""
    server.answer("GET", PATH, problem(404, "there is no pipeline 'orders'"))
    urn = f"urn:waybill:problem:{slug}"
    refused = problem(409, str(SHARED["message"]), type=urn, errors=[SHARED])
    server.answer("PUT", PATH, refused, make_operation("done"))


def permitted(server: ScriptedServer) -> list[str | None]:
    return [asked.params.get("allow_shared") for asked in server.asked("PUT", PATH)]


def test_without_a_terminal_a_shared_target_needs_yes(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    shared(server)
    result = command("apply", "-f", manifest)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "orders.yaml:9:3: " in result.stderr
    assert "sink 'lake' of pipeline 'orders'" in result.stderr
    assert "no terminal to ask on" in result.stderr
    assert "--yes" in result.stderr
    assert permitted(server) == [None]


def test_yes_permits_a_shared_target_at_once(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    known(server)
    find(server, [HARMLESS])
    assert command("apply", "-f", manifest, "--yes").exit_code == 0
    assert permitted(server) == ["true"]


@pytest.mark.usefixtures("on_terminal")
@pytest.mark.parametrize(
    ("typed", "code", "sent"), [("y\n", 0, [None, "true"]), ("n\n", 1, [None])]
)
def test_on_a_terminal_a_shared_target_is_asked_about(
    server: ScriptedServer,
    command: Command,
    manifest: str,
    typed: str,
    code: int,
    sent: list[str | None],
) -> None:
    shared(server)
    result = command("apply", "-f", manifest, stdin=typed)
    assert result.exit_code == code
    assert "This writes where another pipeline writes. Apply it?" in result.stderr
    assert permitted(server) == sent


@pytest.mark.parametrize("more", [(), ("--yes",)])
def test_nothing_permits_upserts_by_other_keys(
    server: ScriptedServer, command: Command, manifest: str, more: tuple[str, ...]
) -> None:
    shared(server, "keys_differ")
    result = command("apply", "-f", manifest, *more)
    assert result.exit_code == 1
    assert "orders.yaml:9:3: " in result.stderr
    assert len(permitted(server)) == 1


def test_a_change_is_compared_as_if_shared_targets_were_permitted(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    """Else the comparison would refuse what is only to be asked about."""
    known(server)
    find(server, [HARMLESS])
    assert command("apply", "-f", manifest).exit_code == 0
    (asked,) = server.asked("POST", CHECK)
    assert json.loads(asked.body)["allow_shared"] is True
    command("diff", "-f", manifest)
    assert "allow_shared" not in json.loads(server.asked("POST", CHECK)[1].body)


@pytest.mark.parametrize(("options", "permits"), [([], False), (["--yes"], True)])
def test_a_dry_run_permits_what_the_command_would(
    server: ScriptedServer, command: Command, manifest: str, options: list[str], permits: bool
) -> None:
    find(server, [HARMLESS])
    command("apply", "--dry-run", "-f", manifest, *options)
    (asked,) = server.asked("POST", CHECK)
    assert json.loads(asked.body).get("allow_shared", False) is permits
