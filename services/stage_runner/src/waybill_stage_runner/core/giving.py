"""Gives drivers to those who wait, and keeps the spare ones. No I/O, no clock.

It does all that can be done now: `placement` calls it after each event. The line is served from its
head, but nobody waits behind one who cannot take what is there.
"""

from dataclasses import replace
from typing import Final

from waybill_stage_runner.core.placing import (
    Ask,
    CheckAsk,
    Driver,
    DriverState,
    EndProcess,
    GiveCheck,
    GiveRun,
    KillProcess,
    Placement,
    PlacementMove,
    RunAsk,
    StartProcess,
    TellWaits,
)

BEGINS_MS_MAX: Final = 30_000  # one that begins for longer waits for something, and needs no core
IDLE_MS: Final = 30_000  # the next one who wants a driver may come at once
MANY: Final = 4  # of more that are resumed, the last waits for long in any case
SPARE_AFTER_MS: Final = 3_000
"""A spare that was taken is not replaced at once: what has just begun needs the cores, and a run
that ends for it leaves its driver."""
FIRST_SPARE_AFTER_MS: Final = 60_000
"""The first run of a runner has the cores for itself: who starts a stack waits for that one."""

Decision = tuple[Placement, tuple[PlacementMove, ...]]


def give(placement: Placement, now: int) -> Decision:
    moves: tuple[PlacementMove, ...] = ()
    for step in (_give_closing, _serve, _start_missing, _end_idle):
        placement, more = step(placement, now)
        moves += more
    return placement, moves


def in_order(line: tuple[Ask, ...]) -> tuple[Ask, ...]:
    """Urgent runs, checks for runs, other runs, other checks; those of one sort as they stand."""
    return tuple(sorted(line, key=_rank))


def _rank(ask: Ask) -> int:
    if isinstance(ask, CheckAsk):
        return 1 if ask.for_run else 3
    return 0 if ask.urgent else 2


def start(placement: Placement, now: int, *, closes: str | None = None) -> Decision:
    """`closes`: the pipeline that it only closes, for which it needs no Spark."""
    spark = closes is None
    driver = Driver(
        id=f"{placement.next_id}",
        state=DriverState.STARTING,
        since=now,
        spark=spark,
        pipeline_uid=closes,
    )
    started = replace(placement.having(driver), next_id=placement.next_id + 1)
    return started, (StartProcess(driver_id=driver.id, spark=spark),)


def end(placement: Placement, driver: Driver, now: int) -> Decision:
    return placement.having(_ending(driver, now)), (EndProcess(driver_id=driver.id),)


def kill(placement: Placement, driver: Driver, now: int) -> Decision:
    return placement.having(_ending(driver, now)), (KillProcess(driver_id=driver.id),)


def emptied(driver: Driver, state: DriverState, now: int) -> Driver:
    """In another state, with no run or check, and kept for nobody."""
    return replace(
        driver,
        state=state,
        since=now,
        pipeline_uid=None,
        check_id=None,
        begun=False,
        again=False,
        for_run=True,
        long=False,
        kept_for=None,
        kept_until=0,
    )


def _ending(driver: Driver, now: int) -> Driver:
    """A run is over when the driver is gone; of its check nothing is said any more."""
    uid = driver.pipeline_uid if driver.check_id is None else None
    return replace(emptied(driver, DriverState.ENDING, now), pipeline_uid=uid)


def servable(placement: Placement) -> tuple[Ask, ...]:
    """Those in line whom a driver would help: not the run whose last driver is not gone yet."""
    return tuple(
        ask
        for ask in placement.line
        if isinstance(ask, CheckAsk) or not _has_run(placement, ask.pipeline_uid)
    )


def _has_run(placement: Placement, pipeline_uid: str) -> bool:
    return any(d.has_run(pipeline_uid) for d in placement.drivers.values())


def places(before: Placement, after: Placement) -> tuple[TellWaits, ...]:
    """What has changed for the runs that wait."""
    had, have = _places(before), _places(after)
    served = {uid: 0 for uid in had if uid not in have and _is_served(after, uid)}
    changed = {uid: place for uid, place in have.items() if had.get(uid) != place}
    told = served | changed
    return tuple(TellWaits(pipeline_uid=uid, place=place) for uid, place in told.items())


def _places(placement: Placement) -> dict[str, int]:
    """Of those for whom no driver starts yet."""
    line = enumerate(placement.line, start=1 - _starting(placement))
    return {ask.pipeline_uid: at for at, ask in line if isinstance(ask, RunAsk) and at > 0}


def _is_served(placement: Placement, pipeline_uid: str) -> bool:
    """Not by the driver that still dies since it was wanted anew."""
    waits = any(isinstance(a, RunAsk) and a.pipeline_uid == pipeline_uid for a in placement.line)
    having = (d for d in placement.drivers.values() if d.has_run(pipeline_uid))
    return waits or any(not driver.replaced for driver in having)


def _starting(placement: Placement) -> int:
    """One that was killed because it was late counts until it is gone."""
    return sum(d.spark and not d.was_ready for d in placement.drivers.values())


def _give_closing(placement: Placement, now: int) -> Decision:
    moves: tuple[PlacementMove, ...] = ()
    for driver in placement.drivers.values():
        uid = driver.pipeline_uid
        if driver.spark or driver.state is not DriverState.READY or uid is None:
            continue
        if not _has_run(placement.without(driver), uid):
            placement, given = _give_run(placement, driver, uid, now)
            moves += given
    return placement, moves


def _serve(placement: Placement, now: int) -> Decision:
    moves: tuple[PlacementMove, ...] = ()
    for ask in servable(placement):
        driver = _driver_for(placement, ask, now)
        if driver is None:
            continue
        placement = replace(placement, line=tuple(a for a in placement.line if a != ask))
        if isinstance(ask, RunAsk):
            placement, given = _give_run(placement, driver, ask.pipeline_uid, now)
        else:
            placement, given = _give_check(placement, driver, ask, now)
        moves += given
    return placement, moves


def _driver_for(placement: Placement, ask: Ask, now: int) -> Driver | None:
    """The one that holds what was compiled last, else the oldest that anybody may take."""
    kept = [d for d in placement.drivers.values() if d.kept_for == ask.pipeline_uid]
    if kept:
        return max(kept, key=lambda driver: driver.kept_until)
    free = placement.free(now)
    if len(free) == 1 and _is_resumed(ask) and _leaves_one(placement):
        return None
    return next(iter(free), None)


def _leaves_one(placement: Placement) -> bool:
    """Many that are resumed leave a spare driver to a person who asks meanwhile, if more come."""
    wanted = placement.limits.spares > 0 and not placement.failures
    return wanted and sum(map(_is_resumed, placement.line)) > MANY


def _is_resumed(ask: Ask) -> bool:
    return isinstance(ask, RunAsk) and not ask.urgent


def _give_run(placement: Placement, driver: Driver, pipeline_uid: str, now: int) -> Decision:
    running = replace(
        emptied(driver, DriverState.RUNNING, now), pipeline_uid=pipeline_uid, runs=driver.runs + 1
    )
    given = _later_spare(placement.having(running), now)
    return given, (GiveRun(driver_id=driver.id, pipeline_uid=pipeline_uid),)


def _give_check(placement: Placement, driver: Driver, ask: CheckAsk, now: int) -> Decision:
    checking = replace(
        emptied(driver, DriverState.CHECKING, now),
        pipeline_uid=ask.pipeline_uid,
        check_id=ask.check_id,
        again=ask.again,
        for_run=ask.for_run,
        long=ask.long,
    )
    given = _later_spare(placement.having(checking), now)
    return given, (GiveCheck(driver_id=driver.id, check_id=ask.check_id),)


def _later_spare(placement: Placement, now: int) -> Placement:
    return replace(placement, spare_at=max(placement.spare_at, now + SPARE_AFTER_MS))


def _start_missing(placement: Placement, now: int) -> Decision:
    starting = _starting(placement)
    spares = missing_spares(placement, now) if _may_start_spares(placement, now) else 0
    beginning = sum(_begins(driver, now) for driver in placement.drivers.values())
    wanted = min(placement.limits.starts - beginning, _needed(placement) + spares)
    moves: tuple[PlacementMove, ...] = ()
    for _ in range(starting, wanted):
        placement, started = start(placement, now)
        moves += started
    return placement, moves


def _may_start_spares(placement: Placement, now: int) -> bool:
    first = placement.spares_from
    return first is not None and now >= max(first, placement.spare_at)


def _begins(driver: Driver, now: int) -> bool:
    """Whether it compiles what is to run, or begins its run: as much work as a start."""
    if not driver.spark or now - driver.since >= BEGINS_MS_MAX:
        return False
    if driver.state is DriverState.CHECKING:
        return driver.for_run
    return driver.state is DriverState.RUNNING and not driver.begun


def _needed(placement: Placement) -> int:
    """A driver for each in line; of those that are only checked one takes one after the other, but
    for one that is long at work."""
    only_checked = [a for a in placement.line if isinstance(a, CheckAsk) and not a.for_run]
    drivers = placement.drivers.values()
    at_work = any(not driver.for_run and not driver.long for driver in drivers)
    return len(placement.line) - len(only_checked) + int(bool(only_checked) and not at_work)


def missing_spares(placement: Placement, now: int) -> int:
    return max(0, placement.limits.spares - len(placement.free(now)))


def _end_idle(placement: Placement, now: int) -> Decision:
    """One that has just become free is warm: it, and as many as are to be spare, stay for a while,
    so that who stops one pipeline and starts another starts no process."""
    moves: tuple[PlacementMove, ...] = ()
    if placement.line:
        return placement, moves
    free = placement.free(now)
    idle = [d for d in free if now - max(d.since, d.kept_until) >= IDLE_MS]
    stay = placement.limits.spares + (len(idle) < len(free))
    for driver in idle[: max(0, len(free) - stay)]:
        placement, ended = end(placement, driver, now)
        moves += ended
    return placement, moves
