"""What a command is told that a later one has overtaken."""

from dataclasses import replace

import pytest

from builders import make_record, make_sink, make_stage
from unit.stage_runner.decisions import Decisions
from unit.stage_runner.fakes import (
    UID,
    World,
    carry_out,
    command,
    receive,
    runner_in,
    running,
)
from waybill_shared.contract.commands import Stop, StopMode
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Command
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverRuns

RECORD = make_record(stages=(make_stage(sinks=(make_sink("lake"), make_sink("out"))),))
CHANGED = replace(RECORD, generation=2)
AGAIN = replace(RECORD, generation=3)
WITHOUT_OUT = replace(AGAIN, stages=(make_stage(sinks=(make_sink("lake"),)),))


class Overtaking(Decisions):
    def told(self) -> Problem:
        """What the first command is."""
        (answer,) = (each for each in self.actions if isinstance(each, Answer))
        assert (answer.command.id, answer.state) == ("c1", "failed")
        return answer.errors[0]


@pytest.fixture
def pipeline() -> Overtaking:
    pipeline = Overtaking(RECORD)
    pipeline.want(RECORD)
    pipeline.on(DriverRuns())
    return pipeline


def test_a_command_that_changes_nothing_is_told_no_more(pipeline: Overtaking) -> None:
    pipeline.want(CHANGED, "c1", "start")
    pipeline.want(AGAIN, "c2", "apply")
    assert pipeline.told() == Problem(message="superseded by a later running command")


def test_a_change_before_a_command_that_makes_none_is_in_force(pipeline: Overtaking) -> None:
    pipeline.want(CHANGED, "c1", "apply")
    pipeline.want(CHANGED, "c2", "start")
    assert pipeline.told().hint == "its change is in force: generation 2"


def test_a_change_before_another_one_is_told_which_is_in_force(pipeline: Overtaking) -> None:
    pipeline.want(CHANGED, "c1", "apply")
    pipeline.want(AGAIN, "c2", "apply")
    assert pipeline.told().hint == "its change was generation 2; generation 3 is in force now"


def test_a_change_before_a_removal_is_in_force_until_that_is(pipeline: Overtaking) -> None:
    pipeline.want(CHANGED, "c1", "apply")
    pipeline.want(WITHOUT_OUT, "c2", "apply")
    assert pipeline.told().hint == (
        "its change is in force: generation 2; generation 3 follows when what it removes is closed"
    )
    assert pipeline.state.record == replace(CHANGED, run=1)


def stop(number: int, mode: StopMode) -> Command:
    return replace(command(number, "stop"), body=Stop(mode=mode))


@pytest.mark.parametrize("mode", StopMode)
def test_two_stops_in_the_same_mode_are_both_done(world: World, mode: StopMode) -> None:
    runner = running(world)
    carry_out(runner, stop(2, mode), 2)
    carry_out(runner, stop(3, mode), 3)
    assert world.stopped == [UID], "the run gets one order"
    receive(runner, 1, DriverEnded(exit_code=0))
    assert world.answers[1:] == [("c2", "done"), ("c3", "done")]


def test_a_stop_in_another_mode_supersedes_the_first(world: World) -> None:
    runner = running(world)
    carry_out(runner, stop(2, StopMode.CHECKPOINT), 2)
    carry_out(runner, stop(3, StopMode.FORCE), 3)
    receive(runner, 1, DriverEnded(exit_code=137))
    assert world.answers[1:] == [("c2", "failed"), ("c3", "done")]


def test_two_stops_are_both_answered_by_the_runner_that_takes_over(world: World) -> None:
    runner = running(world)
    carry_out(runner, stop(2, StopMode.DRAIN), 2)
    carry_out(runner, stop(3, StopMode.DRAIN), 3)
    after = World()
    runner = runner_in(after)
    runner.adopt(world.records[-1])
    runner.act()
    for number in (2, 3):
        carry_out(runner, stop(number, StopMode.DRAIN), number)
    carry_out(runner, command(1, "start"), 1)
    assert after.answers == [("c2", "done"), ("c3", "done")], "a start before is no stop"
    assert after.records == []
