"""A start is answered by what became of the stages that it names, and no other command is."""

import pytest

from unit.stage_runner.fakes import EXAMPLE, World, carry_out, command, receive, running
from unit.stage_runner.test_stopped_stages import (
    ENRICH,
    LOAD,
    make_stop,
    start_of,
    stopped_names,
)
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverRuns,
    DriverStagesStarted,
)


@pytest.fixture
def runner(world: World) -> Runner:
    """A pipeline that runs, of which one stage has stopped by itself."""
    runner = running(world)
    receive(runner, 1, make_stop(LOAD))
    return runner


def test_a_stage_that_cannot_be_started_fails_no_other_command(
    world: World, runner: Runner
) -> None:
    receive(runner, 1, make_stop(ENRICH))
    carry_out(runner, start_of(2, ENRICH), 2)
    carry_out(runner, start_of(3, LOAD), 3)
    receive(runner, 1, make_stop(LOAD))
    receive(runner, 1, DriverStagesStarted(order=1), DriverStagesStarted(order=2))
    assert sorted(world.answers[-2:]) == [("c2", "done"), ("c3", "failed")]


def test_an_apply_is_done_though_a_start_that_it_supersedes_fails(
    world: World, runner: Runner
) -> None:
    carry_out(runner, command(2, "start"), 2)
    carry_out(runner, command(3, manifest=EXAMPLE), 3)
    receive(runner, 1, make_stop(LOAD))
    receive(runner, 1, DriverStagesStarted(order=1))
    assert world.answers[-1] == ("c3", "done")


def test_a_start_of_a_stage_fails_if_it_stops_before_the_next_run_runs(
    world: World, runner: Runner
) -> None:
    carry_out(runner, command(2, "stop"), 2)
    receive(runner, 1, DriverEnded(exit_code=0))
    carry_out(runner, start_of(3, LOAD), 3)
    receive(runner, world.claims, make_stop(LOAD), DriverRuns())
    assert world.answers[-1] == ("c3", "failed")
    assert world.phases[-1] == "Running"


def test_a_start_of_a_stage_that_goes_on_says_so(world: World, runner: Runner) -> None:
    carry_out(runner, start_of(2, ENRICH), 2)
    assert world.answers[-1] == ("c2", "done")
    (warning,) = world.warnings[-1]
    assert "nothing was started" in warning
    assert LOAD in warning
    assert stopped_names(world) == [LOAD]
