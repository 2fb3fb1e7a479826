"""The runner's promises, with fakes for Kafka and for driver processes."""

import pytest

from shared.errors import Retryable
from stage_runner.core.moves import DriverBlocked, DriverEnded, DriverRuns
from unit.stage_runner.fakes import EXAMPLE, UID, World, command, runner_in, running


@pytest.fixture
def world() -> World:
    return World()


def test_an_applied_pipeline_is_answered_when_it_runs(world: World) -> None:
    running(world)

    assert world.answers == [("c1", "done")]
    assert world.phases == ["Starting", "Running"]
    assert [record.generation for record in world.records] == [1]


def test_an_answer_says_which_generation_the_pipeline_has(world: World) -> None:
    runner = running(world)
    runner.handle(command(2, manifest=EXAMPLE.replace("0.2", "0.3")), 2)
    runner.handle(command(3, manifest="name: orders"), 3)
    runner.act()
    runner.hear(UID, 1, DriverEnded(exit_code=0))
    runner.act()
    runner.hear(UID, 2, DriverRuns())
    runner.act()

    assert world.answers == [("c1", "done"), ("c3", "failed"), ("c2", "done")]
    assert world.generations == [1, 2, 2]


def test_an_answer_about_a_pipeline_that_never_was_has_no_generation(world: World) -> None:
    runner_in(world).handle(command(1, "stop"), 1)
    assert world.answers == [("c1", "failed")]
    assert world.generations == [None]


def test_what_an_earlier_driver_tells_late_changes_nothing(world: World) -> None:
    runner = running(world)
    record = world.records[-1]
    runner.release(UID)
    runner.adopt(record)
    runner.act()
    assert world.started == [1, 2]

    runner.hear(UID, 1, DriverEnded(exit_code=-9))
    runner.act()
    runner.hear(UID, 2, DriverRuns())
    runner.act()

    assert world.started == [1, 2]
    assert world.phases[-1] == "Running"


def test_adopting_twice_starts_one_driver(world: World) -> None:
    runner = running(world)

    runner.adopt(world.records[-1])
    runner.act()

    assert world.started == [1]


def test_commands_that_come_again_change_nothing(world: World) -> None:
    """After a restart: apply, apply of a change, stop; all were answered."""
    first = running(world)
    first.handle(command(2, manifest=EXAMPLE.replace("0.2", "0.3")), 2)
    first.handle(command(3, "stop"), 3)
    first.act()
    first.hear(UID, 1, DriverEnded(exit_code=0))
    first.act()
    last = world.records[-1]
    assert (last.generation, last.desired) == (2, "stopped")
    second_world = World()
    second = runner_in(second_world)
    second.adopt(last)
    second.act()

    second.handle(command(1), 1)
    second.handle(command(2, manifest=EXAMPLE.replace("0.2", "0.3")), 2)
    second.act()

    assert second_world.records == []
    assert second_world.started == []
    assert second_world.answers == []

    second.handle(command(3, "stop"), 3)
    second.act()
    assert second_world.answers == [("c3", "done")], "it may have died before the answer"
    assert second_world.records == []


def test_what_could_not_be_carried_out_is_refused_in_the_end(world: World) -> None:
    world.away = True
    runner = runner_in(world)

    with pytest.raises(Retryable):
        runner.handle(command(1), 1)
    runner.refuse(command(1), "kafka is away")

    assert world.answers == [("c1", "failed")]
    assert world.records == []


def test_what_blocks_a_driver_is_told_between_heartbeats(world: World) -> None:
    runner = running(world)
    runner.hear(UID, 1, DriverBlocked(blocked_by="blocked_by_open_transaction"))
    runner.act()
    runner.beat()
    runner.hear(UID, 1, DriverBlocked(blocked_by=None))
    runner.act()
    assert world.beats == ["blocked_by_open_transaction", "blocked_by_open_transaction", None]
