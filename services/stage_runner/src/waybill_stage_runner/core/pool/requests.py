"""Adds runs and checks to the queue, and removes those that nobody wants any more.

Never does I/O, never reads the clock.
"""

from dataclasses import replace
from typing import Final, assert_never

from waybill_stage_runner.core.pool.assign import Decision, in_order, kill, start
from waybill_stage_runner.core.pool.model import (
    CheckAsk,
    CheckUnwanted,
    CheckWanted,
    Driver,
    DriverState,
    Placement,
    PlacementMove,
    RunAsk,
    RunUnwanted,
    RunWanted,
    StopRun,
    TellRunOver,
    Wish,
)

NOT_CLOSED: Final = 1  # for a closing run that reported no result: 0 would mean that all is closed


def follow(placement: Placement, wish: Wish, now: int) -> Decision:
    match wish:
        case RunWanted():
            return _run_wanted(placement, wish, now)
        case RunUnwanted():
            return _run_unwanted(placement, wish, now)
        case CheckWanted():
            return _check_wanted(placement, wish), ()
        case CheckUnwanted():
            return _check_unwanted(placement, wish, now)
        case _:
            assert_never(wish)


def _run_wanted(placement: Placement, wish: RunWanted, now: int) -> Decision:
    uid = wish.pipeline_uid
    moves: tuple[PlacementMove, ...] = ()
    if (holder := _holder(placement, uid)) is not None:
        placement, moves = kill(placement, replace(holder, replaced=True), now)
    if placement.ended:
        code = NOT_CLOSED if wish.closing else 0
        return placement, (*moves, TellRunOver(pipeline_uid=uid, exit_code=code, driver_id=None))
    if wish.closing:
        placement, started = start(_without_run(placement, uid), now, closes=uid)
        return placement, moves + started
    ask = RunAsk(pipeline_uid=uid, urgent=wish.urgent)
    if ask in placement.line:
        return placement, moves  # it keeps its queue position
    placement = _without_run(placement, uid)
    return replace(placement, line=in_order((*placement.line, ask))), moves


def _holder(placement: Placement, pipeline_uid: str) -> Driver | None:
    """Return the driver that ends the pipeline's run when it ends."""
    having = (d for d in placement.drivers.values() if d.has_run(pipeline_uid))
    return next((d for d in having if not d.replaced), None)


def _without_run(placement: Placement, pipeline_uid: str) -> Placement:
    line = (a for a in placement.line if isinstance(a, CheckAsk) or a.pipeline_uid != pipeline_uid)
    return replace(placement, line=tuple(line))


def _run_unwanted(placement: Placement, wish: RunUnwanted, now: int) -> Decision:
    uid = wish.pipeline_uid
    left = _without_run(placement, uid)
    if left.line != placement.line:
        return left, (TellRunOver(pipeline_uid=uid, exit_code=0, driver_id=None),)
    holder = _holder(placement, uid)
    if holder is None:
        return placement, ()
    if wish.force or holder.state is not DriverState.RUNNING:
        return kill(placement, holder, now)
    return placement, (StopRun(driver_id=holder.id, pipeline_uid=uid),)


def _check_wanted(placement: Placement, wish: CheckWanted) -> Placement:
    if placement.ended:
        return placement
    ask = CheckAsk(
        check_id=wish.check_id,
        pipeline_uid=wish.pipeline_uid,
        for_run=wish.for_run,
        long=wish.long,
    )
    return replace(placement, line=in_order((*placement.line, ask)))


def _check_unwanted(placement: Placement, wish: CheckUnwanted, now: int) -> Decision:
    for driver in placement.drivers.values():
        if driver.check_id == wish.check_id:
            return kill(placement, driver, now)
    line = (a for a in placement.line if isinstance(a, RunAsk) or a.check_id != wish.check_id)
    return replace(placement, line=tuple(line)), ()
