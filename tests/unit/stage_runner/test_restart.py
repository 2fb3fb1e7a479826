"""What a restart makes of a pipeline, with fakes for Kafka and for driver processes."""

from dataclasses import replace

import pytest

from unit.stage_runner.fakes import (
    UID,
    World,
    carry_out,
    command,
    receive,
    runner_in,
    running,
    stopped,
)
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverRuns


def test_a_restart_is_a_new_run_of_the_same(world: World) -> None:
    runner = running(world)
    carry_out(runner, command(2, "restart"), 2)
    assert world.stopped == [UID]
    receive(runner, 1, DriverEnded(exit_code=0))
    receive(runner, 2, DriverRuns())

    before, after = world.records
    assert after == replace(before, commanded_at=2, run=1, updated_at=after.updated_at)
    assert world.definitions[-1].stages == before.stages
    assert world.answers[-1] == ("c2", "done")


def test_a_restart_starts_what_was_stopped(world: World) -> None:
    runner = stopped(world)
    carry_out(runner, command(4, "restart"), 4)
    assert world.started == [1, 2]
    assert world.records[-1].desired == "running"


@pytest.mark.parametrize(("start_from", "base"), [("earliest", 3), ("latest", 90)])
def test_a_restart_goes_on_with_topics_that_were_created_anew(
    world: World, start_from: str, base: int
) -> None:
    runner = running(world)
    world.topics = {"orders.in": "orders.in#2", "orders.enriched": "orders.enriched#2"}
    carry_out(runner, command(2, "restart", start_from=start_from), 2)

    enrich, load = world.records[-1].stages
    (source,), (inner,) = enrich.inputs, load.inputs
    assert (source.topic_id, source.retired) == ("orders.in#2", ("orders.in#1",))
    assert {*source.bases.values()} == {base}
    assert (inner.topic_id, inner.retired) == ("orders.enriched#2", ("orders.enriched#1",))
    assert {*inner.bases.values()} == {3}, "our own stage writes it"
    assert enrich.sinks[0].topic_id == "orders.enriched#2"


def test_a_restart_keeps_the_bases_of_topics_that_are_the_same(world: World) -> None:
    runner = running(world)
    carry_out(runner, command(2, "restart", start_from="latest"), 2)
    assert world.records[-1].stages == world.records[0].stages


def test_a_restart_on_a_topic_that_is_gone_asks_where_to_begin_and_creates_none(
    world: World,
) -> None:
    runner = running(world)
    del world.topics["orders.in"]
    carry_out(runner, command(2, "restart"), 2)
    assert world.answers[-1] == ("c2", "failed")
    assert "orders.in had id orders.in#1, now it does not exist" in world.problems[0].message
    assert "orders.in" not in world.topics
    assert len(world.records) == 1

    carry_out(runner, command(3, "restart", start_from="latest"), 3)
    assert "orders.in" in world.topics
    assert world.records[-1].commanded_at == 3


def test_a_topic_that_is_recreated_while_it_is_looked_at_is_not_begun_unasked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = running(world)
    before = dict(world.topics)
    monkeypatch.setattr(world, "ids", lambda topics: before)
    world.topics["orders.in"] = "orders.in#2"
    carry_out(runner, command(2, "restart"), 2)
    assert world.answers[-1] == ("c2", "failed")


def test_a_restart_that_comes_again_changes_nothing(world: World) -> None:
    """Not even if a topic was created anew since it was carried out."""
    first = running(world)
    carry_out(first, command(2, "restart"), 2)
    second_world = World(topics={"orders.in": "orders.in#2"})
    second = runner_in(second_world)
    second.adopt(world.records[-1])
    carry_out(second, command(2, "restart"), 2)
    receive(second, 1, DriverRuns())
    assert second_world.records == []
    assert second_world.answers == [("c2", "done")]
