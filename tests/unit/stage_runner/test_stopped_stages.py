"""A stage that has stopped by itself stays so until somebody starts it, or changes it."""

from dataclasses import replace

import pytest

from unit.stage_runner.fakes import (
    EXAMPLE,
    UID,
    World,
    carry_out,
    command,
    receive,
    runner_in,
    running,
)
from waybill_shared.contract.commands import Start
from waybill_shared.contract.events import Command
from waybill_shared.contract.lifecycle import Phase, allowed_actions
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.stopped_stages import StoppedStage
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.attempts import CRASHES_MAX
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFailed,
    DriverFinished,
    DriverPaused,
    DriverRuns,
    DriverStagesStarted,
    DriverStageStopped,
)

ENRICH, LOAD = "enrich", "load"
CRASH = DriverEnded(exit_code=137)
OVER = (DriverFinished(), DriverEnded(exit_code=0))
ENDS = EXAMPLE.replace("processingTime: 1 second", "availableNow: true").replace(
    "inputs: [orders]", "inputs: [orders]\n    trigger: {availableNow: true}"
)


def error_of(stage: str) -> LifecycleError:
    return LifecycleError(
        domain="user",
        message=f"dead_letter_budget: stage {stage}: 150 record(s)",
        hint="mend the producer",
        stage=stage,
        retryable=False,
    )


def make_stop(stage: str, put_aside: int = 0) -> DriverStageStopped:
    return DriverStageStopped(error=error_of(stage), put_aside=put_aside)


@pytest.fixture
def runner(world: World) -> Runner:
    """A pipeline that runs, of which one stage has stopped by itself."""
    runner = running(world)
    receive(runner, 1, make_stop(LOAD, put_aside=100))
    return runner


def start_of(number: int, stage: str) -> Command:
    return replace(command(number, "start"), body=Start(stage=stage))


def wait(world: World, runner: Runner) -> None:
    """Until the next attempt is due."""
    world.waited += 10_000
    runner.tick()
    runner.act()


def takeover(world: World) -> Runner:
    runner = runner_in(world)
    runner.adopt(world.records[-1])
    runner.act()
    return runner


def stopped_names(world: World) -> list[str]:
    return [each.stage for each in world.records[-1].stopped_stages]


def test_the_record_says_since_when_a_stage_is_stopped_and_why(
    world: World, runner: Runner
) -> None:
    (found,) = world.records[-1].stopped_stages
    assert found == StoppedStage(
        stage=LOAD,
        since=1,
        at=world.now,
        run=1,
        message=error_of(LOAD).message,
        hint="mend the producer",
        put_aside=100,
    )
    (state,) = runner.states
    assert state.phase is Phase.RUNNING
    assert state.causes == {"stage_failed"}
    assert world.stopped == [], "its driver goes on"


def test_a_recovery_leaves_it_stopped(world: World, runner: Runner) -> None:
    receive(runner, 1, CRASH)
    wait(world, runner)
    assert [each.stage for each in world.claimed[-1].stopped_stages] == [LOAD]


def test_a_takeover_leaves_it_stopped(world: World, runner: Runner) -> None:
    takeover(world)
    assert [each.stage for each in world.claimed[-1].stopped_stages] == [LOAD]


@pytest.mark.parametrize("action", ["rescale", "pause", "stop"])
def test_a_command_about_the_pipeline_leaves_it_stopped(
    world: World, runner: Runner, action: str
) -> None:
    carry_out(runner, command(2, action), 2)
    assert stopped_names(world) == [LOAD]


def test_a_start_orders_its_driver_to_start_it_and_no_other(world: World, runner: Runner) -> None:
    carry_out(runner, command(2, "start"), 2)
    assert stopped_names(world) == [], "before the order"
    assert world.stage_starts == [(UID, (LOAD,), 1)]
    assert world.stopped == []
    assert world.answers[-1][0] == "c1", "it may not run yet"
    receive(runner, 1, DriverStagesStarted(order=1))
    assert world.answers[-1] == ("c2", "done")


def test_a_start_says_how_many_records_were_put_aside(world: World, runner: Runner) -> None:
    carry_out(runner, command(2, "start"), 2)
    receive(runner, 1, DriverStagesStarted(order=1))
    (warning,) = world.warnings[-1]
    assert "100 records" in warning


def test_a_start_of_one_stage_leaves_the_others(world: World, runner: Runner) -> None:
    receive(runner, 1, make_stop(ENRICH))
    carry_out(runner, start_of(2, ENRICH), 2)
    assert stopped_names(world) == [LOAD]
    assert world.stage_starts == [(UID, (ENRICH,), 1)]


def test_a_start_may_name_a_stage_as_it_was(world: World, runner: Runner) -> None:
    renamed = EXAMPLE.replace("  - name: load\n", "  - name: fill\n    was: load\n")
    carry_out(runner, command(2, manifest=renamed), 2)
    receive(runner, 1, DriverEnded(exit_code=0))
    receive(runner, world.claims, DriverRuns(), make_stop("fill"))
    carry_out(runner, start_of(3, LOAD), 3)
    assert world.stage_starts[-1][1] == ("fill",)
    receive(runner, world.claims, make_stop("fill"), DriverStagesStarted(order=1))
    assert world.answers[-1] == ("c3", "failed")


def test_a_start_of_a_stage_that_does_not_exist_is_refused(world: World, runner: Runner) -> None:
    carry_out(runner, start_of(2, "refunds"), 2)
    assert world.answers[-1] == ("c2", "failed")
    assert stopped_names(world) == [LOAD]


def test_a_stage_that_cannot_be_started_fails_the_command(world: World, runner: Runner) -> None:
    carry_out(runner, command(2, "start"), 2)
    receive(runner, 1, make_stop(LOAD))
    receive(runner, 1, DriverStagesStarted(order=1))
    assert world.answers[-1] == ("c2", "failed")
    assert stopped_names(world) == [LOAD]


def test_the_next_run_starts_it_if_the_driver_dies_before(world: World, runner: Runner) -> None:
    carry_out(runner, command(2, "start"), 2)
    receive(runner, 1, CRASH)
    wait(world, runner)
    assert world.claimed[-1].stopped_stages == ()
    receive(runner, world.claims, DriverRuns())
    assert world.answers[-1] == ("c2", "done")


def test_a_start_of_a_paused_pipeline_leaves_it_paused(world: World, runner: Runner) -> None:
    carry_out(runner, command(2, "pause"), 2)
    receive(runner, 1, DriverPaused(order=1))
    carry_out(runner, command(3, "start"), 3)
    assert world.records[-1].desired == "paused"
    receive(runner, 1, DriverStagesStarted(order=1))
    assert world.answers[-1] == ("c3", "done")


def test_a_pipeline_without_a_stage_fails_and_a_takeover_starts_nothing(
    world: World, runner: Runner
) -> None:
    receive(runner, 1, make_stop(ENRICH))
    receive(runner, 1, DriverFailed(problems=(), error=error_of(ENRICH)))
    receive(runner, 1, DriverEnded(exit_code=1))
    assert world.phases[-1] == "Failed"
    claims, later = world.claims, takeover(world)
    assert world.claims == claims
    assert world.phases[-1] == "Failed"
    carry_out(later, command(2, "start"), 2)
    assert world.claims == claims + 1
    assert stopped_names(world) == []


def test_a_failure_in_a_run_that_ends_for_a_change_stops_nothing(
    world: World, runner: Runner
) -> None:
    """The change may be what mends it."""
    changed = EXAMPLE.replace("processingTime: 1 second", "processingTime: 2 seconds", 1)
    carry_out(runner, command(2, manifest=changed), 2)
    receive(runner, 1, make_stop(LOAD))
    receive(runner, 1, DriverEnded(exit_code=0))
    assert world.claimed[-1].stopped_stages == ()


def test_a_stop_is_answered_though_a_stage_is_being_started(world: World, runner: Runner) -> None:
    carry_out(runner, command(2, "start"), 2)
    carry_out(runner, command(3, "stop"), 3)
    receive(runner, 1, DriverEnded(exit_code=0))
    assert world.answers[-1] == ("c3", "done")


def crash(runner: Runner, world: World, stage: str | None) -> None:
    error = replace(error_of(LOAD), stage=stage, domain="internal", retryable=True)
    receive(runner, world.claims, DriverFailed(problems=(), error=error), CRASH)


def test_a_stage_at_which_each_attempt_crashes_is_stopped(world: World) -> None:
    runner = running(world)
    for _ in range(CRASHES_MAX):
        crash(runner, world, LOAD)
        assert stopped_names(world) == []
        world.waited += 60_000
        runner.tick()
        runner.act()
    crash(runner, world, LOAD)
    assert stopped_names(world) == [LOAD]
    wait(world, runner)
    assert [each.stage for each in world.claimed[-1].stopped_stages] == [LOAD]
    receive(runner, world.claims, DriverRuns())
    assert world.phases[-1] == "Running"


@pytest.mark.parametrize("other", [ENRICH, None])
def test_crashes_that_name_several_stages_are_the_pipelines(
    world: World, other: str | None
) -> None:
    runner = running(world)
    for number in range(CRASHES_MAX):
        crash(runner, world, LOAD if number else other)
        world.waited += 60_000
        runner.tick()
        runner.act()
    crash(runner, world, LOAD)
    assert (stopped_names(world), world.phases[-1]) == ([], "Failed")


@pytest.fixture
def ending(world: World) -> Runner:
    """A pipeline that ends by itself, of which one stage has stopped by itself."""
    runner = running(world, ENDS)
    receive(runner, 1, make_stop(ENRICH))
    return runner


def test_a_run_that_has_read_what_the_other_stages_read_fails(world: World, ending: Runner) -> None:
    receive(ending, 1, DriverFinished())
    assert world.phases[-1] == "Finishing", "its driver lives"
    receive(ending, 1, DriverEnded(exit_code=0))
    (state,) = ending.states
    assert (state.phase, state.record.finished) == (Phase.FAILED, False)
    assert state.error == error_of(ENRICH)
    assert stopped_names(world) == [ENRICH]


def test_a_start_begins_the_next_run_with_every_stage(world: World, ending: Runner) -> None:
    receive(ending, 1, *OVER)
    carry_out(ending, command(2, "start"), 2)
    assert world.claimed[-1].stopped_stages == ()
    receive(ending, world.claims, DriverRuns(), *OVER)
    assert world.phases[-1] == "Finished"


def test_a_start_of_a_stage_that_comes_while_the_others_read_is_for_the_next_run(
    world: World, ending: Runner
) -> None:
    """The stages after it may have ended by then."""
    carry_out(ending, start_of(2, ENRICH), 2)
    assert world.stage_starts == []
    assert world.answers[-1] == ("c2", "done")
    receive(ending, 1, *OVER)
    assert world.claimed[-1].stopped_stages == ()
    receive(ending, world.claims, DriverRuns(), *OVER)
    assert world.phases[-1] == "Finished"


def test_a_restart_starts_every_stage(world: World, runner: Runner) -> None:
    carry_out(runner, command(2, "restart"), 2)
    assert stopped_names(world) == []


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ("amount * 0.2 AS tax", "amount * 0.3 AS tax", []),  # of the stage before it
        ("processingTime: 1 second", "processingTime: 2 seconds", []),
        ("# Orders come", "# All orders come", [LOAD]),
    ],
)
def test_a_change_starts_what_it_changes(
    world: World, runner: Runner, before: str, after: str, left: list[str]
) -> None:
    changed = EXAMPLE.replace(before, after, 1)
    assert changed != EXAMPLE
    carry_out(runner, command(2, manifest=changed), 2)
    assert stopped_names(world) == left


def test_a_change_of_a_later_stage_leaves_it_stopped(world: World) -> None:
    runner = running(world)
    receive(runner, 1, make_stop(ENRICH))
    changed = EXAMPLE.replace("processingTime: 1 second", "processingTime: 2 seconds", 1)
    carry_out(runner, command(2, manifest=changed), 2)
    assert stopped_names(world) == [ENRICH]


def test_a_start_is_allowed_where_a_stage_is_stopped() -> None:
    assert "start" not in allowed_actions("Running", "running")
    assert "start" in allowed_actions("Running", "running", has_stopped=True)
