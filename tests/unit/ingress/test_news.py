"""What was told done is known: names and generations are looked up again before a refusal."""

import asyncio
from dataclasses import replace

import pytest

from unit.ingress.fakes import pipeline, source
from unit.ingress.world import World
from waybill_ingress.core.if_match import Demand, read_demand
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.errors import Refusal

UID = "3f1d7f36-7a02-5e5a-9d0c-6a4a4b1b5a10"


def write(world: World, demand: Demand | None = None) -> int:
    """The generation of the token."""
    assert world.write(demand=demand).accepted == 3
    return world.mint.parts[0].generation


def slug(world: World, demand: Demand | None = None, *, to: str = "orders") -> str:
    return world.refusal(to=to, demand=demand).slug


def test_a_pipeline_that_was_told_a_moment_ago_is_known() -> None:
    world = World()
    world.directory.told = [pipeline(source())]

    assert write(world) == 2


def test_an_input_that_was_told_a_moment_ago_is_known() -> None:
    world = World(pipeline(source()))
    world.directory.told = [replace(pipeline(source(), source("late")), generation=3)]

    asyncio.run(world.tokens.for_input(ANYONE, "orders", "late"))

    assert world.mint.parts[0].generation == 3


def test_the_uid_of_a_free_name_counts_every_life_that_was_told() -> None:
    world = World()
    world.directory.told = [pipeline(source())]

    assert asyncio.run(world.registry.life_for("default", "orders")).uid == "uid-1"


def test_what_is_known_asks_nothing() -> None:
    world = World(pipeline(source()))
    write(world)
    write(world, Demand(generation=2))

    assert world.directory.asked == 0


def test_without_news_no_check_takes_a_pipeline_for_a_new_one() -> None:
    world = World()
    assert asyncio.run(world.registry.holder("default", "orders")) is None
    world.directory.kafka_away = True
    with pytest.raises(Refusal) as refused:
        asyncio.run(world.registry.holder("default", "orders"))
    assert refused.value.slug == "pipeline_not_ready"


def test_without_news_nothing_is_called_unknown() -> None:
    world = World()
    world.directory.kafka_away = True

    assert slug(world) == "pipeline_not_ready"
    world.directory.records["orders"] = pipeline(source())
    assert slug(world, to="late") == "input_not_ready"
    assert write(world) == 2


@pytest.mark.parametrize("demand", [Demand(generation=3), Demand(generation=3, uid="uid-1")])
def test_below_the_generation_that_is_demanded_there_is_no_token(demand: Demand) -> None:
    world = World(pipeline(source()))

    assert slug(world, demand) == "pipeline_behind"
    with pytest.raises(Refusal, match="generation 3 of pipeline orders is not known here yet"):
        asyncio.run(world.tokens.for_input(ANYONE, "orders", "orders", demand=demand))
    with pytest.raises(Refusal, match="this ingress knows generation 2"):
        asyncio.run(world.tokens.for_positions(ANYONE, "orders", [], demand=demand))

    world.directory.told = [replace(pipeline(source()), generation=3)]
    assert write(world, demand) == 3


def test_the_generation_of_a_life_that_is_over_is_no_demand_on_the_next_one() -> None:
    """Somebody else deleted the pipeline and applied it again: generations begin anew."""
    old = Demand(generation=9, uid=UID)
    world = World(pipeline(source()))
    assert slug(world, old) == "pipeline_behind"

    ended = replace(pipeline(source()), pipeline_uid=UID, desired="deleted")
    world.directory.ended[UID] = ended

    assert write(world, old) == 2


def test_a_generation_is_read_as_an_etag() -> None:
    assert read_demand(None) is None
    assert read_demand("*") is None
    assert read_demand(' "3"') == Demand(generation=3)
    assert read_demand(f'"{UID}/3"') == Demand(generation=3, uid=UID)
    with pytest.raises(Refusal, match="is no generation") as refused:
        read_demand("3")
    assert refused.value.slug == "bad_if_match"
