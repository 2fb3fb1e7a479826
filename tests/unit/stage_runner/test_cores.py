"""Which driver fits a run that asks for other cores than spares have."""

import pytest

from unit.stage_runner.pools import (
    Drivers,
    check,
    checked,
    checks,
    gone,
    only_check,
    over,
    ready,
    runs,
    starts,
    want,
)
from waybill_stage_runner.core.pool.assign import IDLE_MS
from waybill_stage_runner.core.pool.model import EndProcess, PoolEvent, RunEnded
from waybill_stage_runner.core.tick import Tick


@pytest.fixture
def spare() -> Drivers:
    """Driver 1 is the only spare."""
    drivers = Drivers(spares=1)
    drivers.on(Tick(), ready("1"))
    return drivers


def test_spare_does_not_serve_a_run_with_other_cores(spare: Drivers) -> None:
    assert spare.on(want("a", cores=4)) == (starts("2", cores=4),)
    assert spare.on(ready("2")) == (runs("2", "a"),)
    assert spare.on(want("b")) == (runs("1", "b"),)


def test_driver_of_such_a_run_serves_only_others_like_it(spare: Drivers) -> None:
    spare.on(want("a", cores=4), ready("2"))
    assert spare.on(RunEnded(driver_id="2")) == (over("a", 0, "2"),)
    assert spare.on(want("b", cores=3)) == (starts("3", cores=3),)
    assert spare.on(want("c", cores=4)) == (runs("2", "c"),)


def test_free_driver_with_other_cores_is_no_spare_and_ends_when_it_is_idle(spare: Drivers) -> None:
    spare.on(want("a", cores=4), ready("2"), RunEnded(driver_id="2"))
    assert spare.after(IDLE_MS - 1) == ()
    assert spare.after(1) == (EndProcess(driver_id="2"),)


def test_spare_that_starts_does_not_keep_a_run_with_other_cores_waiting() -> None:
    drivers = Drivers(spares=1)
    drivers.on(Tick())
    assert drivers.on(want("a", cores=4)) == (starts("2", cores=4),)


def test_any_driver_serves_for_a_check_and_is_kept_only_if_its_run_can_have_it(
    spare: Drivers,
) -> None:
    assert spare.on(check("x", uid="a", cores=4)) == (checks("1", "x"),)
    spare.on(checked("1", "x", keep=True))
    assert spare.on(want("b")) == (runs("1", "b"),), "nobody waits for a driver that does not fit"


def test_check_gets_the_driver_that_its_run_can_have(spare: Drivers) -> None:
    spare.on(want("a", cores=4), ready("2"), RunEnded(driver_id="2"))
    assert spare.on(check("x", uid="a", cores=4)) == (checks("2", "x"),)
    spare.on(checked("2", "x", keep=True))
    assert spare.on(want("b", cores=4)) == (starts("3", cores=4),), "it is kept for a"
    assert spare.on(want("a", cores=4)) == (runs("2", "a"),)


def test_run_ends_its_driver_if_only_others_wait_that_it_does_not_fit() -> None:
    drivers = Drivers(spares=0, starts=1)
    drivers.on(want("a"), ready("1"), want("b", cores=4))
    assert EndProcess(driver_id="1") in drivers.on(RunEnded(driver_id="1"))


@pytest.mark.parametrize("waits", [want("b"), only_check("x")], ids=["run", "check"])
def test_start_that_fails_is_charged_to_the_run_that_it_was_for(waits: PoolEvent) -> None:
    drivers = Drivers(spares=0, starts=2)
    drivers.on(waits, want("a", cores=4))
    assert over("a", 137, "2") in drivers.on(gone("2"))


def test_free_spare_does_not_excuse_a_run_with_other_cores(spare: Drivers) -> None:
    spare.on(want("a", cores=4))
    assert over("a", 137, "2") in spare.on(gone("2"))
