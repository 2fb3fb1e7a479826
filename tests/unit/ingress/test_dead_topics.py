"""Dead letters of one pipeline never come among the records of another."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from builders import applied
from unit.ingress.fakes import MANIFEST, OLD_ID, pipeline, source
from unit.ingress.world import OTHER, World
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.callers import Caller
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import PipelineRecord, SinkDefinition

Ask = Callable[[World, Caller, str], Awaitable[object]]
ASKS: list[Ask] = [
    lambda world, caller, text: world.commands.apply(caller, "late", text, "r"),
    lambda world, caller, text: world.commands.validate(caller, text, "r"),
]
OUT = SinkDefinition(
    name="out", kind="kafka", target="orders.out", topic_id=OLD_ID, terminal=True, since=1
)


def orders() -> PipelineRecord:
    """Reads orders.in, writes orders.out, and its dead go to orders.in.dlq."""
    record = pipeline(source())
    (stage,) = record.stages
    return replace(record, stages=(replace(stage, sinks=(OUT,)),))


def late(*, read: str = "late.in", write: str = "late.out", dead: str | None = None) -> str:
    text = MANIFEST.replace("name: orders", "name: late", 1)
    text = text.replace("orders.in", read).replace("orders.out", write)
    return text if dead is None else f"{text}deadLetter: {{topic: {dead}}}\n"


@pytest.mark.parametrize("ask", ASKS, ids=["apply", "check"])
@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (late(dead="orders.in"), "deadLetter.topic", "that of input 'orders' of pipeline 'orders'"),
        (late(dead="orders.out"), "deadLetter.topic", "that of sink 'out' of pipeline 'orders'"),
        (
            late(write="orders.in.dlq"),
            "stages.0.sinks.0.kafka.topic",
            "has the dead letters of pipeline 'orders'",
        ),
    ],
)
def test_topics_of_another_pipeline_are_refused(
    ask: Ask, text: str, path: str, message: str
) -> None:
    world = World(orders())
    with pytest.raises(UserError) as raised:
        asyncio.run(ask(world, ANYONE, text))  # type: ignore[arg-type]
    (problem,) = raised.value.problems
    assert problem.path == path
    assert message in problem.message
    assert world.kafka.written == []


@pytest.mark.parametrize(
    "text", [late(), late(read="orders.in.dlq"), late(dead="orders.in.dlq"), late(read="orders.in")]
)
def test_to_share_and_to_read_dead_letters_is_taken(text: str) -> None:
    world = World(orders())
    asyncio.run(world.commands.apply(ANYONE, "late", text, "r"))
    assert len(world.kafka.written) == 1


def test_who_reads_dead_letters_of_another_keeps_it_from_no_change() -> None:
    reader = replace(
        orders(), name="late", pipeline_uid="uid-2", manifest=applied(late(read="orders.in.dlq"))
    )
    (stage,) = reader.stages
    stage = replace(stage, inputs=(replace(source(), topic="orders.in.dlq"),), sinks=())
    world = World(orders(), replace(reader, stages=(stage,)))
    asyncio.run(world.commands.apply(ANYONE, "orders", MANIFEST + "state: stopped\n", "r"))
    assert len(world.kafka.written) == 1


def test_names_are_compared_as_they_are_meant() -> None:
    world = World(
        replace(orders(), manifest=applied(MANIFEST.replace("orders.in", '"orders\\u002ein"')))
    )
    with pytest.raises(UserError, match="has the dead letters of pipeline 'orders'"):
        asyncio.run(world.commands.apply(ANYONE, "late", late(write="orders.in.dlq"), "r"))


@pytest.mark.parametrize("name", ["orders", "late"])
def test_a_manifest_that_would_be_refused_today_stands_in_nobodys_way(name: str) -> None:
    """As one that was applied when less was checked."""
    old = MANIFEST.replace("orders.out", "orders.in.dlq")
    world = World(replace(orders(), manifest=applied(old)))
    mended = MANIFEST if name == "orders" else late()
    asyncio.run(world.commands.apply(ANYONE, name, mended, "r"))
    assert len(world.kafka.written) == 1


def test_a_pipeline_is_not_compared_with_itself() -> None:
    world = World(orders())
    text = f"{MANIFEST}deadLetter: {{topic: orders.dead}}\n"
    turned = text.replace("orders.in", "in.new").replace("orders.dead", "orders.in")
    asyncio.run(world.commands.apply(ANYONE, "orders", turned, "r"))
    assert len(world.kafka.written) == 1


def test_of_pipelines_of_another_tenant_nothing_is_told() -> None:
    world = World(orders())
    asyncio.run(world.commands.apply(OTHER, "late", late(dead="orders.in"), "r"))
    assert len(world.kafka.written) == 1
