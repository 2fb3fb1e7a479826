"""`waybill logs`: raw lines as they are, JSON lines as people read them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from waybill.cli.main import app

LINE = {
    "at": "2026-11-21T09:00:01.250",
    "level": "info",
    "service": "waybill_spark.driver",
    "logger": "waybill_spark.driver.app",
    "message": "batch is done",
    "batch": 7,
}


def waybill(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["logs", *arguments])


@pytest.fixture
def logs(tmp_path: Path) -> None:
    folder = tmp_path / ".waybill" / "logs"
    folder.mkdir(parents=True)
    (folder / "kafka.log").write_text("plain\n")
    (folder / "status.log").write_text(json.dumps(LINE) + "\n")


@pytest.mark.usefixtures("logs")
def test_one_log_or_all_of_them() -> None:
    assert waybill("status").stdout == (
        "09:00:01 info    waybill_spark.driver.app: batch is done batch=7\n"
    )
    assert [line.split()[0] for line in waybill().stdout.splitlines()] == ["kafka", "status"]
    told = json.loads(waybill("kafka", "-o", "json").stdout)
    assert told == {"source": "kafka", "line": "plain"}
    assert waybill("kafka", "-n", "0").stdout == ""


@pytest.mark.usefixtures("logs")
def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    result = waybill("kafk")
    assert result.exit_code == 1
    assert "there are: kafka, status" in result.stderr


def test_without_any_stack_the_way_to_one_is_told() -> None:
    assert "start one with `waybill up`" in waybill().stderr
