"""Which driver checks a text, for how long, and who may have it afterwards."""

from dataclasses import replace

import pytest

from unit.stage_runner.pools import (
    Drivers,
    begins,
    check,
    checked,
    checks,
    gone,
    only_check,
    ready,
    runs,
    starts,
    want,
)
from waybill_stage_runner.core.pool.assign import IDLE_MS
from waybill_stage_runner.core.pool.decide import KEPT_MS, PATIENCE_MS
from waybill_stage_runner.core.pool.model import (
    CheckCancelled,
    DriverState,
    EndProcess,
    KillProcess,
    Limits,
    ReportCheckFailed,
)


@pytest.fixture
def running() -> Drivers:
    """Driver 1 has the run of "a"."""
    drivers = Drivers()
    drivers.on(want("a"), ready("1"))
    return drivers


@pytest.fixture
def checking() -> Drivers:
    """Driver 1 checks "x" of the pipeline "c"."""
    drivers = Drivers()
    drivers.on(check("x"), ready("1"))
    return drivers


def test_what_is_checked_for_a_run_is_the_begin_of_a_start(checking: Drivers) -> None:
    checking.on(want("a"), want("b"))
    assert checking.states()["2"] is DriverState.STARTING
    assert len(checking.states()) == 2
    checking.on(checked("1", "x"))
    assert checking.states()["1"] is DriverState.RUNNING


def test_what_is_only_checked_holds_no_start_up() -> None:
    drivers = Drivers(starts=1)
    drivers.on(only_check("x"), ready("1"))
    assert drivers.on(want("a")) == (starts("2"),)


def test_kept_driver_serves_only_its_pipeline(checking: Drivers) -> None:
    checking.on(checked("1", "x", keep=True))
    assert checking.on(want("b")) == (starts("2"),)
    assert checking.on(want("c")) == (runs("1", "c"),), "it need not wait behind b"


def test_driver_is_kept_for_a_while_only(checking: Drivers) -> None:
    checking.on(checked("1", "x", keep=True), want("b"))
    assert checking.after(KEPT_MS - 1) == ()
    assert checking.after(1) == (runs("1", "b"),)


def test_run_takes_the_driver_kept_for_it_before_any_other(checking: Drivers) -> None:
    checking.on(check("y", "d"), ready("2"))
    checking.on(checked("1", "x"), checked("2", "y", keep=True))
    assert checking.on(want("d")) == (runs("2", "d"),)


def test_check_takes_also_the_driver_kept_for_its_pipeline(checking: Drivers) -> None:
    checking.on(checked("1", "x", keep=True))
    assert checking.on(check("y", "d")) == (starts("2"),)
    assert checking.on(check("z", "c")) == (checks("1", "z"),)
    checking.on(checked("1", "z"))
    assert checking.states()["1"] is DriverState.CHECKING, "y waits, and it is kept no more"


def test_failed_start_costs_a_check_its_second_time() -> None:
    drivers = Drivers()
    drivers.on(check("x"))
    assert drivers.on(gone("1")) == (starts("2"),)
    assert drivers.on(gone("2")) == (ReportCheckFailed(check_id="x", why="driver_exited"),)


def test_check_whose_driver_dies_is_repeated_once_before_other_checks(checking: Drivers) -> None:
    checking.on(check("y"), gone("1"))
    assert checking.on(ready("2"))[0] == checks("2", "x")
    actions = checking.on(gone("2"))
    assert ReportCheckFailed(check_id="x", why="driver_exited") in actions
    assert checking.on(ready("3")) == (checks("3", "y"),)


def test_kept_driver_is_idle_only_when_it_is_kept_no_more(checking: Drivers) -> None:
    checking.on(checked("1", "x", keep=True))
    assert checking.after(KEPT_MS + IDLE_MS - 1) == ()
    assert checking.after(1) == (EndProcess(driver_id="1"),)


def test_time_of_a_check_runs_from_its_begin(checking: Drivers) -> None:
    """Before, its driver may be warming up, for as long as a cold one takes to start."""
    check_ms = checking.pool.limits.check_ms
    assert checking.after(check_ms) == ()
    checking.on(begins("1", "another"), begins("1", "x"))
    assert checking.after(check_ms - 1) == ()
    assert checking.after(1)[0] == KillProcess(driver_id="1")


def test_check_that_never_begins_is_the_fault_of_its_driver(checking: Drivers) -> None:
    failed = ReportCheckFailed(check_id="x", why="not_started")
    assert checking.after(PATIENCE_MS[DriverState.CHECKING] - 1) == ()
    assert checking.after(1) == (KillProcess(driver_id="1"), failed)


def test_check_that_takes_too_long_fails_and_is_not_repeated(checking: Drivers) -> None:
    failed = ReportCheckFailed(check_id="x", why="deadline")
    checking.on(begins("1", "x"))
    assert checking.after(Limits(spares=0, starts=1).check_ms - 1) == ()
    assert checking.after(1) == (KillProcess(driver_id="1"), failed)
    assert checking.on(checked("1", "x")) == ()
    assert checking.on(gone("1")) == ()


def test_check_that_nobody_wants_is_forgotten(checking: Drivers) -> None:
    checking.on(check("y"))
    assert checking.on(CheckCancelled(check_id="x")) == (KillProcess(driver_id="1"),)
    assert checking.on(gone("1")) == ()
    assert checking.on(CheckCancelled(check_id="y")) == ()
    assert checking.on(ready("2")) == ()


def test_answer_of_another_check_is_not_heard(checking: Drivers) -> None:
    checking.on(checked("1", "y"))
    assert checking.states()["1"] is DriverState.CHECKING


def test_what_is_only_checked_comes_last(running: Drivers) -> None:
    running.on(only_check("v"), want("b"), check("x"), want("u", urgent=True))
    line = running.pool.queue
    assert [getattr(ask, "check_id", ask.pipeline_uid) for ask in line] == ["u", "x", "b", "v"]


def test_one_driver_serves_all_that_is_only_checked() -> None:
    drivers = Drivers(starts=3)
    assert drivers.on(only_check("v")) == (starts("1"),)
    assert drivers.on(only_check("w")) == ()
    assert drivers.on(ready("1")) == (checks("1", "v"),)
    assert drivers.on(only_check("x")) == ()
    assert drivers.on(checked("1", "v", keep=True)) == (checks("1", "w"),)
    assert drivers.on(check("y", "c")) == (starts("2"),)


def test_a_driver_is_kept_for_nothing_that_is_only_checked() -> None:
    drivers = Drivers()
    drivers.on(only_check("v"), ready("1"), checked("1", "v", keep=True))
    assert drivers.on(want("a")) == (runs("1", "a"),)


def test_what_is_only_checked_stays_so_in_the_next_driver() -> None:
    drivers = Drivers()
    drivers.on(only_check("v"), ready("1"))
    assert drivers.on(gone("1")) == (starts("2"),)
    drivers.on(want("a"))
    assert drivers.on(ready("2")) == (runs("2", "a"),)


def test_a_driver_ends_after_so_many_checks_unless_a_run_is_to_follow() -> None:
    drivers = Drivers()
    drivers.pool = replace(drivers.pool, limits=Limits(spares=0, starts=1, checks=2))
    drivers.on(only_check("v"), ready("1"))
    assert drivers.on(checked("1", "v")) == ()
    drivers.on(check("x", "a"))
    assert drivers.on(checked("1", "x", keep=True)) == ()
    drivers.on(check("y", "a"))
    assert drivers.on(checked("1", "y")) == (EndProcess(driver_id="1"),)
