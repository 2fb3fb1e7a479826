"""What commands do to the times of a schedule."""

from dataclasses import replace

import pytest

from unit.stage_runner.fakes import carry_out, command, receive
from unit.stage_runner.scheduled import (
    BEGIN,
    DAY,
    ENDS,
    HOUR,
    HOURLY,
    NIGHTLY,
    OVER,
    SECOND,
    WITHOUT_LOAD,
    applied,
    going,
    manifest,
    turn,
    world_at,
)
from waybill_shared.contract.commands import Start
from waybill_stage_runner.core.pipelines.events import DriverEnded


def test_a_stop_stops_the_schedule_until_a_start() -> None:
    world = world_at()
    runner = applied(world, NIGHTLY)
    carry_out(runner, command(2, "stop"), 2)
    assert (world.phases[-1], world.records[-1].next_run_at) == ("Stopped", None)
    turn(world, runner, 3 * DAY)
    assert (world.started, world.skips) == ([], [])
    carry_out(runner, command(3, "start"), 3)
    assert len(world.started) == 1, "a start runs it now"
    assert world.records[-1].next_run_at == BEGIN + 3 * DAY + HOUR + HOUR // 2
    receive(runner, 1, *OVER)
    turn(world, runner, DAY)
    assert len(world.started) == 2


def test_an_apply_of_a_stopped_pipeline_waits_for_the_next_time() -> None:
    world = world_at()
    runner = applied(world, NIGHTLY)
    carry_out(runner, command(2, "stop"), 2)
    turn(world, runner, DAY)
    carry_out(runner, command(3, manifest=manifest(NIGHTLY)), 3)
    assert (world.answers[-1], world.started) == (("c3", "done"), [])
    assert world.phases[-1] == "Finished"
    turn(world, runner, DAY)
    assert len(world.started) == 1


@pytest.mark.parametrize("action", ["start", "restart"])
def test_a_run_that_a_person_starts_makes_up_what_was_due(action: str) -> None:
    world = world_at()
    runner = applied(world, NIGHTLY)
    world.now += 2 * DAY  # and nobody has looked at the clock yet
    carry_out(runner, command(2, action), 2)
    turn(world, runner, SECOND)
    assert (len(world.started), world.skips) == (1, [])
    assert world.records[-1].next_run_at == BEGIN + 2 * DAY + HOUR + HOUR // 2


def test_an_apply_before_anybody_has_looked_at_the_clock_loses_no_time() -> None:
    world = world_at()
    runner = applied(world, NIGHTLY)
    world.now += 2 * HOUR
    carry_out(runner, command(2, manifest=manifest(NIGHTLY)), 2)
    assert world.started == []
    turn(world, runner, 0)
    assert len(world.started) == 1


def test_a_start_after_the_clock_was_set_back_repeats_no_time() -> None:
    world = world_at()
    runner = applied(world, NIGHTLY)
    turn(world, runner, 2 * HOUR)
    receive(runner, 1, *OVER)
    world.now -= 2 * HOUR
    carry_out(runner, command(2, "start"), 2)
    assert world.records[-1].next_run_at == BEGIN + DAY + HOUR + HOUR // 2


def test_a_start_between_two_times_changes_no_time() -> None:
    world = world_at()
    runner = going(world, HOURLY)
    receive(runner, 1, *OVER[1:])
    world.now += HOUR // 2
    carry_out(runner, command(2, "start"), 2)
    assert world.records[-1].next_run_at == BEGIN + HOUR


def test_a_run_that_starts_paused_keeps_its_times() -> None:
    world = world_at()
    runner = applied(world, NIGHTLY)
    carry_out(runner, replace(command(2, "start"), body=Start(paused=True)), 2)
    assert world.records[-1].next_run_at == BEGIN + HOUR + HOUR // 2


def test_another_schedule_begins_anew_and_an_equal_one_goes_on() -> None:
    world = world_at()
    runner = going(world, HOURLY)
    receive(runner, 1, *OVER[1:])
    world.now += HOUR // 2
    said = manifest(HOURLY).replace("name: orders\n", "name: orders\ntitle: Orders\n", 1)
    carry_out(runner, command(2, manifest=said), 2)
    assert (world.started, world.records[-1].next_run_at) == ([1], BEGIN + HOUR)
    beats = len(world.beats)
    carry_out(runner, command(3, manifest=manifest(NIGHTLY)), 3)
    assert (world.started, world.records[-1].next_run_at) == ([1], BEGIN + 3 * HOUR // 2)
    assert len(world.beats) == beats + 1, "tokens say when the next run begins by now"
    assert world.records[-1].generation == 3


def test_a_change_that_removes_a_sink_is_in_force_before_the_next_time() -> None:
    world = world_at()
    runner = going(world, HOURLY)
    receive(runner, 1, *OVER[1:])
    carry_out(runner, command(2, manifest=manifest(HOURLY, WITHOUT_LOAD)), 2)
    turn(world, runner, HOUR)
    assert (len(world.started), len(world.closing)) == (1, 1)
    receive(runner, world.claims, DriverEnded(exit_code=0))
    assert world.phases[-1] == "Finished"
    turn(world, runner, 0)
    assert (len(world.started), world.specs[-1].generation) == (2, 2)


def test_a_pipeline_that_loses_its_schedule_has_no_times() -> None:
    world = world_at()
    runner = going(world, HOURLY)
    carry_out(runner, command(2, manifest=ENDS), 2)
    receive(runner, 1, DriverEnded(exit_code=0))
    receive(runner, 2, *OVER)
    turn(world, runner, DAY)
    assert (len(world.started), world.records[-1].next_run_at) == (2, None)
