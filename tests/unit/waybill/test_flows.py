"""`client.flow()`: how much came into each pipeline, and has arrived."""

import asyncio

import pytest

from waybill import AsyncClient, Client, PipelineFlow, SinkFlow, UnexpectedAnswer
from waybill.testing import Response, ScriptedServer

ANSWER = {
    "at": "2026-11-21T09:00:01.002Z",
    "items": [
        {
            "name": "orders",
            "uid": "u",
            "reason": None,
            "inputs": [
                {"name": "a", "written": 10, "arrived": 8},
                {"name": "b", "written": 5, "arrived": 4},
            ],
            "sinks": [{"stage": "load", "name": "lake", "behind": 3}],
            "dead": 2,
        },
        {"name": "new", "uid": "v", "reason": "slot_missing", "inputs": [], "sinks": [], "dead": 0},
    ],
}


def test_both_clients_read_it(server: ScriptedServer) -> None:
    server.answer("GET", "/v1/flow", Response(json=ANSWER))

    async def asked() -> tuple[PipelineFlow, ...]:
        async with AsyncClient(server.url) as client:
            return await client.flow()

    with Client(server.url) as client:
        orders, new = client.flow()
    assert (orders, new) == asyncio.run(asked())
    assert (orders.behind, orders.dead, orders.reason) == (3, 2, None)
    assert orders.sinks == (SinkFlow(stage="load", name="lake", behind=3),)
    assert (new.behind, new.reason) == (0, "slot_missing")


def test_what_cannot_be_read_is_named(server: ScriptedServer) -> None:
    server.answer("GET", "/v1/flow", Response(json={"items": [{"name": "orders"}]}))
    with Client(server.url) as client, pytest.raises(UnexpectedAnswer, match="dead"):
        client.flow()
