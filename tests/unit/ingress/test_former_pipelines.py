"""A pipeline with another name: what names the one of before is refused, with the present one."""

import asyncio
from dataclasses import replace

import pytest

from unit.ingress.fakes import MANIFEST, pipeline, source
from unit.ingress.world import World
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.problems import Slug


def world_after() -> World:
    return World(replace(pipeline(source()), name="sales", was=("orders",)))


def test_records_for_a_former_name_are_refused_with_the_present_one() -> None:
    refusal = world_after().refusal(to="orders")
    assert refusal.slug is Slug.RENAMED
    assert refusal.slug.status == 410
    assert refusal.members["renamed_to"] == "sales"


def test_file_from_before_is_refused_with_the_present_name() -> None:
    world = world_after()
    for asked in (
        world.commands.apply(ANYONE, "orders", MANIFEST, "r"),
        world.commands.validate(ANYONE, MANIFEST, "r"),
    ):
        with pytest.raises(Refusal, match="'orders' is called 'sales' now") as raised:
            asyncio.run(asked)
        assert "waybill rename sales orders" in str(raised.value.members["hint"])
    assert world.kafka.written == []


def test_rename_that_was_reported_a_moment_ago_is_known() -> None:
    world = World()
    world.directory.told = [replace(pipeline(source()), name="sales", was=("orders",))]
    assert world.refusal(to="orders").slug is Slug.RENAMED
