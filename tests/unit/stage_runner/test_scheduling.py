"""A run that waits in line for a driver is told so, and what a person waits for goes first."""

import pytest

from unit.stage_runner.fakes import UID, World, carry_out, command, receive, runner_in, running
from waybill_shared.contract.lifecycle import PHASES, Phase
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverRuns, RunQueued
from waybill_stage_runner.core.pipelines.states import PipelineState

STARTING_MS = PHASES[Phase.STARTING].limit_ms or 0


@pytest.fixture
def waiting(world: World) -> Runner:
    """For a driver that others get first."""
    runner = runner_in(world)
    carry_out(runner, command(1), 1)
    waits(runner, 3)
    return runner


def waits(runner: Runner, place: int) -> None:
    receive(runner, 1, RunQueued(queue_position=place))


def state(runner: Runner) -> PipelineState:
    (state,) = runner.states
    return state


def test_a_run_in_line_is_scheduling_with_its_place_as_the_reason(
    world: World, waiting: Runner
) -> None:
    assert world.phases == ["Starting", "Scheduling"]
    assert state(waiting).reason == "3. in the line for a driver"
    told = len(world.beats)
    waits(waiting, 1)
    assert state(waiting).reason == "1. in the line for a driver"
    assert len(world.beats) == told + 1, "nobody hears of the new place"
    assert world.phases == ["Starting", "Scheduling"]
    assert waiting.open_commands() == {"c1"}


def test_a_run_whose_turn_has_come_is_starting_and_then_runs(world: World, waiting: Runner) -> None:
    waits(waiting, 0)
    assert state(waiting).reason == "it has a driver"
    receive(waiting, 1, DriverRuns())
    assert world.phases == ["Starting", "Scheduling", "Starting", "Running"]
    assert world.answers == [("c1", "done")]


def test_waiting_in_line_is_no_slow_start(world: World, waiting: Runner) -> None:
    """The time of a start begins when its turn comes."""
    world.waited += 10 * STARTING_MS
    waiting.tick()
    waits(waiting, 0)
    world.waited += STARTING_MS - 1
    waiting.tick()
    waiting.act()
    assert world.stopped == []
    world.waited += 1
    waiting.tick()
    waiting.act()
    assert world.stopped == [UID]


def test_a_stop_in_line_ends_in_stopped(world: World, waiting: Runner) -> None:
    carry_out(waiting, command(2, "stop"), 2)
    waits(waiting, 1)
    assert world.stopped == [UID]
    receive(waiting, 1, DriverEnded(exit_code=0))
    assert world.phases == ["Starting", "Scheduling", "CheckpointStopping", "Stopped"]
    assert world.answers == [("c1", "failed"), ("c2", "done")]


def test_a_driver_that_fails_to_start_for_one_in_line_is_tried_again(
    world: World, waiting: Runner
) -> None:
    receive(waiting, 1, DriverEnded(exit_code=1))
    assert world.phases[-1] == "Recovering"
    world.waited += 500
    waiting.tick()
    waiting.act()
    assert world.started == [1, 2]


def test_one_that_runs_is_in_no_line(world: World) -> None:
    runner = running(world)
    waits(runner, 1)
    waits(runner, 0)
    assert world.phases == ["Starting", "Running"]


def test_what_a_person_starts_is_urgent_and_what_is_resumed_is_not(world: World) -> None:
    runner = running(world)
    runner.receive(UID, 1, DriverEnded(exit_code=1))
    world.waited += 500
    runner.tick()
    runner.act()
    assert world.urgent == [True, False], "nobody waits for a driver that crashed"

    second = runner_in(world)
    second.adopt(world.records[-1])
    second.act()
    assert world.urgent == [True, False, False]

    carry_out(second, command(2, "restart"), 2)
    receive(second, 3, DriverEnded(exit_code=0))
    assert world.urgent == [True, False, False, True]
