"""`client.offsets(name)` and `waybill offsets`: where each stage is, and what is unknown."""

import asyncio
import json
from typing import Any

import pytest

from unit.waybill.conftest import Command
from waybill import AsyncClient, Client, NotFound, PipelineOffsets, SinkFrontier, UnexpectedAnswer
from waybill.testing import Response, ScriptedServer, problem

PATH = "/v1/pipelines/orders/offsets"


def partition(
    number: int, base: int, end: int | None, **frontiers: int | None
) -> dict[str, object]:
    """Frontiers by sink; the stage is where the slowest is."""
    known = [each for each in frontiers.values() if each is not None]
    position = min(known, default=None)
    return {
        "partition": number,
        "base": base,
        "position": position,
        "pending": None,
        "frontier": position,
        "end": end,
        "lag": None if position is None or end is None else end - position,
        "sinks": [{"name": name, "frontier": each} for name, each in frontiers.items()],
    }


def stage(name: str, topic: str, *partitions: dict[str, object]) -> dict[str, object]:
    source = {"name": topic, "topic": topic, "topic_id": "b3I", "partitions": list(partitions)}
    return {"name": name, "inputs": [source]}


def answer(*stages: dict[str, object], unknown: tuple[object, ...] = ()) -> dict[str, Any]:
    return {
        "name": "orders",
        "uid": "u-1",
        "generation": 2,
        "at": "2026-11-21T09:00:01.002Z",
        "stages": list(stages),
        "unknown": list(unknown),
    }


KNOWN = answer(
    stage(
        "enrich",
        "orders.in",
        {**partition(0, 3, 9, enriched=7, copy=5), "pending": 4},
        partition(1, 1, 5, enriched=5, copy=5),
    ),
    stage("load", "orders.enriched", partition(0, 0, 4, lake=4)),
)
WHY = {
    "what": "position",
    "topic": None,
    "reason": "redis_away",
    "detail": "no redis",
    "hint": None,
}
ANEW = {
    "what": "end",
    "topic": "orders.in",
    "reason": "topic_recreated",
    "detail": "it is another topic now",
    "hint": "restart it",
}
UNKNOWN = answer(
    stage("load", "orders.in", partition(0, 3, None, lake=None)),
    unknown=(WHY, ANEW),
)


def test_both_clients_read_it(server: ScriptedServer) -> None:
    server.answer("GET", PATH, Response(json=KNOWN))

    async def asked() -> PipelineOffsets:
        async with AsyncClient(server.url) as client:
            return await client.offsets("orders")

    with Client(server.url) as client:
        found = client.offsets("orders")
    assert found == asyncio.run(asked())
    enrich, load = found.stages
    assert (enrich.lag, load.lag, found.unknown, found.generation) == (4, 0, (), 2)
    (source,) = enrich.inputs
    first, second = source.partitions
    assert (source.topic, source.topic_id) == ("orders.in", "b3I")
    assert (first.base, first.position, first.frontier, first.end, first.lag) == (3, 5, 5, 9, 4)
    assert (first.pending, second.pending) == (4, None)
    assert first.sinks[0] == SinkFrontier(name="enriched", frontier=7)
    assert (second.partition, second.lag) == (1, 0)


def test_unknown_is_none_and_never_a_number(server: ScriptedServer) -> None:
    server.answer("GET", PATH, Response(json=UNKNOWN))
    with Client(server.url) as client:
        found = client.offsets("orders")
    (load,) = found.stages
    (only,) = load.inputs[0].partitions
    assert (only.base, only.position, only.end, only.lag, load.lag) == (3, None, None, None, None)
    position, end = found.unknown
    assert (position.what, position.topic, position.reason) == ("position", None, "redis_away")
    assert (end.what, end.topic, end.hint) == ("end", "orders.in", "restart it")


def test_what_cannot_be_read_is_named(server: ScriptedServer) -> None:
    server.answer("GET", PATH, Response(json={"name": "orders"}))
    with Client(server.url) as client, pytest.raises(UnexpectedAnswer, match="generation"):
        client.offsets("orders")


def test_a_pipeline_that_does_not_exist(server: ScriptedServer) -> None:
    server.answer("GET", PATH, problem(404, "no such pipeline"))
    with Client(server.url) as client, pytest.raises(NotFound):
        client.offsets("orders")


def test_the_command_prints_a_table(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, Response(json=KNOWN))
    result = command("offsets", "orders")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "STAGE   TOPIC               BASE  POSITION  PENDING  END  LAG  SINKS",
        "enrich  orders.in[0]        3     5         4        9    4    enriched 7, copy 5",
        "enrich  orders.in[1]        1     5                  5    0",
        "load    orders.enriched[0]  0     4                  4    0",
    ]


def test_the_command_says_what_is_unknown_and_why(server: ScriptedServer, command: Command) -> None:
    server.answer("GET", PATH, Response(json=UNKNOWN))
    result = command("offsets", "orders")
    assert result.exit_code == 5
    assert result.stdout.splitlines() == [
        "STAGE  TOPIC         BASE  POSITION  PENDING  END      LAG      SINKS",
        "load   orders.in[0]  3     unknown            unknown  unknown",
        "unknown position: no redis (redis_away)",
        "unknown end of orders.in: it is another topic now (topic_recreated)",
        "hint: restart it",
    ]


@pytest.mark.parametrize(("known", "code"), [(KNOWN, 0), (UNKNOWN, 5)])
def test_the_command_prints_the_answer_for_scripts(
    server: ScriptedServer, command: Command, known: dict[str, object], code: int
) -> None:
    server.answer("GET", PATH, Response(json=known))
    result = command("offsets", "orders", "-o", "json")
    assert (json.loads(result.stdout), result.exit_code) == (known, code)
