"""What a runner says and writes down when a pipeline is deleted, with fakes for all around it."""

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
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Definition, PipelineRecord
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverFailed

ERROR = LifecycleError(
    domain="user", message="the table is not ours", hint="", stage=None, retryable=False
)


def final(world: World) -> list[Definition]:
    return [definition for definition in world.definitions if definition.deleted]


def deleted_record(*, closed: bool) -> PipelineRecord:
    elsewhere = World()
    running(elsewhere)
    record = elsewhere.records[-1]
    return replace(record, desired="deleted", commanded_at=5, closed=closed)


def test_the_last_definition_comes_when_the_sinks_were_asked(world: World) -> None:
    runner = running(world)
    carry_out(runner, command(2, "delete"), 2)
    receive(runner, 1, DriverEnded(exit_code=137))
    assert (world.started, world.closing) == ([1], [2])
    assert final(world) == []

    receive(runner, 2, DriverEnded(exit_code=0))

    assert len(final(world)) == 1
    assert [record.closed for record in world.records] == [False, False, True]
    assert world.answers[-1] == ("c2", "done")
    runner.beat()
    assert world.beats == [], "nothing is told of it any more"


def test_a_stopped_pipeline_is_closed_too(world: World) -> None:
    runner = stopped(world)
    carry_out(runner, command(4, "delete"), 4)
    assert (world.started, world.closing) == ([1], [2])
    assert world.phases[-2:] == ["Stopped", "Stopping"]


def test_what_was_not_closed_is_closed_after_a_restart_of_the_runner(world: World) -> None:
    runner = runner_in(world)
    runner.adopt(deleted_record(closed=False))
    runner.act()
    assert world.closing == [1]
    assert world.definitions == []

    carry_out(runner, command(5, "delete"), 5)
    receive(runner, 1, DriverEnded(exit_code=0))

    assert len(final(world)) == 1
    assert world.answers == [("c5", "done")]


def test_what_is_closed_stays_so(world: World) -> None:
    runner = runner_in(world)
    runner.adopt(deleted_record(closed=True))
    runner.tick()
    runner.act()
    assert (world.closing, world.definitions, world.records) == ([], [], [])

    carry_out(runner, command(5, "delete"), 5)
    assert world.answers == [("c5", "done")], "it may have died before the answer"


def test_a_command_for_a_deleted_pipeline_makes_no_new_one(world: World) -> None:
    runner = runner_in(world)
    runner.adopt(deleted_record(closed=True))
    carry_out(runner, command(9), 9)
    carry_out(runner, command(4, "stop"), 4)
    assert world.answers == [("c9", "failed")]
    assert world.started == []


def test_nothing_but_a_deletion_follows_a_deletion(world: World) -> None:
    runner = running(world)
    carry_out(runner, command(2, "delete"), 2)
    carry_out(runner, command(3, "restart"), 3)
    carry_out(runner, command(4, "start"), 4)
    assert world.answers[-2:] == [("c3", "failed"), ("c4", "failed")]
    assert world.records[-1].desired == "deleted"


def test_a_deletion_ends_even_if_its_sinks_cannot_be_asked(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    runner = stopped(world)
    carry_out(runner, command(4, "delete"), 4)
    receive(runner, 2, DriverFailed(problems=(), error=ERROR), DriverEnded(exit_code=1))
    assert len(final(world)) == 1
    assert world.answers[-1] == ("c4", "done")
    (record,) = [r for r in caplog.records if r.levelname == "ERROR"]
    assert record.__dict__["reason"] == "the table is not ours"


def test_a_deletion_that_kafka_did_not_take_is_said_again(world: World) -> None:
    runner = stopped(world)
    carry_out(runner, command(4, "delete"), 4)
    runner.receive(UID, 2, DriverEnded(exit_code=0))
    world.away = True
    with pytest.raises(Retryable):
        runner.act()
    assert ("c4", "done") not in world.answers

    world.away = False
    runner.act()
    assert world.records[-1].closed
    assert world.answers[-1] == ("c4", "done")
