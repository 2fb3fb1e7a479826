"""How a run that has read all that there was ends, and what starts the next one."""

from dataclasses import replace

import pytest

from unit.stage_runner.decisions import Decisions
from unit.stage_runner.fakes import (
    EXAMPLE,
    World,
    carry_out,
    command,
    receive,
    runner_in,
    running,
)
from waybill_shared.contract.commands import Start, StopMode
from waybill_shared.contract.lifecycle import PHASES, Phase
from waybill_shared.contract.problems import Slug
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.actions import (
    PipelineAction,
    ReportPhase,
    StartDriver,
    StopDriver,
    WriteRecord,
)
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFinished,
    DriverPaused,
    DriverRuns,
)
from waybill_stage_runner.core.pipelines.states import PipelineState

CHANGED = EXAMPLE.replace("processingTime: 1 second", "processingTime: 2 seconds", 1)
WITHOUT_LOAD = EXAMPLE[: EXAMPLE.index("  - name: load")]
OVER = (DriverFinished(), DriverEnded(exit_code=0))


@pytest.fixture
def finishing(running: Decisions) -> Decisions:
    running.on(DriverFinished())
    return running


def finished(world: World) -> Runner:
    runner = running(world)
    receive(runner, 1, *OVER)
    return runner


def starts(actions: tuple[PipelineAction, ...]) -> bool:
    return any(isinstance(action, StartDriver) for action in actions)


@pytest.mark.parametrize("exit_code", [0, 137])
def test_a_run_has_finished_when_its_driver_has_ended_however(
    finishing: Decisions, exit_code: int
) -> None:
    assert finishing.state.phase is Phase.FINISHING
    ended = finishing.on(DriverEnded(exit_code=exit_code))
    assert ended == (WriteRecord(), ReportPhase(phase_from=Phase.FINISHING))
    assert str(finishing.state.phase) == "Finished"
    assert finishing.state.record.finished
    assert finishing.state.error is None


def test_a_run_that_ends_without_that_report_has_not_finished(running: Decisions) -> None:
    running.on(DriverEnded(exit_code=0))
    assert (running.state.phase, running.state.record.finished) == (Phase.RECOVERING, False)


def test_a_driver_that_does_not_end_is_killed(finishing: Decisions) -> None:
    limit_ms = PHASES[Phase.FINISHING].limit_ms
    assert limit_ms is not None
    assert finishing.after(limit_ms - 1) == ()
    assert finishing.after(1) == (StopDriver(mode=StopMode.FORCE),)
    finishing.on(DriverEnded(exit_code=137))
    assert finishing.state.phase is Phase.FINISHED


def test_failures_of_before_count_no_more(running: Decisions) -> None:
    running.state = replace(running.state, attempt=3, crashes=3)
    running.on(*OVER)
    assert (running.state.attempt, running.state.crashes) == (0, 0)


def test_nothing_starts_it_again_by_itself(finishing: Decisions) -> None:
    finishing.on(DriverEnded(exit_code=0))
    assert finishing.after(10**9) == ()


def test_a_runner_that_takes_over_does_not_start_it(world: World) -> None:
    finished(world)
    taken_over = World()
    runner = runner_in(taken_over)
    runner.adopt(world.records[-1])
    runner.act()
    assert (taken_over.started, taken_over.phases) == ([], ["Finished"])


@pytest.mark.parametrize("action", ["start", "restart"])
def test_a_command_starts_the_next_run(world: World, action: str) -> None:
    runner = finished(world)
    carry_out(runner, command(2, action), 2)
    assert (world.started, world.phases[-1]) == ([1, 2], "Starting")
    assert not world.records[-1].finished
    receive(runner, 2, DriverRuns(), *OVER)
    assert world.answers[-1] == ("c2", "done")
    assert (world.phases[-1], world.records[-1].finished) == ("Finished", True)


def test_a_run_that_starts_paused_is_to_run_when_it_is_resumed(world: World) -> None:
    runner = finished(world)
    paused = replace(command(2, "start"), body=Start(paused=True))
    carry_out(runner, paused, 2)
    assert (world.started, world.specs[-1].desired) == ([1, 2], "paused")
    receive(runner, 2, DriverPaused(order=0))
    carry_out(runner, command(3, "resume"), 3)
    assert not world.records[-1].finished


@pytest.mark.parametrize("action", ["apply", "resume"])
def test_what_asks_for_no_run_starts_none(world: World, action: str) -> None:
    runner = finished(world)
    carry_out(runner, command(2, action), 2)
    assert world.answers[-1] == ("c2", "done")
    assert (world.started, world.phases[-1]) == ([1], "Finished")
    assert world.records[-1].finished


def test_a_change_runs_in_its_new_generation(world: World) -> None:
    runner = finished(world)
    carry_out(runner, command(2, manifest=CHANGED), 2)
    assert (world.started, world.specs[-1].generation) == ([1, 2], 2)


def test_a_stop_lets_the_next_apply_start_it(world: World) -> None:
    runner = finished(world)
    carry_out(runner, command(2, "stop"), 2)
    assert world.answers[-1] == ("c2", "done")
    assert (world.started, world.phases[-1]) == ([1], "Stopped")
    carry_out(runner, command(3), 3)
    assert world.started == [1, 2]


def test_a_finished_pipeline_is_deleted_as_any_other(world: World) -> None:
    runner = finished(world)
    carry_out(runner, command(2, "delete"), 2)
    receive(runner, 2, DriverEnded(exit_code=0))
    assert world.answers[-1] == ("c2", "done")


def test_a_finished_pipeline_is_not_paused(world: World) -> None:
    runner = finished(world)
    carry_out(runner, command(2, "pause"), 2)
    assert world.reasons[-1] is Slug.NOT_ALLOWED_NOW


def test_a_refused_change_leaves_it_finished(world: World) -> None:
    """Its sink cannot be closed, because the driver crashes each time."""
    runner = finished(world)
    carry_out(runner, command(2, manifest=WITHOUT_LOAD), 2)
    claim = 2
    while world.phases[-1] == "Stopping":
        receive(runner, claim, DriverEnded(exit_code=137))
        world.waited += 60_000
        runner.tick()
        runner.act()
        claim = world.claims
    assert world.answers[-1] == ("c2", "failed")
    assert (world.phases[-1], world.started) == ("Finished", [1])


def test_a_start_that_comes_while_it_finishes_is_the_next_run(finishing: Decisions) -> None:
    finishing.want(finishing.state.record, "c2")
    assert finishing.state.phase is Phase.RESTARTING
    assert finishing.answers() == [], "the run that ends may not have read what came just before"
    assert starts(finishing.on(DriverEnded(exit_code=0)))
    finishing.on(DriverRuns())
    assert finishing.answers() == [("c2", "done")]


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.RUNNING])
def test_a_start_that_comes_while_it_reads_is_the_run_after_it(
    running: Decisions, phase: Phase
) -> None:
    """What the run reads may be fixed, and its stages wait for something else."""
    running.state = replace(running.state, phase=phase)
    running.want(running.state.record, "c2")
    assert running.answers() == ([("c2", "done")] if phase is Phase.RUNNING else [])
    running.on(DriverRuns(), DriverFinished())
    assert running.state.phase is Phase.RESTARTING, "nobody who waits for Finished sees that one"
    assert starts(running.on(DriverEnded(exit_code=0)))
    running.on(DriverRuns(), *OVER)
    assert (running.state.phase, running.state.record.finished) == (Phase.FINISHED, True)


@pytest.mark.parametrize("action", ["start", "apply"])
def test_a_start_is_no_more_than_one_run_after_it(running: Decisions, action: str) -> None:
    """An apply is none, and a run that is tried again reads what has come by then."""
    for name in ("c2", "c3"):
        running.want(running.state.record, name, action)
    running.on(DriverEnded(exit_code=1))
    running.after(10_000)
    assert running.state.phase is Phase.STARTING
    running.on(DriverRuns(), *OVER)
    assert str(running.state.phase) == "Finished"


def test_an_apply_without_a_change_while_it_finishes_starts_nothing(finishing: Decisions) -> None:
    finishing.want(finishing.state.record, "c2", "apply")
    assert not starts(finishing.on(DriverEnded(exit_code=0)))
    assert finishing.answers() == [("c2", "done")]


@pytest.mark.parametrize("desired", ["stopped", "deleted"])
def test_a_run_that_finishes_while_it_is_stopped_has_been_stopped(
    running: Decisions, desired: str
) -> None:
    record = replace(running.state.record, desired=desired)  # type: ignore[arg-type]
    running.want(record, "c2", "stop")
    running.on(*OVER)
    assert running.state.phase is (Phase.STOPPED if desired == "stopped" else Phase.STOPPING)
    assert not running.state.record.finished


def test_a_run_that_finishes_when_it_is_to_be_paused_is_followed_by_a_paused_one(
    running: Decisions,
) -> None:
    running.want(replace(running.state.record, desired="paused"), "c2", "pause")
    assert starts(running.on(*OVER))
    assert (running.state.phase, running.state.record.desired) == (Phase.STARTING, "paused")


def test_a_report_that_comes_too_late_changes_nothing(running: Decisions) -> None:
    before = PipelineState(record=running.state.record, phase=Phase.RECOVERING)
    running.state = before
    assert running.on(DriverFinished()) == ()
    assert running.state == before


def test_a_run_that_finishes_is_not_killed_because_an_earlier_stop_was_forced(
    running: Decisions,
) -> None:
    running.state = replace(running.state, stop_mode=StopMode.FORCE)
    running.want(replace(running.state.record, desired="paused"), "c2", "pause")
    assert StopDriver(mode=StopMode.CHECKPOINT) in running.on(DriverFinished())


def test_a_run_with_a_next_one_is_not_killed_either(running: Decisions) -> None:
    running.state = replace(running.state, stop_mode=StopMode.FORCE, runs_again=True)
    assert StopDriver(mode=StopMode.CHECKPOINT) in running.on(DriverFinished())
