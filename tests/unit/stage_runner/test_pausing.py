"""How the runner pauses a pipeline, and what a phase allows, with fakes for Kafka and drivers."""

from dataclasses import replace

import pytest

from unit.stage_runner.decisions import Decisions
from unit.stage_runner.fakes import (
    EXAMPLE,
    UID,
    World,
    carry_out,
    command,
    receive,
    running,
    stopped,
)
from waybill_shared.contract.commands import Stop, StopMode
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.problems import Slug
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.actions import PauseDriver, StartDriver
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverPaused, DriverRuns

CHANGED = EXAMPLE.replace("processingTime: 1 second", "processingTime: 2 seconds", 1)
CRASH = DriverEnded(exit_code=137)


def paused(world: World) -> Runner:
    runner = running(world)
    carry_out(runner, command(2, "pause"), 2)
    receive(runner, 1, DriverPaused(order=1))
    return runner


def test_a_pause_is_done_when_the_driver_reports_it(world: World) -> None:
    runner = running(world)
    carry_out(runner, command(2, "pause"), 2)
    assert world.pauses == [(UID, True, 1)]
    assert world.answers[-1][0] == "c1", "the running batch may not have ended"
    receive(runner, 1, DriverPaused(order=1))
    assert world.answers[-1] == ("c2", "done")
    assert (world.phases[-1], world.records[-1].desired) == ("Paused", "paused")
    assert world.stopped == [], "its driver stays"

    carry_out(runner, command(3, "resume"), 3)
    receive(runner, 1, DriverRuns())
    assert world.answers[-1] == ("c3", "done")
    assert (world.phases[-1], world.records[-1].desired) == ("Running", "running")


def test_a_report_of_an_earlier_order_does_not_answer_a_later_pause(running: Decisions) -> None:
    record = running.state.record
    running.want(replace(record, desired="paused"), "c2", "pause")
    running.want(record, "c3", "resume")
    running.want(replace(record, desired="paused"), "c4", "pause")
    assert running.actions[-1] == PauseDriver(paused=True, order=3)
    running.on(DriverPaused(order=1))
    assert running.state.phase is Phase.RUNNING
    running.on(DriverPaused(order=3))
    assert running.answers() == [("c4", "done")]


def test_a_pause_before_the_driver_runs_is_not_answered_by_its_start(starting: Decisions) -> None:
    starting.want(replace(starting.state.record, desired="paused"), "c2", "pause")
    starting.on(DriverRuns())
    assert (starting.state.phase, starting.answers()) == (Phase.RUNNING, [])
    starting.on(DriverPaused(order=1))
    assert (starting.state.phase, starting.answers()) == (Phase.PAUSED, [("c2", "done")])


def test_a_paused_pipeline_that_loses_its_driver_is_paused_again(world: World) -> None:
    runner = paused(world)
    receive(runner, 1, CRASH)
    world.waited += 60_000
    runner.tick()
    runner.act()
    assert [record.desired for record in world.specs] == ["running", "paused"]
    receive(runner, 2, DriverPaused(order=0))
    assert world.phases[-1] == "Paused"


def test_a_change_leaves_a_paused_pipeline_paused(world: World) -> None:
    runner = paused(world)
    carry_out(runner, command(3, manifest=CHANGED), 3)
    receive(runner, 1, DriverEnded(exit_code=0))
    assert world.specs[-1].desired == "paused"
    assert world.specs[-1].generation == 2
    receive(runner, 2, DriverPaused(order=0))
    assert world.answers[-1] == ("c3", "done")


@pytest.mark.parametrize("action", ["start", "resume"])
def test_a_pipeline_that_runs_is_resumed_already(world: World, action: str) -> None:
    runner = running(world)
    carry_out(runner, command(2, action), 2)
    assert world.answers[-1] == ("c2", "done")
    assert world.pauses == []


@pytest.mark.parametrize("action", ["pause", "resume"])
def test_a_stopped_pipeline_is_neither_paused_nor_resumed(world: World, action: str) -> None:
    runner = stopped(world)
    carry_out(runner, command(4, action), 4)
    assert world.answers[-1] == ("c4", "failed")
    assert world.reasons[-1] is Slug.NOT_ALLOWED_NOW
    assert world.problems[-1].message == f"orders is Stopped: {action} is not possible now"
    hint = "start, apply, rename, restart, set_offsets, rescale or delete it"
    assert world.problems[-1].hint == hint
    assert world.records[-1].desired == "stopped"


def test_runs_are_numbered_and_restarts_are_no_generations(world: World) -> None:
    runner = running(world)
    carry_out(runner, command(2, "restart"), 2)
    receive(runner, 1, DriverEnded(exit_code=0))
    receive(runner, 2, CRASH)
    world.waited += 60_000
    runner.tick()
    runner.act()
    assert [(record.generation, record.run) for record in world.specs] == [(1, 1), (1, 2), (1, 3)]
    assert world.claimed[-1].run == 3, "it is recorded before the driver starts"


def test_who_asked_for_what_is_wanted_is_recorded(world: World) -> None:
    runner = running(world)
    assert world.records[-1].desired_by == "ada"
    carry_out(runner, replace(command(2, "pause"), actor="grace"), 2)
    carry_out(runner, replace(command(3, "pause"), actor="eve"), 3)
    assert world.records[-1].desired_by == "grace", "it was to be paused already"


def test_a_driver_of_a_paused_pipeline_is_started_once(running: Decisions) -> None:
    running.want(replace(running.state.record, desired="paused"), "c2", "pause")
    assert StartDriver() not in running.actions


def test_a_pipeline_that_is_about_to_pause_is_not_drained(world: World) -> None:
    """No batch of it begins any more, so a drain would wait until it becomes a stronger stop."""
    runner = running(world)
    carry_out(runner, command(2, "pause"), 2)
    carry_out(runner, replace(command(3, "stop"), body=Stop(mode=StopMode.DRAIN)), 3)
    assert world.answers[-1] == ("c3", "failed")
    assert world.reasons[-1] is Slug.NOT_ALLOWED_NOW
    assert world.problems[-1].message.startswith("orders is about to be paused: only")
    receive(runner, 1, DriverPaused(order=1))
    assert world.answers[-1] == ("c2", "done")


@pytest.mark.parametrize("start_from", [None, "earliest"])
def test_a_restart_leaves_a_paused_pipeline_paused(world: World, start_from: str | None) -> None:
    runner = paused(world)
    if start_from is not None:
        world.topics = {"orders.in": "orders.in#2", "orders.enriched": "orders.enriched#2"}
    carry_out(runner, command(3, "restart", start_from=start_from), 3)
    receive(runner, 1, DriverEnded(exit_code=0))
    assert (world.started, world.specs[-1].desired) == ([1, 2], "paused")
    receive(runner, 2, DriverPaused(order=0))
    assert world.answers[-1] == ("c3", "done")
    assert (world.phases[-1], world.records[-1].desired) == ("Paused", "paused")
