"""`waybill dlq put`: a record that nobody else can find."""

import json

import pytest

from unit.waybill.conftest import Command
from waybill.testing import Response, ScriptedServer

PATH = "/v1/pipelines/orders/dead-letters"
DONE = {"id": "op-1", "pipeline": "orders", "action": "restart", "state": "done"}


def test_the_record_and_the_reason_are_sent(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", PATH, Response(json=DONE))
    result = command("dlq", "put", "orders", "orders.in[1]@4711", "--reason", "ends the driver")
    assert result.exit_code == 0, result.stderr
    (asked,) = server.asked("POST", PATH)
    assert json.loads(asked.body) == {
        "topic": "orders.in",
        "partition": 1,
        "offset": 4711,
        "reason": "ends the driver",
    }


def test_one_stage_alone_may_be_meant(server: ScriptedServer, command: Command) -> None:
    server.answer("POST", PATH, Response(json=DONE))
    command("dlq", "put", "orders", "orders.in[1]@4711", "--reason", "x", "--stage", "load")
    (asked,) = server.asked("POST", PATH)
    assert json.loads(asked.body)["stage"] == "load"


@pytest.mark.parametrize("record", ["orders.in", "orders.in[0]", "orders.in[0]=3", "[0]@3"])
def test_what_is_no_record_is_refused_before_anything_is_sent(
    server: ScriptedServer, command: Command, record: str
) -> None:
    result = command("dlq", "put", "orders", record, "--reason", "x")
    assert result.exit_code == 2
    assert "TOPIC[PARTITION]@OFFSET" in result.stderr
    assert server.asked("POST", PATH) == []


def test_a_reason_is_needed(command: Command) -> None:
    assert command("dlq", "put", "orders", "orders.in[0]@3").exit_code == 2


def test_a_refusal_names_what_was_asked_and_not_the_restart(
    server: ScriptedServer, command: Command
) -> None:
    fault = {"path": "dead_letter", "code": "done", "message": "every sink has it already"}
    server.answer("POST", PATH, Response(json=DONE | {"state": "failed", "errors": [fault]}))
    result = command("dlq", "put", "orders", "orders.in[0]@3", "--reason", "x")
    assert result.exit_code == 1
    assert "every sink has it already" in result.stderr
    assert "error: dlq put orders failed" in result.stderr
