"""When drivers are started that nobody waits for, and when they end."""

import pytest

from unit.stage_runner.pools import (
    Drivers,
    begun,
    check,
    checked,
    gone,
    over,
    ready,
    runs,
    starts,
    waits,
    want,
)
from waybill_stage_runner.core.pool.assign import (
    FIRST_SPARE_AFTER_MS,
    IDLE_MS,
    MANY,
    SPARE_AFTER_MS,
)
from waybill_stage_runner.core.pool.model import (
    DriverState,
    EndAll,
    EndProcess,
    PoolEvent,
    RunEnded,
)
from waybill_stage_runner.core.tick import Tick


@pytest.fixture
def spare() -> Drivers:
    """Driver 1 is the only spare."""
    drivers = Drivers(spares=1)
    drivers.on(Tick(), ready("1"))
    return drivers


def test_spares_are_kept_and_taken_at_once() -> None:
    drivers = Drivers(spares=1)
    assert drivers.after(0) == (starts("1"),)
    assert drivers.on(ready("1")) == ()
    assert drivers.on(want("a")) == (runs("1", "a"),)


def test_first_run_of_a_runner_has_the_cores_for_itself() -> None:
    drivers = Drivers(spares=1, new=True)
    assert drivers.after(FIRST_SPARE_AFTER_MS) == (), "nothing runs yet"
    drivers.on(want("a"), ready("1"))
    drivers.after(10_000)
    drivers.on(begun("1"))
    assert drivers.after(FIRST_SPARE_AFTER_MS - 1) == ()
    assert drivers.after(1) == (starts("2"),)


@pytest.mark.parametrize("requested", [want("a"), check("x")], ids=["run", "check"])
def test_spare_that_was_taken_is_replaced_a_little_later(
    spare: Drivers, requested: PoolEvent
) -> None:
    spare.on(requested)
    assert spare.after(SPARE_AFTER_MS - 1) == ()
    assert spare.after(1) == (starts("2"),)


def test_run_that_ends_meanwhile_leaves_its_driver_as_the_spare(spare: Drivers) -> None:
    spare.on(want("a"))
    spare.after(SPARE_AFTER_MS - 1)
    assert spare.on(RunEnded(driver_id="1")) == (over("a", 0, "1"),)
    assert spare.after(1) == ()


def test_who_waits_in_line_gets_a_driver_started_at_once(spare: Drivers) -> None:
    spare.on(want("a"))
    assert spare.on(want("b")) == (starts("2"),)


def test_driver_that_gets_ready_does_not_hasten_the_next_spare() -> None:
    drivers = Drivers(spares=2, starts=1)
    drivers.on(Tick(), ready("1"), ready("2"), want("a"), begun("1"))
    assert drivers.after(SPARE_AFTER_MS) == (starts("3"),)
    drivers.on(want("b"), begun("2"))
    assert drivers.on(ready("3")) == ()
    assert drivers.after(SPARE_AFTER_MS - 1) == ()
    assert drivers.after(1) == (starts("4"),)


def test_driver_that_fails_to_start_does_not_hasten_the_next_spare() -> None:
    drivers = Drivers(spares=2, starts=1)
    drivers.on(Tick(), ready("1"), want("a"), begun("1"), gone("2"))
    assert drivers.after(SPARE_AFTER_MS - 1) == ()
    assert drivers.after(1) == (starts("3"),)


def test_starts_are_limited_and_who_waits_comes_before_spares() -> None:
    drivers = Drivers(spares=2, starts=2)
    assert drivers.after(0) == (starts("1"), starts("2"))
    assert drivers.on(want("a")) == ()
    assert drivers.on(want("b")) == ()
    assert drivers.on(ready("1")) == (runs("1", "a"),)
    assert drivers.on(want("c")) == (waits("c", 1),)
    assert drivers.on(begun("1")) == (starts("3"), waits("c", 0))
    assert drivers.on(ready("2")) == (runs("2", "b"),)
    assert drivers.on(begun("2")) == (), "no spare before c has its driver"


def test_many_that_are_resumed_leave_a_spare_to_who_asks_meanwhile() -> None:
    drivers = Drivers(spares=1)
    drivers.on(*(want(f"resumed {n}") for n in range(MANY + 1)), ready("1"))
    assert drivers.states()["1"] is DriverState.READY
    assert drivers.on(want("asked", urgent=True))[0] == runs("1", "asked")


def test_spare_is_resumed_with_when_few_wait() -> None:
    """It costs the last of them nothing that one was kept ready."""
    drivers = Drivers(spares=1)
    drivers.on(*(want(f"resumed {n}") for n in range(MANY + 1)), ready("1"))
    assert drivers.on(ready("2"))[:2] == (runs("1", "resumed 0"), runs("2", "resumed 1"))


def test_driver_that_was_kept_is_resumed_with_when_no_other_starts() -> None:
    drivers = Drivers(spares=1, starts=1)
    drivers.on(*(want(f"resumed {n}") for n in range(MANY + 1)), ready("1"))
    assert drivers.on(gone("2"))[0] == runs("1", "resumed 0"), "and nobody's run has failed"


def test_none_is_kept_ready_where_no_spares_are_wanted() -> None:
    drivers = Drivers(spares=0)
    drivers.on(*(want(f"resumed {n}") for n in range(MANY + 1)))
    assert drivers.on(ready("1"))[0] == runs("1", "resumed 0")


def test_failed_starts_of_spares_back_off_and_a_success_ends_that() -> None:
    drivers = Drivers(spares=1)
    drivers.after(0)
    pauses = []
    for number in range(1, 9):
        assert drivers.on(gone(f"{number}")) == ()
        pauses.append(drivers.pool.spare_at - drivers.now)
        assert drivers.after(pauses[-1] - 1) == ()
        assert drivers.after(1) == (starts(f"{number + 1}"),)
    assert pauses == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]
    drivers.on(ready("9"))
    assert drivers.on(gone("9")) == (starts("10"),)
    drivers.on(gone("10"))
    assert drivers.pool.spare_at == drivers.now + 1_000


def test_backoff_of_spares_holds_up_nobody_who_waits() -> None:
    drivers = Drivers(spares=1)
    drivers.on(Tick(), gone("1"))
    assert starts("2") in drivers.on(want("a"))


def test_driver_becomes_a_spare_where_one_is_missing() -> None:
    drivers = Drivers(spares=1, starts=1)
    drivers.on(want("a"), ready("1"))
    assert drivers.on(RunEnded(driver_id="1")) == (over("a", 0, "1"),)
    assert drivers.states()["1"] is DriverState.READY


def test_spares_too_many_end_after_a_while() -> None:
    drivers = Drivers(spares=1)
    drivers.on(check("x"), check("y"), ready("1"), ready("2"))
    drivers.on(checked("1", "x"), checked("2", "y"))
    assert drivers.after(IDLE_MS - 1) == ()
    assert drivers.after(1) == (EndProcess(driver_id="1"),)
    drivers.on(gone("1"))
    assert drivers.after(IDLE_MS) == ()


def test_after_the_end_no_spare_is_missed() -> None:
    drivers = Drivers(spares=2)
    drivers.on(want("a"), ready("1"), ready("2"), ready("3"), EndAll())
    assert drivers.on(RunEnded(driver_id="1")) == (over("a", 0, "1"), EndProcess(driver_id="1"))
    drivers.on(gone("1"), gone("2"), gone("3"))
    drivers.after(60_000)
    assert drivers.states() == {}
