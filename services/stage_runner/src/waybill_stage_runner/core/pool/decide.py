"""Decides which driver gets which run or check. Never does I/O, never reads the clock.

The pool works in this order. A run or a check is wanted, and joins one queue. Urgent runs come
first, then checks of what is to run, then resumed runs, then other checks. After each event
`assign` serves the queue from its head with drivers that are ready. If there are too few, it starts
more, at most `starts` at once.

A driver gets one run or one check at a time. After a check of a manifest that is likely to run, it
is kept for that pipeline for `KEPT_MS`, because it has compiled the manifest. After a run it is
ready again, unless it has made enough runs or nobody needs it.

A pipeline never has two runs at once. If its run is wanted again, the driver that has it is killed.
The new run waits until that driver has ended.

Failures: a driver that is late is killed at the next tick, and its check fails. If a driver dies,
its run is over, and `supervision` decides whether to start it again. Its check is repeated once at
the head of the checks, because the check itself may be what kills drivers. If a driver dies before
it was ready, the head of the queue is charged with it: a run is over, a check is repeated once.

At the end of the runner all runs are stopped in order, and other drivers are killed. Nothing is
started from then on.
"""

from dataclasses import replace
from typing import Final, assert_never

from waybill_stage_runner.core.pipelines.actions import Tick
from waybill_stage_runner.core.pool.assign import (
    FIRST_SPARE_AFTER_MS,
    SPARE_AFTER_MS,
    Decision,
    emptied,
    end,
    give,
    in_order,
    kill,
    places,
    servable,
)
from waybill_stage_runner.core.pool.model import (
    CheckAsk,
    CheckBegun,
    CheckDone,
    CheckFailure,
    CheckUnwanted,
    CheckWanted,
    DriverGone,
    DriverReady,
    DriverState,
    EndAll,
    Placement,
    PlacementEvent,
    PlacementMove,
    RunAsk,
    RunBegun,
    RunDone,
    RunUnwanted,
    RunWanted,
    StopRun,
    TellCheckFailed,
    TellRunOver,
)
from waybill_stage_runner.core.pool.requests import NOT_CLOSED, follow

KEPT_MS: Final = 90_000  # who has checked a manifest applies it soon, or not at all
PATIENCE_MS: Final = {
    DriverState.STARTING: 180_000,  # a cold JVM on a loaded machine takes 20 s
    DriverState.CHECKING: 180_000,  # until the check starts: warming up takes as long
    DriverState.ENDING: 30_000,
}
BACKOFF_MS_FIRST: Final = 1_000
BACKOFF_MS_MAX: Final = 60_000
DOUBLINGS_MAX: Final = 6  # enough to reach the longest wait


def decide(placement: Placement, event: PlacementEvent, now: int) -> Decision:
    after, moves = _react(placement, event, now)
    if not after.ended:
        after, given = give(after, now)
        moves += given
    return after, moves + places(placement, after)


def _react(placement: Placement, event: PlacementEvent, now: int) -> Decision:
    match event:
        case RunWanted() | RunUnwanted() | CheckWanted() | CheckUnwanted():
            return follow(placement, event, now)
        case DriverReady():
            return _ready(placement, event, now), ()
        case CheckBegun():
            return _check_begun(placement, event, now), ()
        case CheckDone():
            return _check_done(placement, event, now)
        case RunBegun():
            return _run_begun(placement, event, now), ()
        case RunDone():
            return _run_done(placement, event, now)
        case DriverGone():
            return _gone(placement, event, now)
        case Tick():
            return _kill_overdue(placement, now)
        case EndAll():
            return _end_all(placement, now)
        case _:
            assert_never(event)


def _ready(placement: Placement, event: DriverReady, now: int) -> Placement:
    driver = placement.in_state(event.driver_id, DriverState.STARTING)
    if driver is None:
        return placement  # it was late, and was killed
    ready = placement.having(replace(driver, state=DriverState.READY, was_ready=True, since=now))
    if not driver.spark:
        return ready
    spare_at = min(placement.spare_at, now + SPARE_AFTER_MS)  # a spare may just have been given
    return replace(ready, failures=0, spare_at=spare_at)


def _check_begun(placement: Placement, event: CheckBegun, now: int) -> Placement:
    driver = placement.in_state(event.driver_id, DriverState.CHECKING)
    if driver is None or driver.check_id != event.check_id:
        return placement
    return placement.having(replace(driver, begun=True, since=now))


def _check_done(placement: Placement, event: CheckDone, now: int) -> Decision:
    driver = placement.in_state(event.driver_id, DriverState.CHECKING)
    if driver is None or driver.check_id != event.check_id:
        return placement, ()
    ready = replace(emptied(driver, DriverState.READY, now), checks=driver.checks + 1)
    if event.keep and driver.for_run:
        ready = replace(ready, kept_for=driver.pipeline_uid, kept_until=now + KEPT_MS)
    elif ready.checks >= placement.limits.checks:
        return end(placement, ready, now)
    return placement.having(ready), ()


def _run_begun(placement: Placement, event: RunBegun, now: int) -> Placement:
    driver = placement.in_state(event.driver_id, DriverState.RUNNING)
    if driver is None:
        return placement
    if placement.spares_from is None:
        placement = replace(placement, spares_from=now + FIRST_SPARE_AFTER_MS)
    return placement.having(replace(driver, begun=True))


def _run_done(placement: Placement, event: RunDone, now: int) -> Decision:
    driver = placement.in_state(event.driver_id, DriverState.RUNNING)
    if driver is None or driver.pipeline_uid is None:
        return placement, ()  # it was killed; its run is over when the process has ended
    over = TellRunOver(pipeline_uid=driver.pipeline_uid, exit_code=0, driver_id=driver.id)
    wanted = bool(servable(placement)) or placement.limits.spares > 0
    driver = emptied(driver, DriverState.READY, now)
    if driver.spark and driver.runs < placement.limits.runs and wanted and not placement.ended:
        return placement.having(driver), (over,)
    placement, ended = end(placement, driver, now)
    return placement, (over, *ended)


def _gone(placement: Placement, event: DriverGone, now: int) -> Decision:
    driver = placement.drivers.get(event.driver_id)
    if driver is None:
        return placement, ()
    left = placement.without(driver)
    uid, check_id = driver.pipeline_uid, driver.check_id
    if uid is None:
        return (left, ()) if driver.was_ready else _failed_start(left, event, now)
    if check_id is not None:
        ask = CheckAsk(
            check_id=check_id,
            pipeline_uid=uid,
            again=driver.again,
            for_run=driver.for_run,
            long=driver.long,
        )
        return _once_more(left, ask)
    if driver.replaced:
        return left, ()
    code = event.exit_code or NOT_CLOSED  # a run that ended well has reported it before
    return left, (TellRunOver(pipeline_uid=uid, exit_code=code, driver_id=driver.id),)


def _failed_start(placement: Placement, event: DriverGone, now: int) -> Decision:
    """Count the failed start against the head of the queue, so that nothing starts in vain without
    end.

    If the queue is empty or a free driver exists, nobody is charged, and the next spare starts
    later.
    """
    if not placement.line or placement.free(now):
        wait = min(BACKOFF_MS_FIRST * 2 ** min(placement.failures, DOUBLINGS_MAX), BACKOFF_MS_MAX)
        spare_at = max(placement.spare_at, now + wait)
        return replace(placement, failures=placement.failures + 1, spare_at=spare_at), ()
    first, *others = placement.line
    placement = replace(placement, line=tuple(others))
    if isinstance(first, CheckAsk):
        return _once_more(placement, first)
    over = TellRunOver(
        pipeline_uid=first.pipeline_uid, exit_code=event.exit_code, driver_id=event.driver_id
    )
    return placement, (over,)


def _once_more(placement: Placement, ask: CheckAsk) -> Decision:
    """Queue the check again at the head of the checks, but only once: it may be what ends the
    drivers.
    """
    if ask.again:
        return placement, (TellCheckFailed(check_id=ask.check_id, why="gone"),)
    return replace(placement, line=in_order((replace(ask, again=True), *placement.line))), ()


def _kill_overdue(placement: Placement, now: int) -> Decision:
    moves: tuple[PlacementMove, ...] = ()
    for driver in placement.drivers.values():
        checking = driver.state is DriverState.CHECKING and driver.begun
        limits = placement.limits
        of_check = limits.long_ms if driver.long else limits.check_ms
        patience = of_check if checking else PATIENCE_MS.get(driver.state)
        if patience is None or now - driver.since < patience:
            continue
        placement, killed = kill(placement, driver, now)
        moves += killed
        if driver.check_id is not None:
            why: CheckFailure = "deadline" if driver.begun else "not_begun"
            moves += (TellCheckFailed(check_id=driver.check_id, why=why),)
    return placement, moves


def _end_all(placement: Placement, now: int) -> Decision:
    """Stop runs and maintenance in good order, and kill all other drivers.

    The others have nothing to save, and each would need a second or more to end by itself.
    """
    moves: tuple[PlacementMove, ...] = tuple(
        TellRunOver(pipeline_uid=ask.pipeline_uid, exit_code=0, driver_id=None)
        for ask in placement.line
        if isinstance(ask, RunAsk)
    )
    for driver in placement.drivers.values():
        if driver.state is DriverState.RUNNING and driver.pipeline_uid is not None:
            moves += (StopRun(driver_id=driver.id, pipeline_uid=driver.pipeline_uid),)
        elif driver.state is not DriverState.ENDING:
            stop = end if driver.long or not driver.spark else kill
            placement, ended = stop(placement, driver, now)
            moves += ended
    return replace(placement, line=(), ended=True), moves
