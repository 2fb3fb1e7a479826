"""`waybill rename`, and `apply` of a manifest that says what its pipeline was."""

import json
from pathlib import Path

import pytest

from unit.waybill.conftest import Command
from unit.waybill.test_cli_diff import LOSES, find
from unit.waybill.test_cli_pipelines import PATH, PIPELINE, accept, make_operation
from waybill import Client, Conflict, Renamed
from waybill.manifests import earlier_name
from waybill.testing import Response, ScriptedServer, problem

RENAME = f"{PATH}/rename"
SALES = "/v1/pipelines/sales"
DONE = {"id": "op-1", "pipeline": "sales", "action": "rename", "state": "done"}


def moved(server: ScriptedServer, path: str = PATH) -> None:
    hint = "use 'sales'; to call it 'orders' again: `waybill rename sales orders`"
    detail = "pipeline 'orders' is called 'sales' now"
    answer = problem(410, detail, hint=hint, type="urn:waybill:problem:renamed", renamed_to="sales")
    server.answer("GET", path, answer)


def test_name_is_sent_and_what_was_done_is_said(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", RENAME, Response(json=DONE))
    result = command("rename", "orders", "sales")
    assert result.exit_code == 0, result.stderr
    assert "sales" in result.stdout
    (asked,) = server.asked("POST", RENAME)
    assert json.loads(asked.body) == {"to": "sales"}


def test_name_of_another_pipeline_is_a_conflict(server: ScriptedServer, client: Client) -> None:
    server.answer("POST", RENAME, problem(409, "there is a pipeline 'sales'"))
    with pytest.raises(Conflict, match="there is a pipeline 'sales'"):
        client.rename("orders", "sales")


def test_former_name_names_the_present_one(server: ScriptedServer, client: Client) -> None:
    moved(server)
    with pytest.raises(Renamed, match="waybill rename sales orders") as raised:
        client.pipeline("orders")
    assert raised.value.renamed_to == "sales"


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    (tmp_path / "sales.yaml").write_text("version: 1\nname: sales\nwas: orders\n")
    return "sales.yaml"


def test_changes_of_a_pipeline_that_is_to_be_called_otherwise_are_asked_for(
    server: ScriptedServer, command: Command, manifest: str
) -> None:
    server.answer("GET", SALES, problem(404, "there is no pipeline 'sales'"))
    server.answer("GET", PATH, Response(json=PIPELINE))
    find(server, [LOSES])
    result = command("apply", "-f", manifest)
    assert result.exit_code == 2
    assert LOSES["message"] in result.stderr
    assert server.asked("PUT", SALES) == []


def test_file_from_before_is_refused_without_a_question(
    server: ScriptedServer, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "orders.yaml").write_text("version: 1\nname: orders\n")
    moved(server)
    accept(server, "PUT", PATH, "apply", make_operation("done"))
    result = command("apply", "-f", "orders.yaml")
    assert result.exit_code == 1
    assert "'orders' is called 'sales' now" in result.stderr
    assert "--yes" not in result.stderr
    assert server.asked("PUT", PATH) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("name: sales\nwas: orders  # until today\n", "orders"),
        ('{"name": "sales", "was": "orders"}', "orders"),
        ("name: sales\nstages:\n  - name: load\n    was: store\n", None),
    ],
)
def test_earlier_name_is_that_of_the_pipeline(text: str, name: str | None) -> None:
    assert earlier_name(text) == name
