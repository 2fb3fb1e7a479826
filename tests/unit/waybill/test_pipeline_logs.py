"""`client.logs()`, and `waybill logs PIPELINE` where there is no local stack."""

import asyncio
import json

from unit.waybill.conftest import Command
from unit.waybill.test_cli_logs import LINE
from waybill import AsyncClient, Client
from waybill.testing import Response, ScriptedServer

PATH = "/v1/pipelines/orders/logs"
ANSWER = Response(json={"pipeline": "orders", "lines": ["plain", json.dumps(LINE)]})


def test_both_clients_read_it(server: ScriptedServer) -> None:
    server.answer("GET", PATH, ANSWER)

    async def asked() -> tuple[str, ...]:
        async with AsyncClient(server.url) as client:
            return await client.logs("orders", lines=5)

    with Client(server.url) as client:
        lines = client.logs("orders")
    assert lines == asyncio.run(asked()) == ("plain", json.dumps(LINE))
    assert [each.params["lines"] for each in server.requests] == ["200", "5"]


def test_a_log_elsewhere_is_read_as_one_here(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, ANSWER)
    shown = command("logs", "orders", "-n", "7")
    assert shown.stdout.splitlines() == [
        "plain",
        "09:00:01 info    waybill_spark.driver.app: batch is done batch=7",
    ]
    assert server.requests[0].params["lines"] == "7"


def test_one_elsewhere_is_not_followed(command: Command) -> None:
    told = command("logs", "orders", "-f")
    assert told.exit_code == 1
    assert "without -f the newest lines" in " ".join(told.stderr.split())
