"""Pipelines with schedules, and clocks that a test turns."""

from datetime import UTC, datetime

from unit.stage_runner.fakes import EXAMPLE, World, carry_out, command, receive, runner_in
from waybill_stage_runner.app.runner import Runner
from waybill_stage_runner.core.pipelines.events import DriverEnded, DriverFinished, DriverRuns

SECOND, HOUR, DAY = 1_000, 3_600_000, 86_400_000
BEGIN = round(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
NOW = "trigger: {availableNow: true}"
ENDS = EXAMPLE.replace("trigger: {processingTime: 1 second}", NOW).replace(
    "inputs: [orders]\n", f"inputs: [orders]\n    {NOW}\n", 1
)
OVER = (DriverRuns(), DriverFinished(), DriverEnded(exit_code=0))
WITHOUT_LOAD = ENDS[: ENDS.index("  - name: load")]
NIGHTLY = "{cron: 30 2 * * *, timezone: Europe/Berlin}"
HOURLY = "{every: 1 hour}"
REPLACING = "{every: 1 hour, concurrency: replace}"


def manifest(schedule: str, text: str = ENDS) -> str:
    return text.replace("name: orders\n", f"name: orders\nschedule: {schedule}\n", 1)


def world_at(now: int = BEGIN) -> World:
    return World(now=now)


def applied(world: World, schedule: str) -> Runner:
    runner = runner_in(world)
    carry_out(runner, command(1, manifest=manifest(schedule)), 1)
    return runner


def going(world: World, schedule: str) -> Runner:
    """Its first run goes on; the next time is an hour later."""
    runner = applied(world, schedule)
    turn(world, runner, 0)
    receive(runner, 1, DriverRuns())
    return runner


def turn(world: World, runner: Runner, milliseconds: int) -> None:
    """Turn both clocks, and let the runner look at them."""
    world.now += milliseconds
    world.waited += milliseconds
    runner.tick()
    runner.act()


def taken_over(world: World) -> tuple[World, Runner]:
    """Another runner finds the newest record. Nothing else is left."""
    other = World(now=world.now, waited=7, topics=world.topics, claims=world.claims)
    runner = runner_in(other)
    runner.adopt(world.records[-1])
    runner.act()
    return other, runner
