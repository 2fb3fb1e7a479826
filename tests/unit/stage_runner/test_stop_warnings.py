"""What the answer to a stop or a restart says if the run did not end as it was asked to."""

from dataclasses import replace

import pytest

from message_builders import make_command
from unit.stage_runner.decisions import Decisions
from unit.stage_runner.fakes import World, carry_out, command, receive, runner_in, running
from waybill_shared.contract.commands import (
    RESTART_MODES,
    STOP_MODES,
    Delete,
    Restart,
    Stop,
    StopMode,
)
from waybill_shared.contract.lifecycle import Phase
from waybill_stage_runner.core.pipelines.actions import Answer
from waybill_stage_runner.core.pipelines.events import (
    DriverDrained,
    DriverEnded,
    DriverFinished,
    DriverRuns,
    RecordRequested,
    RunEvent,
)
from waybill_stage_runner.core.pipelines.stopping import NOT_REACHED

DRAIN, CHECKPOINT, FORCE = StopMode
WELL, KILLED = DriverEnded(exit_code=0), DriverEnded(exit_code=137)
EXIT_CODE = ": the driver ended with exit code 137"
NOT_DRAINED, NOT_ENDED = NOT_REACHED[DRAIN], NOT_REACHED[CHECKPOINT]


def stop(pipeline: Decisions, mode: StopMode) -> None:
    command = replace(make_command("stop", id="c2"), body=Stop(mode=mode))
    record = replace(pipeline.state.record, desired="stopped", stop_mode=mode)
    pipeline.on(RecordRequested(record=record, command=command))


def warnings(pipeline: Decisions) -> list[str]:
    (answer,) = (action for action in pipeline.actions if isinstance(action, Answer))
    assert (answer.command.id, answer.state) == ("c2", "done")
    assert pipeline.state.warnings == (), "once"
    return [*answer.warnings]


@pytest.mark.parametrize(
    ("mode", "events", "expected"),
    [
        (DRAIN, (DriverDrained(), WELL), []),
        (DRAIN, (DriverDrained(), KILLED), []),
        (DRAIN, (KILLED,), [NOT_DRAINED + EXIT_CODE]),
        (DRAIN, (WELL,), [NOT_DRAINED]),
        (DRAIN, (DriverFinished(), WELL), [NOT_DRAINED]),
        (CHECKPOINT, (WELL,), []),
        (CHECKPOINT, (KILLED,), [NOT_ENDED + EXIT_CODE]),
        (FORCE, (KILLED,), []),
    ],
)
def test_a_stop_warns_without_a_report_that_it_was_done_as_asked(
    running: Decisions, mode: StopMode, events: tuple[RunEvent, ...], expected: list[str]
) -> None:
    stop(running, mode)
    running.on(*events)
    assert warnings(running) == expected


@pytest.mark.parametrize(
    ("mode", "ended", "expected"),
    [(DRAIN, WELL, [NOT_DRAINED]), (CHECKPOINT, KILLED, [NOT_ENDED + EXIT_CODE])],
)
def test_a_stop_that_became_a_stronger_one_warns(
    running: Decisions, mode: StopMode, ended: DriverEnded, expected: list[str]
) -> None:
    stop(running, mode)
    running.after(STOP_MODES[mode].limit_ms)
    assert running.state.stop_mode is STOP_MODES[mode].then
    running.on(ended)
    assert warnings(running) == expected


@pytest.mark.parametrize(("mode", "expected"), [("safe", [NOT_ENDED + EXIT_CODE]), ("force", [])])
def test_a_restart_warns_if_the_run_was_killed_unasked(
    running: Decisions, mode: str, expected: list[str]
) -> None:
    command = replace(make_command("restart", id="c2"), body=Restart(mode=RESTART_MODES[mode]))
    running.on(RecordRequested(record=running.state.record, command=command), KILLED, DriverRuns())
    assert warnings(running) == expected


def test_a_run_that_was_drained_says_nothing_about_the_next_one(running: Decisions) -> None:
    stop(running, DRAIN)
    running.on(DriverDrained(), WELL)
    running.want(replace(running.state.record, desired="running"))
    running.on(DriverRuns())
    stop(running, DRAIN)
    running.on(KILLED)
    assert warnings(running) == [NOT_DRAINED + EXIT_CODE]


def test_nothing_is_said_about_the_next_run_of_what_is_deleted(running: Decisions) -> None:
    delete = replace(make_command("delete", id="c2"), body=Delete())
    record = replace(running.state.record, desired="deleted")
    running.on(RecordRequested(record=record, command=delete), KILLED)
    assert running.state.warnings == ()


def test_a_run_that_was_stopped_before_it_began_warns_of_nothing(starting: Decisions) -> None:
    stop(starting, CHECKPOINT)
    starting.on(WELL)
    assert (starting.state.phase, warnings(starting)) == (Phase.STOPPED, [])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(DRAIN, NOT_DRAINED), (CHECKPOINT, NOT_ENDED), (FORCE, None)],
)
def test_a_stop_that_another_runner_ends_warns(
    world: World, mode: StopMode, expected: str | None
) -> None:
    """The driver ended with the runner before, and nobody has noticed how far it came."""
    stop = replace(command(2, "stop"), body=Stop(mode=mode))
    carry_out(running(world), stop, 2)
    after = World()
    runner = runner_in(after)
    runner.adopt(replace(world.records[-1], run=1))
    runner.act()
    carry_out(runner, stop, 2)
    assert after.answers == [("c2", "done")]
    took_over = f"{expected}: another runner took over"
    assert after.warnings == [() if expected is None else (took_over,)]


def test_a_stop_of_what_is_stopped_warns_of_nothing(world: World) -> None:
    runner = running(world)
    carry_out(runner, command(2, "stop"), 2)
    receive(runner, 1, WELL)
    carry_out(runner, command(3, "stop"), 3)
    assert world.warnings[-1] == ()
