"""`waybill rollback`: an earlier manifest is applied as any other, after its changes are shown."""

from collections.abc import Sequence

import pytest

from unit.waybill.conftest import Command
from unit.waybill.test_cli_diff import HARMLESS, LOSES, applied, find, known
from unit.waybill.test_manifest_versions import ITEMS, PATH
from waybill.testing import Response, ScriptedServer


def keep(server: ScriptedServer, items: Sequence[object] = ITEMS) -> None:
    """The pipeline has had these manifests, and accepts each."""
    server.answer("GET", PATH, Response(json={"items": [*items]}))
    known(server)


@pytest.mark.parametrize(
    ("options", "generation"), [((), 4), (("--generation", "2"), 2), (("--generation", "3"), 4)]
)
def test_the_manifest_before_or_of_a_generation_is_applied_after_its_changes_are_shown(
    server: ScriptedServer, command: Command, options: Sequence[str], generation: int
) -> None:
    keep(server)
    find(server, [HARMLESS])
    result = command("rollback", "orders", *options)
    assert result.exit_code == 0, result.stderr
    assert HARMLESS["message"] in result.stderr
    (put,) = server.asked("PUT", "/v1/pipelines/orders")
    assert put.body == f"name: orders # {generation}\n".encode()


def test_what_cannot_be_undone_needs_a_yes(server: ScriptedServer, command: Command) -> None:
    keep(server)
    find(server, [LOSES])
    assert command("rollback", "orders").exit_code == 2
    assert not applied(server)
    assert command("rollback", "orders", "--yes").exit_code == 0
    assert applied(server)


def test_a_dry_run_only_says_what_would_change(server: ScriptedServer, command: Command) -> None:
    keep(server)
    find(server, [HARMLESS])
    result = command("rollback", "orders", "--dry-run")
    assert (result.exit_code, result.stdout) == (0, f"{HARMLESS['message']}\n")
    assert not applied(server)


@pytest.mark.parametrize(
    ("kept", "options", "message"),
    [
        (ITEMS[:1], (), "orders had no other manifest yet: there is nothing to go back to"),
        (ITEMS, ("--generation", "5"), "orders has the manifest of generation 5 already"),
        (ITEMS, ("--generation", "1"), "no manifest of generation 1 is kept"),
    ],
)
def test_where_there_is_nothing_to_go_back_to_nothing_is_changed(
    server: ScriptedServer,
    command: Command,
    kept: Sequence[object],
    options: Sequence[str],
    message: str,
) -> None:
    keep(server, kept)
    result = command("rollback", "orders", *options)
    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split())
    assert not applied(server)
