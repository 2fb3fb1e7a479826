"""What becomes of a command that asks for what is wanted already."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from unit.stage_runner.fakes import World, carry_out, command, receive, running
from waybill_shared.contract.commands import Start
from waybill_shared.contract.events import Command
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.problems import Slug
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverFailed, DriverPaused

ERROR = LifecycleError(
    domain="user", message="a record does not parse", hint="", stage="load", retryable=False
)


def start_paused(number: int) -> Command:
    return replace(command(number, "start"), body=Start(paused=True))


def paused(world: World) -> Runner:
    runner = running(world)
    carry_out(runner, command(2, "pause"), 2)
    receive(runner, 1, DriverPaused(order=1))
    return runner


def fail(runner: Runner) -> None:
    receive(runner, 1, DriverFailed(problems=(), error=ERROR), DriverEnded(exit_code=1))


def test_a_pipeline_that_runs_is_not_started_paused(world: World) -> None:
    carry_out(running(world), start_paused(2), 2)
    assert (world.answers[-1], world.reasons[-1]) == (("c2", "failed"), Slug.NOT_ALLOWED_NOW)
    assert world.problems[-1].hint == "apply, rename, restart, rescale, pause, stop or delete it"
    assert (world.pauses, world.records[-1].desired) == ([], "running")


def test_a_pipeline_that_is_paused_was_started_paused_already(world: World) -> None:
    runner = paused(world)
    carry_out(runner, start_paused(3), 3)
    receive(runner, 1, DriverPaused(order=2))
    assert world.answers[-1] == ("c3", "done")
    assert world.started == [1]


def test_a_paused_pipeline_is_resumed_and_not_started(world: World) -> None:
    carry_out(paused(world), command(3, "start"), 3)
    assert (world.answers[-1], world.reasons[-1]) == (("c3", "failed"), Slug.NOT_ALLOWED_NOW)
    assert world.problems[-1].hint == "apply, rename, restart, rescale, resume, stop or delete it"


@pytest.mark.parametrize(("before", "action"), [(running, "resume"), (paused, "pause")])
def test_a_pipeline_that_has_failed_needs_a_start(
    world: World, before: Callable[[World], Runner], action: str
) -> None:
    """What is wanted of it is what it was when it failed."""
    runner = before(world)
    fail(runner)
    assert world.phases[-1] == "Failed"
    carry_out(runner, command(4, action), 4)
    assert (world.answers[-1], world.reasons[-1]) == (("c4", "failed"), Slug.NOT_ALLOWED_NOW)
    hint = "start, apply, rename, restart, set_offsets, rescale, stop or delete it"
    assert world.problems[-1].hint == hint
    assert world.started == [1]
    carry_out(runner, command(5, "start"), 5)
    assert world.started == [1, 2]
