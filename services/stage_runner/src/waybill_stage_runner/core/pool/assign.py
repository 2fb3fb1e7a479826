"""Gives drivers to the runs and checks that wait, and keeps spare drivers ready.

`decide` calls `assign` after each event, and it does all that can be done then. It serves the
queue from its head. Whoever cannot use a free driver does not block those after it. No I/O, no
clock.
"""

from collections import Counter
from dataclasses import replace
from typing import Final

from waybill_stage_runner.core.pool import model

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

Decision = tuple[model.Pool, tuple[model.PoolAction, ...]]


def assign(pool: model.Pool, now: int) -> Decision:
    actions: tuple[model.PoolAction, ...] = ()
    for step in (_assign_closing, _serve, _start_missing, _end_idle):
        pool, more = step(pool, now)
        actions += more
    return pool, actions


def in_order(queue: tuple[model.Job, ...]) -> tuple[model.Job, ...]:
    """Sort the queue: urgent runs, checks for runs, other runs, other checks.

    Those of one sort keep their order.
    """
    return tuple(sorted(queue, key=_rank))


def _rank(job: model.Job) -> int:
    if isinstance(job, model.RunJob):
        return 0 if job.urgent else 2
    return 1 if job.for_run else 3


def start(
    pool: model.Pool, now: int, *, cores: int | None = None, closes: str | None = None
) -> Decision:
    """Start a driver. `closes` is the pipeline if the driver only closes sinks, which needs no
    Spark.
    """
    spark = closes is None
    driver = model.Driver(
        id=f"{pool.next_id}",
        state=model.DriverState.STARTING,
        since=now,
        spark=spark,
        cores=cores,
        job=None if closes is None else model.RunJob(pipeline_uid=closes),
    )
    started = replace(pool.with_driver(driver), next_id=pool.next_id + 1)
    return started, (model.StartProcess(driver_id=driver.id, spark=spark, cores=cores),)


def end(pool: model.Pool, driver: model.Driver, now: int) -> Decision:
    return pool.with_driver(_as_ending(driver, now)), (model.EndProcess(driver_id=driver.id),)


def kill(pool: model.Pool, driver: model.Driver, now: int) -> Decision:
    return pool.with_driver(_as_ending(driver, now)), (model.KillProcess(driver_id=driver.id),)


def without_job(driver: model.Driver, state: model.DriverState, now: int) -> model.Driver:
    """Return the driver in another state, without a job, and kept for no pipeline."""
    return replace(driver, state=state, since=now, job=None, kept_for=None, kept_until=0)


def _as_ending(driver: model.Driver, now: int) -> model.Driver:
    """Return the driver in the state ENDING.

    It keeps its run, because a run is over only when its driver has ended. It loses its check:
    nothing is reported of that any more.
    """
    run = driver.job if isinstance(driver.job, model.RunJob) else None
    return replace(without_job(driver, model.DriverState.ENDING, now), job=run)


def servable(pool: model.Pool) -> tuple[model.Job, ...]:
    """Return those in the queue that can use a driver now.

    A run cannot if an earlier driver of its pipeline still exists.
    """
    return tuple(
        job
        for job in pool.queue
        if not (isinstance(job, model.RunJob) and _has_run(pool, job.pipeline_uid))
    )


def _has_run(pool: model.Pool, pipeline_uid: str) -> bool:
    return any(d.has_run(pipeline_uid) for d in pool.drivers.values())


def position_reports(
    before: model.Pool, after: model.Pool
) -> tuple[model.ReportQueuePosition, ...]:
    """Return a report for each run that waits and has another queue position than before."""
    had, have = _positions(before), _positions(after)
    served = {uid: 0 for uid in had if uid not in have and _is_served(after, uid)}
    changed = {uid: position for uid, position in have.items() if had.get(uid) != position}
    positions = (served | changed).items()
    return tuple(
        model.ReportQueuePosition(pipeline_uid=uid, queue_position=at) for uid, at in positions
    )


def _positions(pool: model.Pool) -> dict[str, int]:
    """Return the queue position of each waiting run, except those for which a driver starts
    already.
    """
    queue = enumerate(pool.queue, start=1 - _count_starting(pool))
    return {job.pipeline_uid: at for at, job in queue if isinstance(job, model.RunJob) and at > 0}


def _is_served(pool: model.Pool, pipeline_uid: str) -> bool:
    """Return True if the pipeline waits, or has a driver that nobody replaced.

    A driver that still ends because its run was wanted again does not count.
    """
    waits = any(isinstance(j, model.RunJob) and j.pipeline_uid == pipeline_uid for j in pool.queue)
    return waits or any(driver.holds_run(pipeline_uid) for driver in pool.drivers.values())


def _count_starting(pool: model.Pool) -> int:
    """Count drivers that have not become ready.

    One that was killed for being late counts until it has ended.
    """
    return sum(map(_is_starting, pool.drivers.values()))


def _is_starting(driver: model.Driver) -> bool:
    return driver.spark and not driver.was_ready


def _assign_closing(pool: model.Pool, now: int) -> Decision:
    actions: tuple[model.PoolAction, ...] = ()
    for driver in pool.drivers.values():
        job = driver.job
        if driver.spark or driver.state is not model.DriverState.READY or job is None:
            continue
        if not _has_run(pool.without(driver), job.pipeline_uid):
            pool, assigned = _assign(pool, driver, job, now)
            actions += assigned
    return pool, actions


def _serve(pool: model.Pool, now: int) -> Decision:
    actions: tuple[model.PoolAction, ...] = ()
    for job in servable(pool):
        driver = _driver_for(pool, job, now)
        if driver is not None:
            pool = replace(pool, queue=tuple(each for each in pool.queue if each != job))
            pool, assigned = _assign(pool, driver, job, now)
            actions += assigned
    return pool, actions


def _driver_for(pool: model.Pool, job: model.Job, now: int) -> model.Driver | None:
    """Return the free driver for `job`, or None.

    It is the one that was kept for its pipeline last, because it has compiled the manifest; else
    the oldest one that is free for all and fits. For a check one is best that its run can have.
    """
    kept = [d for d in pool.drivers.values() if d.kept_for == job.pipeline_uid and d.fits(job)]
    if kept:
        return max(kept, key=lambda driver: driver.kept_until)
    fitting = (driver for driver in pool.free(now) if driver.fits(job))
    free = sorted(fitting, key=lambda driver: driver.cores != job.cores)
    if len(free) == 1 and _is_resumed(job) and _leaves_one(pool):
        return None
    return next(iter(free), None)


def _leaves_one(pool: model.Pool) -> bool:
    """Return True if one free driver is left to people while many runs are resumed."""
    wanted = pool.limits.spares > 0 and not pool.failures
    return wanted and sum(map(_is_resumed, pool.queue)) > MANY


def _is_resumed(job: model.Job) -> bool:
    return isinstance(job, model.RunJob) and not job.urgent


def _assign(pool: model.Pool, driver: model.Driver, job: model.Job, now: int) -> Decision:
    action: model.PoolAction
    if isinstance(job, model.RunJob):
        busy = without_job(replace(driver, runs=driver.runs + 1), model.DriverState.RUNNING, now)
        action = model.AssignRun(driver_id=driver.id, pipeline_uid=job.pipeline_uid)
    else:
        busy = without_job(driver, model.DriverState.CHECKING, now)
        action = model.AssignCheck(driver_id=driver.id, check_id=job.check_id)
    return _later_spare(pool.with_driver(replace(busy, job=job)), now), (action,)


def _later_spare(pool: model.Pool, now: int) -> model.Pool:
    return replace(pool, spare_at=max(pool.spare_at, now + SPARE_AFTER_MS))


def _start_missing(pool: model.Pool, now: int) -> Decision:
    spares = count_missing_spares(pool, now) if _may_start_spares(pool, now) else 0
    beginning = sum(_begins(driver, now) for driver in pool.drivers.values())
    room = max(0, pool.limits.starts - beginning - _count_starting(pool))
    actions: tuple[model.PoolAction, ...] = ()
    for cores in _not_starting(pool, [*_list_needs(pool), *[None] * spares])[:room]:
        pool, started = start(pool, now, cores=cores)
        actions += started
    return pool, actions


def _not_starting(pool: model.Pool, needed: list[int | None]) -> list[int | None]:
    """Return the cores of the drivers that are needed, in order, without those that start."""
    starting = Counter(d.cores for d in pool.drivers.values() if _is_starting(d))
    missing = []
    for cores in needed:
        if starting[cores]:
            starting[cores] -= 1
        else:
            missing.append(cores)
    return missing


def _may_start_spares(pool: model.Pool, now: int) -> bool:
    first = pool.spares_from
    return first is not None and now >= max(first, pool.spare_at)


def _begins(driver: model.Driver, now: int) -> bool:
    """Return True if the driver compiles what is to run, or starts its run: as much work as a
    start.
    """
    job = driver.job
    if job is None or not driver.spark or now - driver.since >= BEGINS_MS_MAX:
        return False
    if isinstance(job, model.RunJob):
        return driver.state is model.DriverState.RUNNING and not job.started
    return job.for_run


def _list_needs(pool: model.Pool) -> list[int | None]:
    """Return the cores of the drivers that the queue needs: one driver for each run, and for each
    check for a run.

    All other checks share one driver, one after the other. It is left out if a driver is at work
    on such a check already. A maintenance is not such a check, as it may need hours.
    """
    own = [job.cores for job in pool.queue if isinstance(job, model.RunJob) or job.for_run]
    jobs = (driver.job for driver in pool.drivers.values())
    at_work = any(isinstance(job, model.CheckJob) and not job.for_run for job in jobs)
    return own if at_work or len(own) == len(pool.queue) else [*own, None]


def count_missing_spares(pool: model.Pool, now: int) -> int:
    return max(0, pool.limits.spares - len(_spares(pool, now)))


def _spares(pool: model.Pool, now: int) -> list[model.Driver]:
    """Return the free drivers that have the cores of a spare."""
    return [driver for driver in pool.free(now) if driver.cores is None]


def _end_idle(pool: model.Pool, now: int) -> Decision:
    """End drivers that have been free for too long and are more than the spares.

    One that has just become free stays for a while with the spares, so that somebody who stops one
    pipeline and starts another needs no new process. Then those that have read least end: Java has
    compiled what the others do, so that the first batch of a run takes a fraction of the time. One
    that is no spare, because it has other cores, stays no longer.
    """
    actions: tuple[model.PoolAction, ...] = ()
    if pool.queue:
        return pool, actions
    free = _spares(pool, now)
    idle = sorted((each for each in free if _is_idle(each, now)), key=lambda each: each.runs)
    stay = pool.limits.spares + (len(idle) < len(free))
    others = [d for d in pool.free(now) if d.cores is not None and _is_idle(d, now)]
    for driver in (*idle[: max(0, len(free) - stay)], *others):
        pool, ended = end(pool, driver, now)
        actions += ended
    return pool, actions


def _is_idle(driver: model.Driver, now: int) -> bool:
    return now - max(driver.since, driver.kept_until) >= IDLE_MS
