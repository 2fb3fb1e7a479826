"""`waybill rescale`: how many tasks of a pipeline run at once."""

import json

import pytest

from unit.waybill.conftest import Command
from waybill.testing import Response, ScriptedServer

PATH = "/v1/pipelines/orders/rescale"
DONE = {"id": "op-1", "pipeline": "orders", "action": "rescale", "state": "done"}


def test_the_number_is_sent_and_what_was_done_is_said(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", PATH, Response(json=DONE))
    result = command("rescale", "orders", "4")
    assert result.exit_code == 0, result.stderr
    (asked,) = server.asked("POST", PATH)
    assert json.loads(asked.body) == {"parallelism": 4}


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_what_is_no_number_of_tasks_is_refused_before_anything_is_sent(
    server: ScriptedServer, command: Command, number: str
) -> None:
    assert command("rescale", "orders", "--", number).exit_code == 2
    assert server.asked("POST", PATH) == []
