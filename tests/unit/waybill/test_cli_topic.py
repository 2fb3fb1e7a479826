"""`waybill topic grow`: more partitions, and a question first."""

import json

from unit.waybill.conftest import Command
from waybill.testing import Response, ScriptedServer

PATH = "/v1/pipelines/orders/inputs/orders/grow"
GROWN = Response(json={"topic": "orders.in", "partitions": 12, "added": 8})
GROW = ("topic", "grow", "orders", "orders", "--partitions", "12")


def test_the_number_is_sent_and_what_there_is_now_is_said(
    server: ScriptedServer, command: Command
) -> None:
    server.answer("POST", PATH, GROWN)
    result = command(*GROW, "--yes")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "orders.in has 12 partitions\n"
    (asked,) = server.asked("POST", PATH)
    assert json.loads(asked.body) == {"partitions": 12}


def test_nothing_is_sent_before_somebody_says_yes(server: ScriptedServer, command: Command) -> None:
    result = command(*GROW)
    assert result.exit_code == 2
    assert "keys of input orders move to other partitions" in result.stderr
    assert server.asked("POST", PATH) == []
