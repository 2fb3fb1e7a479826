"""Gives drivers to the runs and checks that wait, and keeps spare drivers ready.

`decide` calls `give` after each event, and it does all that can be done then. It serves the
queue from its head. Whoever cannot use a free driver does not block those after it. No I/O, no
clock.
"""

from dataclasses import replace
from typing import Final

from waybill_stage_runner.core.pool.model import (
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

BEGINS_MS_MAX: Final = 30_000  # a run that starts for longer waits for something, and needs no core
IDLE_MS: Final = 30_000  # somebody may want the next driver soon
MANY: Final = 4  # if more runs are resumed, the last one waits for long in any case
SPARE_AFTER_MS: Final = 3_000
"""A spare that was given away is not replaced at once. What has just started needs the cores, and a
run that ends for it leaves its driver.
"""
FIRST_SPARE_AFTER_MS: Final = 60_000
"""The first spare starts so long after the first run of this runner started. Who starts a stack
waits for that run, so it has the cores for itself.
"""

Decision = tuple[Placement, tuple[PlacementMove, ...]]


def give(placement: Placement, now: int) -> Decision:
    moves: tuple[PlacementMove, ...] = ()
    for step in (_give_closing, _serve, _start_missing, _end_idle):
        placement, more = step(placement, now)
        moves += more
    return placement, moves


def in_order(line: tuple[Ask, ...]) -> tuple[Ask, ...]:
    """Sort the queue: urgent runs, checks for runs, other runs, other checks.

    Those of one sort keep their order.
    """
    return tuple(sorted(line, key=_rank))


def _rank(ask: Ask) -> int:
    if isinstance(ask, CheckAsk):
        return 1 if ask.for_run else 3
    return 0 if ask.urgent else 2


def start(placement: Placement, now: int, *, closes: str | None = None) -> Decision:
    """Start a driver. `closes` is the pipeline if the driver only closes sinks, which needs no
    Spark.
    """
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
    """Return the driver in another state, without run or check, and kept for no pipeline."""
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
    """Return the driver in the state ENDING.

    It keeps its run, because a run is over only when its driver has ended. It loses its check:
    nothing is reported of that any more.
    """
    uid = driver.pipeline_uid if driver.check_id is None else None
    return replace(emptied(driver, DriverState.ENDING, now), pipeline_uid=uid)


def servable(placement: Placement) -> tuple[Ask, ...]:
    """Return those in the queue that can use a driver now.

    A run cannot if an earlier driver of its pipeline still exists.
    """
    return tuple(
        ask
        for ask in placement.line
        if isinstance(ask, CheckAsk) or not _has_run(placement, ask.pipeline_uid)
    )


def _has_run(placement: Placement, pipeline_uid: str) -> bool:
    return any(d.has_run(pipeline_uid) for d in placement.drivers.values())


def places(before: Placement, after: Placement) -> tuple[TellWaits, ...]:
    """Return a report for each run that waits and has another queue position than before."""
    had, have = _places(before), _places(after)
    served = {uid: 0 for uid in had if uid not in have and _is_served(after, uid)}
    changed = {uid: place for uid, place in have.items() if had.get(uid) != place}
    told = served | changed
    return tuple(TellWaits(pipeline_uid=uid, place=place) for uid, place in told.items())


def _places(placement: Placement) -> dict[str, int]:
    """Return the queue position of each waiting run, except those for which a driver starts
    already.
    """
    line = enumerate(placement.line, start=1 - _starting(placement))
    return {ask.pipeline_uid: at for at, ask in line if isinstance(ask, RunAsk) and at > 0}


def _is_served(placement: Placement, pipeline_uid: str) -> bool:
    """Return True if the pipeline waits, or has a driver that nobody replaced.

    A driver that still ends because its run was wanted again does not count.
    """
    waits = any(isinstance(a, RunAsk) and a.pipeline_uid == pipeline_uid for a in placement.line)
    having = (d for d in placement.drivers.values() if d.has_run(pipeline_uid))
    return waits or any(not driver.replaced for driver in having)


def _starting(placement: Placement) -> int:
    """Count drivers that have not become ready.

    One that was killed for being late counts until it has ended.
    """
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
    """Return the free driver for `ask`, or None.

    It is the one that was kept for its pipeline last, because it has compiled the manifest; else
    the oldest one that is free for all.
    """
    kept = [d for d in placement.drivers.values() if d.kept_for == ask.pipeline_uid]
    if kept:
        return max(kept, key=lambda driver: driver.kept_until)
    free = placement.free(now)
    if len(free) == 1 and _is_resumed(ask) and _leaves_one(placement):
        return None
    return next(iter(free), None)


def _leaves_one(placement: Placement) -> bool:
    """Return True if one free driver is left to people while many runs are resumed."""
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
    """Return True if the driver compiles what is to run, or starts its run: as much work as a
    start.
    """
    if not driver.spark or now - driver.since >= BEGINS_MS_MAX:
        return False
    if driver.state is DriverState.CHECKING:
        return driver.for_run
    return driver.state is DriverState.RUNNING and not driver.begun


def _needed(placement: Placement) -> int:
    """Count the drivers that the queue needs: one for each run, and for each check for a run.

    All other checks share one driver, one after the other. It is not counted if a driver is at work
    on such a check already. A maintenance is not such a check, as it may need hours.
    """
    only_checked = [a for a in placement.line if isinstance(a, CheckAsk) and not a.for_run]
    drivers = placement.drivers.values()
    at_work = any(not driver.for_run and not driver.long for driver in drivers)
    return len(placement.line) - len(only_checked) + int(bool(only_checked) and not at_work)


def missing_spares(placement: Placement, now: int) -> int:
    return max(0, placement.limits.spares - len(placement.free(now)))


def _end_idle(placement: Placement, now: int) -> Decision:
    """End drivers that have been free for too long and are more than the spares.

    One that has just become free is warm. It stays for a while with the spares, so that somebody
    who stops one pipeline and starts another needs no new process.
    """
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
