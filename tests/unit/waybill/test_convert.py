"""`waybill convert`: prints the manifest, or says where what cannot be kept stands."""

import json
from pathlib import Path

import pytest

from unit.waybill.conftest import Command
from waybill.testing import Response, ScriptedServer, problem

PATH = "/v1/convert"
SQL = "CREATE TABLE price (part BIGINT);\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "Supply chain.sql"
    written.write_text(SQL)
    return written


def test_the_manifest_is_printed_as_it_came(
    server: ScriptedServer, command: Command, file: Path
) -> None:
    server.answer("POST", PATH, Response(json={"manifest": "version: 1\nname: supply-chain\n"}))
    result = command("convert", str(file))
    assert (result.exit_code, result.stdout) == (0, "version: 1\nname: supply-chain\n")
    assert json.loads(server.requests[-1].body) == {"name": "supply-chain", "sql": SQL}


def test_for_scripts_it_is_json(server: ScriptedServer, command: Command, file: Path) -> None:
    server.answer("POST", PATH, Response(json={"manifest": "version: 1\n"}))
    result = command("convert", str(file), "--name", "shop", "-o", "json")
    assert json.loads(result.stdout) == {"manifest": "version: 1\n"}


def test_what_cannot_be_kept_is_told_with_its_place_and_nothing_is_printed(
    server: ScriptedServer, command: Command, file: Path
) -> None:
    fault = {
        "message": "LATENESS is not supported",
        "line": 2,
        "column": 9,
        "path": "",
        "hint": "leave it out",
    }
    server.answer("POST", PATH, problem(422, "invalid", errors=[fault]))
    result = command("convert", str(file))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Supply chain.sql:2:9: LATENESS is not supported" in result.stderr


def test_a_file_that_is_not_there(command: Command) -> None:
    result = command("convert", "none.sql")
    assert (result.exit_code, "cannot read none.sql" in result.stderr) == (2, True)


def test_a_name_that_no_pipeline_has(command: Command, file: Path) -> None:
    assert command("convert", str(file), "--name", "My Shop").exit_code == 2
