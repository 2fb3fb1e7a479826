"""`waybill logs`: raw lines as they are, JSON lines as people read them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from waybill.cli.main import app
from waybill.cli.stack import NO_STACK

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


@pytest.mark.parametrize("options", [(), ("--follow",)])
def test_without_any_stack_the_error_is_that_of_other_commands(options: tuple[str, ...]) -> None:
    result = waybill(*options)
    assert result.exit_code == 1
    assert result.stderr == f"error: {NO_STACK}\n"


TRACEBACK = "Traceback (most recent call last):\n  File x\nStageStopped: topic_recreated: A is B"
RUN_ENDS = {**LINE, "level": "error", "message": "run ends", "error": TRACEBACK}
PY4J = {
    **LINE,
    "logger": "py4j.clientserver",
    "message": "There was an exception",
    "error": "Traceback\nwaybill_spark.driver.failures.StageFailed: stage load ended",
}
QUERY = "09:13:36.042 ERROR MicroBatchExecution: Query load [id = d] terminated with error"
BATCH = [
    QUERY,
    "org.apache.spark.ForeachBatchUserFuncException: [X] An error occurred. Return Message: Trace",
    "  File x",
    "waybill_spark.driver.failures.StageFailed: stage load ended",
    " SQLSTATE: 39000",
    "\tat org.apache.spark.ForeachBatchSink.addBatch(ForeachBatchSink.scala:49)",
    "Caused by: py4j.Py4JException: An exception was raised by the Python Proxy.",
    "\t... 29 more",
]
OTHER = [QUERY, "java.lang.OutOfMemoryError: heap", "  at org.apache.spark.X.y(X.scala:1)"]


def write(tmp_path: Path, *records: dict[str, object] | str) -> None:
    folder = tmp_path / ".waybill" / "logs"
    folder.mkdir(parents=True)
    lines = [each if isinstance(each, str) else json.dumps(each) for each in records]
    (folder / "orders.log").write_text("\n".join(lines) + "\n")


def test_an_expected_stop_is_one_line_and_verbose_shows_where_it_came_from(tmp_path: Path) -> None:
    ends = {**RUN_ENDS, "expected": True, "reason": "topic_recreated: A is B"}
    write(tmp_path, PY4J, *BATCH, ends)
    (line,) = waybill("orders").stdout.splitlines()
    assert line.endswith("run ends batch=7 reason=topic_recreated: A is B")
    told = waybill("orders", "--verbose").stdout
    assert TRACEBACK in told
    assert "stage load ended" in told
    assert "ForeachBatchSink.scala:49" in told
    assert len(waybill("orders", "-o", "json").stdout.splitlines()) == len(BATCH) + 2


def test_the_last_lines_are_counted_as_they_are_shown(tmp_path: Path) -> None:
    ends = {**RUN_ENDS, "expected": True, "reason": "topic_recreated: A is B"}
    write(tmp_path, LINE, PY4J, *BATCH, ends, PY4J, *BATCH)
    shown = waybill("orders", "-n", "2").stdout.splitlines()
    assert [line.split(": ")[1] for line in shown] == [
        "batch is done batch=7",
        "run ends batch=7 reason=topic_recreated",
    ]
    assert "29 more" in waybill("orders", "-n", "1", "--verbose").stdout


def test_what_was_not_expected_keeps_its_traceback(tmp_path: Path) -> None:
    write(tmp_path, {**RUN_ENDS, "expected": False}, *OTHER, LINE, QUERY)
    told = waybill("orders").stdout
    assert TRACEBACK in told
    assert told.splitlines()[-5:-2] == OTHER
    assert told.splitlines()[-1] == QUERY


@pytest.mark.parametrize("crash", ["#", "Killed", "java.lang.OutOfMemoryError: heap"])
def test_what_java_says_behind_a_batch_that_failed_is_told(tmp_path: Path, crash: str) -> None:
    """The end of Java stands in the same log, and no record of the run follows it."""
    write(tmp_path, *BATCH, crash, "# SIGSEGV")
    assert waybill("orders").stdout.splitlines() == [crash, "# SIGSEGV"]
