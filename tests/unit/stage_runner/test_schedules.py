"""What times of a schedule do: with the clock turned, over takeovers, and while a run goes on."""

from datetime import UTC, datetime, timedelta

import pytest

from unit.stage_runner.fakes import carry_out, command, receive
from unit.stage_runner.scheduled import (
    BEGIN,
    DAY,
    HOUR,
    HOURLY,
    NIGHTLY,
    OVER,
    REPLACING,
    SECOND,
    applied,
    going,
    taken_over,
    turn,
    world_at,
)
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_stage_runner.core.pipelines.events import (
    DriverEnded,
    DriverFailed,
    DriverFinished,
    DriverPaused,
    RunQueued,
)


def test_an_apply_waits_for_the_first_time() -> None:
    world = world_at()
    runner = applied(world, NIGHTLY)
    assert world.answers == [("c1", "done")]
    assert (world.started, world.phases) == ([], ["Finished"])
    assert world.records[-1].next_run_at == BEGIN + HOUR + HOUR // 2
    turn(world, runner, HOUR + HOUR // 2 - 1)
    assert world.started == []
    turn(world, runner, 1)
    assert (world.started, world.phases[-1]) == ([1], "Starting")
    assert world.asked_by[-1] == "schedule"


def test_every_without_a_start_begins_at_once() -> None:
    world = world_at()
    runner = applied(world, HOURLY)
    turn(world, runner, 0)
    assert world.started == [1]
    assert world.records[-1].next_run_at == BEGIN + HOUR


def test_a_year_of_nights_with_the_clock_turned() -> None:
    """One run each day, also on the days without that hour and with two of it."""
    world = world_at()
    runner = applied(world, NIGHTLY)
    days = set[str]()
    for _ in range(365 * 24 * 4):
        turn(world, runner, HOUR // 4)
        if len(world.started) > len(days):
            days.add(str(datetime.fromtimestamp(world.now / 1000, UTC) + timedelta(hours=1))[:10])
            receive(runner, world.claims, *OVER)
    assert len(world.started) == len(days) == 365
    assert world.skips == []
    assert [record.run for record in world.claimed] == list(range(1, 366))


def test_times_that_were_missed_are_one_run() -> None:
    world = world_at()
    runner = going(world, HOURLY)
    receive(runner, 1, *OVER[1:])
    world.now += 10 * HOUR + 5 * SECOND
    other, runner = taken_over(world)
    assert other.phases == ["Finished"]
    turn(other, runner, 0)
    receive(runner, other.claims, *OVER)
    turn(other, runner, SECOND)
    assert len(other.started) == 1
    assert other.records[-1].next_run_at == BEGIN + 11 * HOUR, "the times stay where they were"


@pytest.mark.parametrize("records", [1, 2])
def test_a_time_counts_once_when_its_runner_dies(records: int) -> None:
    """After the record of the time, or after that of the claim: nothing else was done."""
    world = world_at()
    runner = going(world, HOURLY)
    receive(runner, 1, *OVER[1:])
    before = len(world.records)
    turn(world, runner, HOUR)
    written = [*world.records[before:], world.claimed[-1]]
    assert [(each.run, each.finished, each.next_run_at) for each in written] == [
        (2, False, BEGIN + 2 * HOUR)
    ] * 2
    world.records = [written[records - 1]]
    other, runner = taken_over(world)
    turn(other, runner, 0)
    assert (other.phases, len(other.started), other.skips) == (["Starting"], 1, [])


def test_a_time_is_not_lost_when_its_runner_dies_before_that() -> None:
    world = world_at()
    runner = going(world, HOURLY)
    receive(runner, 1, *OVER[1:])
    world.now += HOUR
    other, runner = taken_over(world)
    turn(other, runner, 0)
    assert len(other.started) == 1


def test_a_run_that_goes_on_skips_the_time() -> None:
    world = world_at()
    runner = going(world, HOURLY)
    turn(world, runner, HOUR)
    assert (world.started, world.stopped, world.phases[-1]) == ([1], [], "Running")
    assert world.skips == [
        "skipped: run 1 is Running, scheduled for 2026-01-01T01:00:00.000Z",
    ]
    assert world.records[-1].next_run_at == BEGIN + 2 * HOUR
    receive(runner, 1, *OVER[1:])
    turn(world, runner, SECOND)
    assert world.started == [1], "what was skipped is not made up"
    turn(world, runner, HOUR)
    assert len(world.started) == 2


def test_a_run_that_goes_on_is_replaced_if_the_schedule_says_so() -> None:
    world = world_at()
    runner = going(world, REPLACING)
    turn(world, runner, HOUR)
    assert (world.stopped, world.phases[-1], world.asked_by[-1]) == (
        ["uid"],
        "Restarting",
        "schedule",
    )
    assert world.records[-1].next_run_at == BEGIN + 2 * HOUR
    receive(runner, 1, DriverEnded(exit_code=0))
    assert (len(world.started), world.phases[-1]) == (2, "Starting")
    assert (world.asked_by[-1], world.claimed[-1].run) == ("schedule", 2)
    assert next(iter(runner.states)).reason == "scheduled for 2026-01-01T01:00:00.000Z"
    receive(runner, 2, *OVER)
    assert (world.phases[-1], world.skips) == ("Finished", [])


def test_a_run_that_fails_while_it_is_replaced_is_replaced_all_the_same() -> None:
    """And whoever sends the next command is not warned of it."""
    world = world_at()
    runner = going(world, REPLACING)
    turn(world, runner, HOUR)
    error = LifecycleError(domain="external", message="away", hint="", stage=None, retryable=True)
    receive(runner, 1, DriverFailed(problems=(), error=error), DriverEnded(exit_code=1))
    assert len(world.started) == 2
    carry_out(runner, command(2, "stop"), 2)
    receive(runner, 2, DriverEnded(exit_code=0))
    assert world.answers[-1] == ("c2", "done")
    assert world.warnings[-1] == ()


def test_a_run_that_has_not_begun_yet_is_not_replaced() -> None:
    world = world_at()
    runner = applied(world, REPLACING)
    turn(world, runner, 0)
    turn(world, runner, HOUR)
    receive(runner, 1, RunQueued(queue_position=1))
    turn(world, runner, HOUR)
    assert [skip.split(",")[0] for skip in world.skips] == [
        "skipped: run 1 is Starting",
        "skipped: run 1 is Scheduling",
    ]
    assert len(world.started) == 1


def test_a_paused_run_is_not_replaced() -> None:
    world = world_at()
    runner = going(world, REPLACING)
    carry_out(runner, command(2, "pause"), 2)
    turn(world, runner, HOUR)
    receive(runner, 1, DriverPaused(order=1))
    turn(world, runner, HOUR)
    assert [skip.split(",")[0] for skip in world.skips] == [
        "skipped: run 1 is Running",
        "skipped: run 1 is Paused",
    ]
    assert world.stopped == []
    assert next(iter(runner.states)).next_run_at is None


def test_a_run_that_is_tried_again_skips_the_time() -> None:
    world = world_at()
    runner = going(world, REPLACING)
    receive(runner, 1, DriverEnded(exit_code=1))
    world.now += HOUR
    runner.tick()
    runner.act()
    assert world.skips[-1].startswith("skipped: run 1 is Recovering")


def test_a_time_waits_for_a_run_that_is_about_to_end() -> None:
    world = world_at()
    runner = going(world, HOURLY)
    receive(runner, 1, DriverFinished())
    turn(world, runner, HOUR)
    assert (world.started, world.skips) == ([1], [])
    receive(runner, 1, DriverEnded(exit_code=0))
    turn(world, runner, 0)
    assert len(world.started) == 2


def test_a_failed_pipeline_waits_for_a_person() -> None:
    world = world_at()
    runner = going(world, HOURLY)
    error = LifecycleError(domain="user", message="no", hint="", stage=None, retryable=False)
    problems = (Problem(message="no"),)
    receive(runner, 1, DriverFailed(problems=problems, error=error), DriverEnded(exit_code=1))
    assert world.phases[-1] == "Failed"
    turn(world, runner, 3 * HOUR)
    assert (len(world.started), world.skips) == (1, [])
    assert next(iter(runner.states)).next_run_at is None
    carry_out(runner, command(2, "start"), 2)
    turn(world, runner, 0)
    assert (len(world.started), world.skips) == (2, [])
    assert world.records[-1].next_run_at == BEGIN + 4 * HOUR


def test_after_its_end_a_schedule_begins_nothing() -> None:
    world = world_at()
    runner = applied(world, '{every: 1 hour, endOn: "2026-01-01T01:00:00Z"}')
    turn(world, runner, 0)
    receive(runner, 1, *OVER)
    turn(world, runner, 2 * HOUR)
    assert len(world.started) == 2, "the last time was missed, and is made up"
    receive(runner, 2, *OVER)
    assert (world.phases[-1], world.records[-1].next_run_at) == ("Finished", None)
    turn(world, runner, 30 * DAY)
    assert len(world.started) == 2


def test_a_clock_that_is_set_back_repeats_no_time() -> None:
    world = world_at()
    runner = going(world, HOURLY)
    receive(runner, 1, *OVER[1:])
    turn(world, runner, HOUR)
    receive(runner, 2, *OVER)
    world.now -= 2 * HOUR
    for _ in range(3 * 60 - 1):
        turn(world, runner, 60 * SECOND)
    assert len(world.started) == 2
    turn(world, runner, 60 * SECOND)
    assert len(world.started) == 3
