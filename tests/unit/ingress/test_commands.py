"""Commands for pipelines: what they say, to whom, and what is refused."""

import asyncio
from dataclasses import replace

import pytest

from builders import applied
from unit.ingress.bodies import WholeBody
from unit.ingress.fakes import MANIFEST, NEW_ID, FakeKafka, offsets, pipeline, source
from unit.ingress.world import OTHER, THREE, World, position
from waybill_ingress.core.bodies.lines import read_ndjson
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.codec import decode
from waybill_shared.contract.commands import Apply, Delete, Restart, Stop
from waybill_shared.contract.errors import Refusal, Retryable, UserError
from waybill_shared.contract.events import Command
from waybill_shared.contract.operations import OperationId, read_operation
from waybill_shared.contract.words import Action


def test_a_command_goes_to_the_pipelines_own_key() -> None:
    world = World()
    operation = asyncio.run(world.commands.apply(ANYONE, "orders", MANIFEST, "request-1"))
    assert str(operation) == f"apply.orders.{'ab' * 16}"
    (record,) = world.kafka.written
    assert (world.kafka.topics, record.key) == (["waybill.commands"], b"default/next-orders")
    command = decode(Command, record.value)
    assert (command.id, command.action, command.request_id) == (
        str(operation),
        "apply",
        "request-1",
    )
    assert command.body == Apply(manifest=applied(MANIFEST))


@pytest.mark.parametrize(("key_id", "actor"), [("3f9c", "3f9c"), (None, "anonymous")])
def test_a_command_says_who_sent_it_and_of_which_tenant(key_id: str | None, actor: str) -> None:
    world, caller = World(), replace(OTHER, key_id=key_id)
    asyncio.run(world.commands.apply(caller, "orders", MANIFEST, "r"))
    (record,) = world.kafka.written
    command = decode(Command, record.value)
    assert (command.tenant, command.actor) == ("other", actor)
    assert record.key == b"other/next-orders"


def test_pipelines_of_another_tenant_are_not_there() -> None:
    """Nor is what it applied a moment ago known to any other."""
    world = World(pipeline(source()))
    asyncio.run(
        world.commands.apply(ANYONE, "late", MANIFEST.replace("name: orders", "name: late", 1), "r")
    )
    for asking in (
        world.records.write(OTHER, "orders", "orders", WholeBody(THREE), read_ndjson),
        world.tokens.for_input(OTHER, "late", "orders"),
        world.tokens.for_positions(OTHER, "orders", [position(0, 0, 1)]),
        world.commands.act(OTHER, "orders", Stop(), "r"),
        world.commands.act(OTHER, "orders", Restart(), "r"),
    ):
        with pytest.raises(Refusal) as refused:
            asyncio.run(asking)
        assert (refused.value.slug, refused.value.members["known"]) == ("pipeline_not_found", [])


def test_a_token_is_sealed_for_the_tenant_that_asks() -> None:
    world = World(replace(pipeline(source()), tenant="other"))
    asyncio.run(world.records.write(OTHER, "orders", "orders", WholeBody(THREE), read_ndjson))
    asyncio.run(world.tokens.for_input(OTHER, "orders", "orders"))
    asyncio.run(world.tokens.for_positions(OTHER, "orders", [position(0, 0, 1)]))
    assert world.mint.tenants == ["other"] * 3


@pytest.mark.parametrize("action", Action)
def test_every_action_makes_an_operation_that_can_be_asked_for(action: Action) -> None:
    operation = OperationId(action=action, pipeline="orders", nonce="ab" * 16)
    assert read_operation(str(operation)) == operation


def test_a_manifest_of_another_name_is_refused_with_both() -> None:
    world = World()
    with pytest.raises(UserError, match="called 'orders', the address says 'other'"):
        asyncio.run(world.commands.apply(ANYONE, "other", MANIFEST, "r"))
    assert world.kafka.written == []


def test_what_is_not_there_cannot_be_stopped() -> None:
    world = World()
    with pytest.raises(Refusal) as refused:
        asyncio.run(world.commands.act(ANYONE, "orders", Stop(), "r"))
    assert refused.value.slug == "pipeline_not_found"


@pytest.mark.parametrize("body", [Restart(), Restart(start_from="earliest"), Stop(), Delete()])
def test_a_command_says_what_is_asked_for(body: Restart | Stop | Delete) -> None:
    world = World(pipeline(source()))
    operation = asyncio.run(world.commands.act(ANYONE, "orders", body, "r"))
    command = decode(Command, world.kafka.written[0].value)
    assert (operation.action, command.body) == (body.action, body)


def test_after_a_restart_on_a_recreated_topic_there_are_tokens_again() -> None:
    """As soon as its record is known; the topic was looked at before, under its old id."""
    world = World(pipeline(source()))
    world.write()
    world.kafka.topic_id = NEW_ID
    assert world.refusal().slug == "topic_recreated"
    anew = replace(source(), topic_id=NEW_ID, bases=offsets(0, 0, topic_id=NEW_ID))
    world.directory.records["orders"] = replace(pipeline(anew), generation=3)
    assert world.write().accepted == 3
    (part,) = world.mint.parts
    assert part.generation == 3
    assert {span.topic_id for span in part.spans} == {NEW_ID}


def test_a_command_that_is_not_acknowledged_is_not_accepted() -> None:
    world = World(pipeline(source()), kafka=FakeKafka(failing={0: "not acknowledged by kafka: x"}))
    with pytest.raises(Retryable, match="stop of orders was not accepted"):
        asyncio.run(world.commands.act(ANYONE, "orders", Stop(), "r"))
