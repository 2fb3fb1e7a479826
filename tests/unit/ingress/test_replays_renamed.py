"""Dead letters of a pipeline, a stage and a sink that got other names since: they stay the same."""

import asyncio
from dataclasses import replace

import pytest

from builders import make_sink
from unit.ingress.fakes import source
from unit.ingress.graves import burying_pipeline
from unit.ingress.test_replays import World
from waybill_ingress.app.replays import ReplayReceipt
from waybill_ingress.core.edits import RecordEdit
from waybill_shared.access.authentication import ANYONE
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord, StageDefinition
from waybill_shared.contract.problems import Slug


def renamed() -> PipelineRecord:
    sinks = (replace(make_sink("lake"), name="pond", was=("lake",)), make_sink("copy"))
    stage = StageDefinition(name="load", was=("copy",), since=1, inputs=(source(),), sinks=sinks)
    return replace(burying_pipeline(), name="sales", was=("orders",), stages=(stage,), generation=3)


def ask(world: World, letter: str, name: str, edit: RecordEdit | None = None) -> ReplayReceipt:
    asked = world.replays.replay(ANYONE, name, [letter], again=False, edit=edit, request_id="r")
    return asyncio.run(asked)


def rename(world: World) -> None:
    world.directory.records = {"sales": renamed()}


def test_letter_from_before_goes_where_it_would_have_gone() -> None:
    before, after = World(), World()
    rename(after)
    letter = before.letters.bury(17)
    assert after.letters.bury(17) == letter
    first, second = ask(before, letter, "orders"), ask(after, letter, "sales")
    assert before.log.written == after.log.written, "messages have keys, and those stay"
    assert first.sinks == ("copy/copy", "copy/lake")
    assert second.sinks == ("load/copy", "load/pond")


def test_letter_of_one_sink_goes_into_that_sink() -> None:
    world = World(renamed())
    world.directory.records = {"sales": renamed()}
    letter = world.letters.bury(5, sink="copy/lake@1", reason="refused")
    assert ask(world, letter, "sales").sinks == ("load/pond",)
    ((_, asked),) = world.log.written
    assert (asked.stage, asked.sinks) == ("copy@1", ("copy/lake@1",))


def test_letter_that_was_replayed_before_the_rename_is_not_replayed_again() -> None:
    world = World()
    letter = world.letters.bury(17)
    token = ask(world, letter, "orders").token
    rename(world)
    again = ask(world, letter, "sales")
    assert (again.token, again.replayed, again.already) == (token, 0, 1)
    assert again.sinks == ("load/copy", "load/pond")


def test_record_of_a_letter_from_before_is_edited() -> None:
    world = World()
    rename(world)
    letter = world.letters.bury(17)
    ask(world, letter, "sales", {"value": b'{"id": 18, "name": "ada"}'})
    ((_, asked),) = world.log.written
    assert asked.edited is not None
    assert asked.edited.value == b'{"id": 18, "name": "ada"}'


def test_replay_by_the_former_name_of_a_pipeline_is_refused_with_the_present_one() -> None:
    world = World()
    rename(world)
    letter = world.letters.bury(17)
    with pytest.raises(Refusal, match="'orders' is called 'sales' now") as raised:
        ask(world, letter, "orders")
    assert raised.value.slug is Slug.RENAMED
    assert world.sent() == []


def test_sinks_that_are_gone_since_are_called_as_their_keys() -> None:
    world = World()
    letter = world.letters.bury(17)
    first = ask(world, letter, "orders")
    world.directory.records = {"sales": replace(renamed(), stages=())}
    resumed = world.replays.replay(
        ANYONE, "sales", [letter], again=False, request_id="r", resumed=True
    )
    assert asyncio.run(resumed) == first
