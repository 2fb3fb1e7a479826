"""What a rescale does in each phase, and for how long its number counts."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from message_builders import make_command
from unit.stage_runner.decisions import Decisions
from unit.stage_runner.fakes import (
    EXAMPLE,
    World,
    carry_out,
    command,
    receive,
)
from waybill_shared.contract.commands import STOP_MODES, Rescale, Restart, Stop, StopMode
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.lifecycle import WITH_DRIVER, Phase
from waybill_shared.contract.problems import Slug
from waybill_stage_runner.app.admission import Admission
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.actions import (
    Answer,
    PipelineAction,
    StartDriver,
    StopDriver,
    WriteRecord,
)
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFinished,
    DriverPaused,
    DriverRuns,
    RecordRequested,
    RunQueued,
)
from waybill_stage_runner.core.pipelines.parallelism import (
    CoreLimits,
    parallelism_of,
    rescale_record,
)
from waybill_stage_runner.core.pipelines.stopping import NOT_REACHED

LIMITS = CoreLimits(usual=2, most=4)
CHECKPOINT = StopDriver(mode=StopMode.CHECKPOINT)
FOUR = EXAMPLE.replace("version: 1", "version: 1\nparallelism: 4", 1)
CHANGED = EXAMPLE.replace("processingTime: 1 second", "processingTime: 2 seconds", 1)


@pytest.fixture
def running(running: Decisions) -> Decisions:
    running.state = replace(running.state, limits=LIMITS)
    return running


def ask(
    pipeline: Decisions, parallelism: int = 4, id: str = "c2", *, written: bool = False
) -> tuple[PipelineAction, ...]:
    record = rescale_record(pipeline.state.record, parallelism, "ada", pipeline.now)
    asked = replace(make_command("rescale", id=id), body=Rescale(parallelism=parallelism))
    return pipeline.on(RecordRequested(record=record, command=asked, written=written))


def want(pipeline: Decisions, body: Restart | Stop, id: str, **changed: object) -> None:
    record = replace(pipeline.state.record, **changed)  # type: ignore[arg-type]
    asked = replace(make_command("stop", id=id), body=body)
    pipeline.on(RecordRequested(record=record, command=asked))


def test_batch_ends_then_a_run_of_that_size_begins_and_the_command_is_done(
    running: Decisions,
) -> None:
    before = running.state.record
    made = ask(running)
    assert made[0] == WriteRecord(), "what is wanted is written first"
    assert CHECKPOINT in made
    assert (running.state.phase, running.state.reason) == (Phase.RESCALING, "rescaled from 2 to 4")
    assert running.state.actor == "ada"
    assert StartDriver() in running.on(DriverEnded(exit_code=0))
    assert (running.state.phase, running.state.reason) == (Phase.STARTING, "rescaled")
    running.on(DriverRuns())
    assert running.answers() == [("c2", "done")]
    after = running.state.record
    assert (after.run, after.generation) == (before.run + 1, before.generation)
    assert running.state.parallelism == 4


def into(phase: Phase, pipeline: Decisions) -> Decisions:
    """Let a pipeline that runs get into a phase in which it has a driver, or waits for one."""
    record = pipeline.state.record
    match phase:
        case Phase.PAUSED:
            pipeline.want(replace(record, desired="paused"), "c0", "pause")
            pipeline.on(DriverPaused(order=1))
        case Phase.SCHEDULING | Phase.STARTING:
            pipeline.want(replace(record, generation=record.generation + 1))
            pipeline.on(DriverEnded(exit_code=0))
            if phase is Phase.SCHEDULING:
                pipeline.on(RunQueued(queue_position=1))
    assert pipeline.state.phase is phase
    return pipeline


@pytest.mark.parametrize("phase", sorted(WITH_DRIVER))
def test_where_a_driver_is_there_or_waited_for_its_run_ends(
    running: Decisions, phase: Phase
) -> None:
    assert CHECKPOINT in ask(into(phase, running))
    assert running.state.phase is Phase.RESCALING
    running.on(DriverEnded(exit_code=0))
    assert (running.state.phase, running.state.parallelism) == (Phase.STARTING, 4)


def test_paused_pipeline_stays_paused(running: Decisions) -> None:
    ask(into(Phase.PAUSED, running))
    running.on(DriverEnded(exit_code=0))
    assert running.state.record.desired == "paused"
    running.on(DriverPaused(order=0))
    assert (running.state.phase, running.answers()) == (Phase.PAUSED, [("c2", "done")])


def test_pipeline_that_recovers_starts_at_once_with_the_new_size(running: Decisions) -> None:
    running.on(DriverEnded(exit_code=137))
    assert running.state.phase is Phase.RECOVERING
    assert StartDriver() in ask(running)
    assert (running.state.phase, running.state.parallelism) == (Phase.STARTING, 4)


def stopped(pipeline: Decisions) -> None:
    want(pipeline, Stop(), "c0", desired="stopped")
    pipeline.on(DriverEnded(exit_code=0))


def finished(pipeline: Decisions) -> None:
    pipeline.on(DriverFinished(), DriverEnded(exit_code=0))


def failed(pipeline: Decisions) -> None:
    pipeline.state = replace(pipeline.state, phase=Phase.FAILED, driver=False)


@pytest.mark.parametrize("rest", [stopped, finished, failed])
def test_where_no_driver_lives_the_number_is_for_the_next_start(
    running: Decisions, rest: Callable[[Decisions], None]
) -> None:
    rest(running)
    phase, finishes = running.state.phase, running.state.record.finished
    made = ask(running)
    assert made[0] == WriteRecord()
    assert running.answers() == [("c2", "done")]
    assert StartDriver() not in made
    assert (running.state.phase, running.state.record.finished) == (phase, finishes)
    running.want(replace(running.state.record, desired="running", finished=False), "c3", "start")
    assert running.state.parallelism == 4


def test_same_number_changes_nothing(running: Decisions) -> None:
    ask(running, 2)
    assert (running.state.phase, running.answers()) == (Phase.RUNNING, [("c2", "done")])


def test_later_number_counts_and_the_earlier_command_is_superseded(running: Decisions) -> None:
    ask(running, 4)
    ask(running, 3, "c3")
    assert running.answers() == [("c2", "failed")]
    assert CHECKPOINT not in running.actions, "its driver ends already"
    assert running.state.phase is Phase.RESCALING
    running.on(DriverEnded(exit_code=0))
    assert running.state.parallelism == 3


def test_same_number_joins_the_rescale_that_goes_on(running: Decisions) -> None:
    ask(running, 4)
    ask(running, 4, "c3")
    running.on(DriverEnded(exit_code=0), DriverRuns())
    assert running.answers() == [("c2", "done"), ("c3", "done")]


def test_number_that_is_taken_back_while_the_batch_ends_is_done_by_the_next_run(
    running: Decisions,
) -> None:
    ask(running, 4)
    ask(running, 2, "c3")
    running.on(DriverEnded(exit_code=0), DriverRuns())
    assert (running.answers(), running.state.parallelism) == ([("c3", "done")], 2)


@pytest.mark.parametrize(
    ("mode", "ordered", "phase"),
    [
        (StopMode.CHECKPOINT, [], Phase.CHECKPOINT_STOPPING),
        (StopMode.FORCE, [StopMode.FORCE], Phase.STOPPING),
    ],
)
def test_stop_overtakes_a_rescale(
    running: Decisions, mode: StopMode, ordered: list[StopMode], phase: Phase
) -> None:
    """Its driver is told to end only once, or more strongly."""
    ask(running)
    want(running, Stop(mode=mode), "c3", desired="stopped")
    orders = [made.mode for made in running.actions if isinstance(made, StopDriver)]
    assert (running.state.phase, orders) == (phase, ordered)
    running.on(DriverEnded(exit_code=0))
    assert (running.state.phase, running.answers()) == (Phase.STOPPED, [("c3", "done")])


def test_stop_does_not_weaken_a_rescale_that_kills_its_driver_already(running: Decisions) -> None:
    ask(running)
    running.after(STOP_MODES[StopMode.CHECKPOINT].limit_ms)
    want(running, Stop(), "c3", desired="stopped")
    assert (running.state.phase, running.state.stop_mode) == (Phase.STOPPING, StopMode.FORCE)


def test_restart_overtakes_a_rescale_and_has_its_number(running: Decisions) -> None:
    ask(running)
    asked = replace(make_command("restart", id="c3"), body=Restart(mode=StopMode.FORCE))
    running.on(RecordRequested(record=running.state.record, command=asked))
    assert running.state.phase is Phase.RESTARTING
    running.on(DriverEnded(exit_code=137))
    assert (running.state.phase, running.state.parallelism) == (Phase.STARTING, 4)


def test_batch_that_does_not_end_is_ended_by_force_with_a_warning(running: Decisions) -> None:
    ask(running)
    limit_ms = STOP_MODES[StopMode.CHECKPOINT].limit_ms
    assert running.after(limit_ms - 1) == ()
    assert StopDriver(mode=StopMode.FORCE) in running.after(1)
    assert running.state.phase is Phase.RESCALING
    running.on(DriverEnded(exit_code=137), DriverRuns())
    (answer,) = (action for action in running.actions if isinstance(action, Answer))
    assert NOT_REACHED[StopMode.CHECKPOINT] in answer.warnings[0]


def test_another_runner_finishes_a_rescale(running: Decisions) -> None:
    ask(running)
    record = running.state.record
    other = Decisions(record, RecordRequested(record=record, command=None, written=True))
    ask(other, 4, written=True)
    other.on(DriverRuns())
    (answer,) = (action for action in other.actions if isinstance(action, Answer))
    assert "another runner took over" in answer.warnings[0]


def runner_in(world: World) -> Runner:
    runner = Runner(world, world, world, world, admission=Admission(LIMITS))
    carry_out(runner, command(1), 1)
    receive(runner, 1, DriverRuns())
    return runner


def rescale(runner: Runner, number: int, parallelism: int = 4) -> None:
    asked = replace(command(number), body=Rescale(parallelism=parallelism))
    carry_out(runner, asked, number)


def apply(world: World, runner: Runner, number: int, manifest: str) -> PipelineRecord:
    carry_out(runner, command(number, manifest=manifest), number)
    return world.records[-1]


def test_number_counts_until_a_manifest_changes_its_own() -> None:
    world = World()
    runner = runner_in(world)
    rescale(runner, 2, 3)
    after = world.records[-1]
    assert after.rescaled is not None
    assert (after.rescaled.parallelism, after.rescaled.actor, after.generation) == (3, "ada", 1)
    receive(runner, 1, DriverEnded(exit_code=0))
    receive(runner, 2, DriverRuns())
    assert parallelism_of(world.specs[-1]) == 3

    assert parallelism_of(apply(world, runner, 3, CHANGED)) == 3
    assert world.sizes[-1] == 3, "so the driver that has checked it can run it"
    assert parallelism_of(apply(world, runner, 4, FOUR)) == 4
    assert parallelism_of(apply(world, runner, 5, EXAMPLE)) is None


def test_more_than_the_operator_allows_is_refused() -> None:
    world = World()
    runner = runner_in(world)
    rescale(runner, 2, 5)
    assert (world.answers[-1], world.reasons[-1]) == (("c2", "failed"), Slug.INVALID)
    assert "at most 4 tasks" in world.problems[-1].message
    assert (world.stopped, len(world.records)) == ([], 1)


@pytest.mark.parametrize("phase", ["CheckpointStopping", "Finishing"])
def test_run_that_ends_is_not_rescaled(phase: str) -> None:
    world = World()
    runner = runner_in(world)
    if phase == "CheckpointStopping":
        carry_out(runner, command(2, "stop"), 2)
    else:
        receive(runner, 1, DriverFinished())
    rescale(runner, 3)
    assert (world.answers[-1], world.reasons[-1]) == (("c3", "failed"), Slug.NOT_ALLOWED_NOW)
    assert world.problems[-1].message == f"orders is {phase}: rescale is not possible now"
    assert world.records[-1].rescaled is None
