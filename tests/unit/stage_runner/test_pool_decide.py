"""Which driver takes which run or check, rule by rule."""

import pytest

from unit.stage_runner.pools import (
    Drivers,
    begins,
    begun,
    check,
    checked,
    checks,
    gone,
    over,
    ready,
    runs,
    starts,
    waits,
    want,
)
from waybill_shared.contract.commands import StopMode
from waybill_stage_runner.core.pool.assign import BEGINS_MS_MAX, IDLE_MS, SPARE_AFTER_MS
from waybill_stage_runner.core.pool.decide import PATIENCE_MS
from waybill_stage_runner.core.pool.model import (
    CheckRequested,
    DriverState,
    EndAll,
    EndProcess,
    KillProcess,
    MaintenanceJob,
    RunCancelled,
    RunEnded,
    StopRun,
)
from waybill_stage_runner.core.tick import Tick


@pytest.fixture
def running() -> Drivers:
    """Driver 1 has the run of "a"."""
    drivers = Drivers()
    drivers.on(want("a"), ready("1"))
    return drivers


def test_run_for_which_a_driver_starts_is_not_told_to_wait() -> None:
    drivers = Drivers(starts=1)
    assert drivers.on(want("a")) == (starts("1"),)
    assert drivers.on(ready("1")) == (runs("1", "a"),)


def test_run_behind_the_starting_drivers_is_told_how_many_must_start_before_its_own() -> None:
    drivers = Drivers(starts=2)
    drivers.on(want("a"), want("b"))
    assert drivers.on(want("c")) == (waits("c", 1),)
    assert drivers.on(want("d")) == (waits("d", 2),)
    drivers.on(ready("1"))
    assert drivers.on(begun("1")) == (starts("3"), waits("c", 0), waits("d", 1))
    drivers.on(ready("2"))
    assert drivers.on(begun("2")) == (starts("4"), waits("d", 0))
    assert drivers.on(ready("3")) == (runs("3", "c"),)


def test_a_start_lasts_until_the_run_has_begun() -> None:
    """What compiles and opens sinks needs the cores as a JVM does that comes up."""
    drivers = Drivers(starts=1)
    drivers.on(want("a"), want("b"))
    assert drivers.on(ready("1")) == (runs("1", "a"),)
    assert drivers.on(begun("1")) == (starts("2"), waits("b", 0))
    assert drivers.on(begun("1")) == ()


def test_a_run_that_does_not_begin_holds_no_start_up_for_long() -> None:
    drivers = Drivers(starts=1)
    drivers.on(want("a"), want("b"), ready("1"))
    assert drivers.after(BEGINS_MS_MAX - 1) == ()
    assert drivers.after(1) == (starts("2"), waits("b", 0))


def test_closing_run_has_a_process_of_its_own_beyond_all_limits() -> None:
    drivers = Drivers(starts=1)
    assert drivers.on(want("a", closing=True)) == (starts("1", spark=False),)
    assert drivers.on(want("b")) == (starts("2"),)
    assert drivers.on(want("c", closing=True)) == (starts("3", spark=False),)
    assert drivers.on(ready("1")) == (runs("1", "a"),)
    assert drivers.on(RunEnded(driver_id="1")) == (over("a", 0, "1"), EndProcess(driver_id="1"))


@pytest.mark.parametrize("exit_code", [0, 137])
def test_closing_run_that_never_began_is_not_told_to_have_closed(exit_code: int) -> None:
    drivers = Drivers()
    drivers.on(want("a", closing=True))
    assert drivers.on(gone("1", exit_code)) == (over("a", exit_code or 1, "1"),)
    drivers.on(EndAll())
    assert drivers.on(want("a", closing=True)) == (over("a", 1, None),)


@pytest.mark.parametrize("exit_code", [0, 137])
def test_closing_run_that_did_not_say_its_end_has_not_closed(exit_code: int) -> None:
    """A driver that is told to end before it looks at its order ends in good order."""
    drivers = Drivers()
    drivers.on(want("a", closing=True), ready("1"))
    assert drivers.on(gone("1", exit_code)) == (over("a", exit_code or 1, "1"),)


def test_closing_run_waits_until_the_driver_before_it_is_gone(running: Drivers) -> None:
    actions = running.on(want("a", closing=True))
    assert actions == (KillProcess(driver_id="1"), starts("2", spark=False))
    assert running.on(ready("2")) == ()
    assert running.on(gone("1")) == (runs("2", "a"),)


def test_urgent_runs_come_first_then_checks_then_others() -> None:
    drivers = Drivers(starts=6)
    drivers.on(want("a"), want("b"), check("x"), check("y"), want("d", urgent=True))
    drivers.on(want("e", urgent=True))
    given = [drivers.on(ready(f"{number}"))[0] for number in range(1, 7)]
    runs_first = [runs("1", "d"), runs("2", "e"), checks("3", "x"), checks("4", "y")]
    assert given == [*runs_first, runs("5", "a"), runs("6", "b")]


def test_failed_start_ends_the_first_run_in_line() -> None:
    drivers = Drivers(starts=1)
    drivers.on(want("a"), want("b"))
    assert drivers.on(gone("1", 3)) == (over("a", 3, "1"), starts("2"), waits("b", 0))


def test_failed_start_is_charged_to_whom_it_would_have_served() -> None:
    """Not to a run that must wait until its earlier driver has ended."""
    drivers = Drivers(starts=1)
    drivers.on(want("a"), ready("1"), begun("1"), want("a", urgent=True), want("b"))
    assert drivers.states() == {"1": DriverState.ENDING, "2": DriverState.STARTING}
    assert over("b", 137, "2") in drivers.on(gone("2"))
    assert [job.pipeline_uid for job in drivers.pool.queue] == ["a"]


def test_run_is_over_when_its_driver_is_gone(running: Drivers) -> None:
    assert running.on(gone("1", 9)) == (over("a", 9, "1"),)
    assert running.on(gone("1", 9)) == ()


def test_driver_lives_on_where_it_is_of_use(running: Drivers) -> None:
    running.on(want("b"))
    actions = running.on(RunEnded(driver_id="1"))
    assert actions == (over("a", 0, "1"), runs("1", "b"))


def test_driver_of_no_use_ends_after_its_run(running: Drivers) -> None:
    actions = running.on(RunEnded(driver_id="1"))
    assert actions == (over("a", 0, "1"), EndProcess(driver_id="1"))
    assert running.on(RunEnded(driver_id="1")) == ()


def test_driver_waits_for_the_next_run_beside_a_spare_one_for_a_while() -> None:
    drivers = Drivers(spares=1)
    drivers.on(want("a"), ready("1"), ready("2"))
    assert drivers.on(RunEnded(driver_id="1")) == (over("a", 0, "1"),)
    assert drivers.on(want("b")) == (runs("1", "b"),)
    assert drivers.after(SPARE_AFTER_MS) == (), "the other one is there"
    assert drivers.on(RunEnded(driver_id="1")) == (over("b", 0, "1"),)
    assert drivers.after(IDLE_MS - 1) == ()
    assert drivers.after(1) == (EndProcess(driver_id="2"),), "what the other has run is compiled"


def test_driver_ends_after_its_last_run() -> None:
    drivers = Drivers(spares=1, starts=1, runs=3)
    drivers.on(want("a"), ready("1"))
    for _ in range(2):
        assert drivers.on(RunEnded(driver_id="1")) == (over("a", 0, "1"),)
        drivers.on(want("a"))
    assert drivers.on(RunEnded(driver_id="1"))[1] == EndProcess(driver_id="1")


def test_driver_that_starts_too_long_is_killed_and_has_failed() -> None:
    drivers = Drivers()
    drivers.on(want("a"))
    assert drivers.after(PATIENCE_MS[DriverState.STARTING] - 1) == ()
    assert drivers.after(1) == (KillProcess(driver_id="1"),)
    assert drivers.on(ready("1")) == ()
    assert drivers.on(gone("1")) == (over("a", 137, "1"),)


def test_driver_that_does_not_end_is_killed_again_and_again(running: Drivers) -> None:
    running.on(RunEnded(driver_id="1"))
    for _ in range(3):
        assert running.after(PATIENCE_MS[DriverState.ENDING] - 1) == ()
        assert running.after(1) == (KillProcess(driver_id="1"),)


def test_run_that_nobody_wants_leaves_the_line() -> None:
    drivers = Drivers(starts=1)
    drivers.on(want("a"), want("b"))
    assert drivers.on(RunCancelled(pipeline_uid="a")) == (over("a", 0, None), waits("b", 0))
    assert drivers.on(RunCancelled(pipeline_uid="a")) == ()


def test_run_that_nobody_wants_is_stopped_or_killed(running: Drivers) -> None:
    stop = StopRun(driver_id="1", pipeline_uid="a")
    assert running.on(RunCancelled(pipeline_uid="a")) == (stop,)
    assert running.on(RunCancelled(pipeline_uid="a", mode=StopMode.FORCE)) == (
        KillProcess(driver_id="1"),
    )
    assert running.on(RunEnded(driver_id="1")) == ()
    assert running.on(gone("1")) == (over("a", 137, "1"),)


def test_run_wanted_anew_waits_until_the_old_one_is_gone(running: Drivers) -> None:
    running.on(check("x"), ready("2"), checked("2", "x"))
    actions = running.on(want("a"))
    assert actions == (KillProcess(driver_id="1"), starts("3"))
    assert running.on(gone("1")) == (runs("2", "a"),), "the old end is not told"


def test_run_that_is_over_is_told_nothing_more(running: Drivers) -> None:
    """Not even while the driver still dies that had it before it was wanted anew."""
    running.on(want("b"), want("c"))
    assert running.on(want("a"))[-1] == waits("a", 1)
    assert running.on(RunCancelled(pipeline_uid="a")) == (over("a", 0, None),)


def test_run_wanted_again_keeps_its_place_unless_it_is_urgent_now() -> None:
    drivers = Drivers(starts=1)
    drivers.on(want("a"), want("b"))
    assert drivers.on(want("a")) == ()
    assert drivers.on(want("b", urgent=True)) == (waits("b", 0), waits("a", 1))
    assert len(drivers.pool.queue) == 2


def test_after_the_end_nothing_is_started_or_given(running: Drivers) -> None:
    running.on(check("x"), ready("2"), want("b"), check("y"), want("d", closing=True))
    assert running.on(EndAll()) == (
        over("b", 0, None),
        StopRun(driver_id="1", pipeline_uid="a"),
        KillProcess(driver_id="2"),
        EndProcess(driver_id="3"),
    ), "a check leaves nothing, a driver that closes does"
    assert running.on(want("e")) == (over("e", 0, None),)
    assert running.on(check("z")) == ()
    assert running.pool.queue == ()
    assert running.on(gone("3", 0)) == (over("d", 1, "3"),), "nothing was closed"


def test_who_still_starts_is_not_waited_for_at_the_end() -> None:
    drivers = Drivers()
    drivers.on(want("a"))
    assert drivers.on(EndAll()) == (over("a", 0, None), KillProcess(driver_id="1"))


def test_maintenance_ends_in_good_order(running: Drivers) -> None:
    maintain = CheckRequested(job=MaintenanceJob(check_id="m"))
    running.on(maintain, ready("2"), begins("2", "m"))
    assert EndProcess(driver_id="2") in running.on(EndAll())


def test_spare_is_killed_at_the_end() -> None:
    drivers = Drivers(spares=1)
    drivers.on(Tick(), ready("1"))
    assert drivers.on(EndAll()) == (KillProcess(driver_id="1"),)
