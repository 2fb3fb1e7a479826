"""`waybill offsets --set` and `--reset`: where the next run of a pipeline begins."""

import json

import pytest

from unit.waybill.conftest import Command
from waybill.testing import Response, ScriptedServer, problem

PATH = "/v1/pipelines/orders/offsets"
DONE = {"id": "op-1", "pipeline": "orders", "action": "set_offsets", "state": "done"}
WHERE = "orders.in[0]=40"


def test_what_is_set_is_sent_as_it_is_written(server: ScriptedServer, command: Command) -> None:
    server.answer("PATCH", PATH, Response(json=DONE))
    result = command("offsets", "orders", "--set", WHERE, "--stage", "enrich", "--yes")
    assert result.exit_code == 0, result.stderr
    (asked,) = server.asked("PATCH", PATH)
    assert json.loads(asked.body) == {"from": WHERE, "stage": "enrich"}
    assert asked.params == {"yes": "true", "wait": "1"}


def test_words_may_be_in_capitals(server: ScriptedServer, command: Command) -> None:
    server.answer("PATCH", PATH, Response(json=DONE))
    command("offsets", "orders", "--set", "Earliest", "--yes")
    assert json.loads(server.asked("PATCH", PATH)[0].body) == {"from": "earliest"}


def test_it_asks_before_records_come_again(server: ScriptedServer, command: Command) -> None:
    """Without a terminal it refuses, and says with which option it does not."""
    again = "stage enrich: up to 50 records of orders.in[0], from offset 40"
    slug = "rewind_not_confirmed"
    failed = {**DONE, "state": "failed", "problem": slug, "errors": [{"message": again}]}
    server.answer("PATCH", PATH, problem(409, slug, **failed))
    result = command("offsets", "orders", "--set", WHERE)
    assert result.exit_code == 2
    assert again in result.stderr
    assert "--yes" in result.stderr
    assert [asked.params for asked in server.asked("PATCH", PATH)] == [{"wait": "1"}]


def test_reset_takes_it_back(server: ScriptedServer, command: Command) -> None:
    server.answer("DELETE", PATH, Response(json=DONE))
    result = command("offsets", "orders", "--reset")
    assert result.exit_code == 0, result.stderr
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "arguments", [("--set", WHERE, "--reset"), ("--stage", "enrich"), ("--yes",)]
)
def test_options_that_do_not_go_together_are_refused(
    server: ScriptedServer, command: Command, arguments: tuple[str, ...]
) -> None:
    assert command("offsets", "orders", *arguments).exit_code == 2
    assert server.requests == []
