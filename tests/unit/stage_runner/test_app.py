"""The runner's promises, with fakes for Kafka and for driver processes."""

import pytest

from unit.stage_runner.fakes import (
    EXAMPLE,
    UID,
    World,
    carry_out,
    command,
    pass_check,
    receive,
    runner_in,
    running,
)
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.words import Obstacle
from waybill_stage_runner.core.pipelines.events import DriverBlocked, DriverEnded, DriverRuns

WITHOUT_LOAD = EXAMPLE[: EXAMPLE.index("  - name: load")]


def test_an_applied_pipeline_is_answered_when_it_runs(world: World) -> None:
    running(world)

    assert world.answers == [("c1", "done")]
    assert world.phases == ["Starting", "Running"]
    assert [record.generation for record in world.records] == [1]


def test_an_answer_says_which_generation_the_pipeline_has(world: World) -> None:
    runner = running(world)
    carry_out(runner, command(2, manifest=EXAMPLE.replace("0.2", "0.3")), 2)
    carry_out(runner, command(3, manifest="name: orders"), 3)
    receive(runner, 1, DriverEnded(exit_code=0))
    receive(runner, 2, DriverRuns())

    assert world.answers == [("c1", "done"), ("c3", "failed"), ("c2", "done")]
    assert world.generations == [1, 2, 2]


def test_an_answer_about_a_pipeline_that_never_was_has_no_generation(world: World) -> None:
    carry_out(runner_in(world), command(1, "stop"), 1)
    assert world.answers == [("c1", "failed")]
    assert world.generations == [None]


def test_what_an_earlier_driver_tells_late_changes_nothing(world: World) -> None:
    runner = running(world)
    record = world.records[-1]
    runner.release()
    runner.adopt(record)
    runner.act()
    assert world.started == [1, 2]

    receive(runner, 1, DriverEnded(exit_code=-9))
    receive(runner, 2, DriverRuns())

    assert world.started == [1, 2]
    assert world.phases[-1] == "Running"


def test_commands_that_come_again_change_nothing(world: World) -> None:
    """After a restart: apply, apply of a change, stop; all were answered."""
    first = running(world)
    carry_out(first, command(2, manifest=EXAMPLE.replace("0.2", "0.3")), 2)
    carry_out(first, command(3, "stop"), 3)
    receive(first, 1, DriverEnded(exit_code=0))
    last = world.records[-1]
    assert (last.generation, last.desired) == (2, "stopped")
    second_world = World()
    second = runner_in(second_world)
    second.adopt(last)
    second.act()

    carry_out(second, command(1), 1)
    carry_out(second, command(2, manifest=EXAMPLE.replace("0.2", "0.3")), 2)

    assert second_world.records == []
    assert second_world.started == []
    assert second_world.answers == []

    carry_out(second, command(3, "stop"), 3)
    assert second_world.answers == [("c3", "done")], "it may have died before the answer"
    assert second_world.records == []


def test_what_could_not_be_carried_out_is_refused_in_the_end(world: World) -> None:
    world.away = True
    runner = runner_in(world)

    with pytest.raises(Retryable):
        carry_out(runner, command(1), 1)
    world.away = False
    runner.refuse(command(1), "kafka is away")
    runner.act()

    assert world.answers == [("c1", "failed")]
    assert world.records == []


def test_what_kafka_may_have_taken_is_said_until_it_has(world: World) -> None:
    """Nobody may be told that it failed, whose record may stand there; 2d8c34a did after 30 s."""
    runner = runner_in(world)
    runner.handle(command(1), 1)
    pass_check(runner, command(1))
    world.away = True
    for _ in range(3):
        with pytest.raises(Retryable):
            runner.act()
        assert runner.busy
        assert runner.open_commands() == {"c1"}

    world.away = False
    runner.act()
    receive(runner, 1, DriverRuns())
    assert world.answers == [("c1", "done")]
    assert [record.commanded_at for record in world.records] == [1]


def test_record_and_definition_are_said_in_one(world: World) -> None:
    running(world)
    assert (len(world.records), len(world.definitions)) == (1, 1)
    runner = runner_in(world)
    runner.adopt(world.records[-1])
    runner.act()
    assert (len(world.records), len(world.definitions)) == (1, 1), "so nothing was left unsaid"


def test_a_clock_that_is_set_back_makes_nothing_wait(world: World) -> None:
    """2d8c34a started the driver again an hour later."""
    runner = running(world)
    runner.receive(UID, 1, DriverEnded(exit_code=137))
    world.now -= 3_600_000
    world.waited += 500
    runner.tick()
    runner.act()
    assert world.started == [1, 2]


def test_a_removed_stage_is_closed_before_anything_is_said_of_it(world: World) -> None:
    """By a driver that knows all the rest; and again, if the runner dies in between."""
    runner = running(world)
    before = world.records[-1]
    change = command(2, manifest=WITHOUT_LOAD)
    carry_out(runner, change, 2)
    receive(runner, 1, DriverEnded(exit_code=0))
    assert world.records == [before]
    assert world.closing == [2]
    assert [stage.name for stage in world.closed] == ["load"]
    assert world.specs[-1] == before

    second = runner_in(world)
    second.adopt(before)
    second.act()
    carry_out(second, change, 2)
    receive(second, 3, DriverEnded(exit_code=0))
    receive(second, 4, DriverEnded(exit_code=0))
    assert [record.generation for record in world.records] == [1, 2]
    assert [[s.name for s in d.stages] for d in world.definitions] == [
        ["enrich", "load"],
        ["enrich"],
    ]


def test_what_blocks_a_driver_is_told_between_heartbeats(world: World) -> None:
    runner = running(world)
    receive(runner, 1, DriverBlocked(blocked_by=Obstacle.BLOCKED_BY_OPEN_TRANSACTION))
    runner.beat()
    receive(runner, 1, DriverBlocked(blocked_by=None))
    assert world.beats == ["blocked_by_open_transaction", "blocked_by_open_transaction", None]
