"""Decides which driver gets which run or check. Never does I/O, never reads the clock.

The pool works in this order. A run or a check is wanted, and joins one queue. Urgent runs come
first, then checks of what is to run, then resumed runs, then other checks. After each event
`assign` serves the queue from its head with drivers that are ready. If there are too few, it starts
more, at most `starts` at once.

A driver gets one run or one check at a time. After a check of a manifest that is likely to run, it
is kept for that pipeline for `KEPT_MS`, because it has compiled the manifest. After a run it is
ready again, unless it has made enough runs or nobody needs it.

A driver has the cores of a spare, unless a run needs others. Then one is started for it, and no
spare serves. A check needs no cores of its own, but the run that follows it may.

A pipeline never has two runs at once. If its run is wanted again, the driver that has it is killed.
The new run waits until that driver has ended.

Failures: a driver that is late is killed at the next tick, and its check fails. If a driver dies,
its run is over, and `supervision` decides whether to start it again. Its check is repeated once at
the head of the checks, because the check itself may be what kills drivers. If a driver dies before
it was ready, that counts as a failure of the first in the queue that can use a driver. If that is a
run, it is over; a check is repeated once.

At the end of the runner all runs are stopped in order, and other drivers are killed. Nothing is
started from then on.
"""

from dataclasses import replace
from typing import Final, assert_never

from waybill_stage_runner.core.pool import model
from waybill_stage_runner.core.pool.assign import (
    FIRST_SPARE_AFTER_MS,
    SPARE_AFTER_MS,
    Decision,
    assign,
    end,
    in_order,
    kill,
    position_reports,
    servable,
    without_job,
)
from waybill_stage_runner.core.pool.requests import NOT_CLOSED, accept
from waybill_stage_runner.core.tick import Tick

KEPT_MS: Final = 90_000  # who has checked a manifest applies it soon, or not at all
PATIENCE_MS: Final = {
    model.DriverState.STARTING: 180_000,  # a cold JVM on a loaded machine takes 20 s
    model.DriverState.CHECKING: 180_000,  # until the check starts: warming up takes as long
    model.DriverState.ENDING: 30_000,
}
BACKOFF_MS_FIRST: Final = 1_000
BACKOFF_MS_MAX: Final = 60_000
DOUBLINGS_MAX: Final = 6  # enough to reach the longest wait


def decide(pool: model.Pool, event: model.PoolEvent, now: int) -> Decision:
    after, actions = _react(pool, event, now)
    if not after.ended:
        after, assigned = assign(after, now)
        actions += assigned
    return after, actions + position_reports(pool, after)


def _react(pool: model.Pool, event: model.PoolEvent, now: int) -> Decision:
    match event:
        case (
            model.RunRequested()
            | model.RunCancelled()
            | model.CheckRequested()
            | model.CheckCancelled()
        ):
            return accept(pool, event, now)
        case model.DriverReady():
            return _ready(pool, event, now), ()
        case model.CheckStarted():
            return _check_started(pool, event, now), ()
        case model.CheckDone():
            return _check_done(pool, event, now)
        case model.RunStarted():
            return _run_started(pool, event, now), ()
        case model.RunEnded():
            return _run_done(pool, event, now)
        case model.DriverExited():
            return _driver_exited(pool, event, now)
        case Tick():
            return _kill_overdue(pool, now)
        case model.EndAll():
            return _end_all(pool, now)
        case _:
            assert_never(event)


def _ready(pool: model.Pool, event: model.DriverReady, now: int) -> model.Pool:
    driver = pool.in_state(event.driver_id, model.DriverState.STARTING)
    if driver is None:
        return pool  # it was late, and was killed
    ready = pool.with_driver(
        replace(driver, state=model.DriverState.READY, was_ready=True, since=now)
    )
    if not driver.spark:
        return ready
    spare_at = min(pool.spare_at, now + SPARE_AFTER_MS)  # a spare may just have been given away
    return replace(ready, failures=0, spare_at=spare_at)


def _check_started(pool: model.Pool, event: model.CheckStarted, now: int) -> model.Pool:
    driver = pool.in_state(event.driver_id, model.DriverState.CHECKING)
    if driver is None or driver.check_id != event.check_id:
        return pool
    assert driver.job is not None
    return pool.with_driver(replace(driver, job=replace(driver.job, started=True), since=now))


def _check_done(pool: model.Pool, event: model.CheckDone, now: int) -> Decision:
    driver = pool.in_state(event.driver_id, model.DriverState.CHECKING)
    if driver is None or driver.check_id != event.check_id:
        return pool, ()
    ready = replace(without_job(driver, model.DriverState.READY, now), checks=driver.checks + 1)
    job = driver.job
    if event.keep and isinstance(job, model.CheckJob) and job.for_run and job.cores == driver.cores:
        ready = replace(ready, kept_for=job.pipeline_uid, kept_until=now + KEPT_MS)
    elif ready.checks >= pool.limits.checks:
        return end(pool, ready, now)
    return pool.with_driver(ready), ()


def _run_started(pool: model.Pool, event: model.RunStarted, now: int) -> model.Pool:
    driver = pool.in_state(event.driver_id, model.DriverState.RUNNING)
    if driver is None or driver.job is None:
        return pool
    if pool.spares_from is None:
        pool = replace(pool, spares_from=now + FIRST_SPARE_AFTER_MS)
    return pool.with_driver(replace(driver, job=replace(driver.job, started=True)))


def _run_done(pool: model.Pool, event: model.RunEnded, now: int) -> Decision:
    driver = pool.in_state(event.driver_id, model.DriverState.RUNNING)
    if driver is None or driver.job is None:
        return pool, ()  # it was killed; its run is over when the process has ended
    uid = driver.job.pipeline_uid
    over = model.ReportRunEnded(pipeline_uid=uid, exit_code=0, driver_id=driver.id)
    wanted = any(map(driver.fits, servable(pool))) or pool.limits.spares > 0
    driver = without_job(driver, model.DriverState.READY, now)
    if driver.spark and driver.runs < pool.limits.runs and wanted and not pool.ended:
        return pool.with_driver(driver), (over,)
    pool, ended = end(pool, driver, now)
    return pool, (over, *ended)


def _driver_exited(pool: model.Pool, event: model.DriverExited, now: int) -> Decision:
    driver = pool.drivers.get(event.driver_id)
    if driver is None:
        return pool, ()
    left = pool.without(driver)
    match driver.job:
        case None if driver.was_ready:
            return left, ()
        case None:
            return _charge_failed_start(left, driver, event, now)
        case model.RunJob(replaced=True):
            return left, ()
        case model.RunJob(pipeline_uid=uid):
            code = event.exit_code or NOT_CLOSED  # a run that ended well has reported it before
            return left, (
                model.ReportRunEnded(pipeline_uid=uid, exit_code=code, driver_id=driver.id),
            )
        case model.CheckJob() | model.MaintenanceJob() as job:
            return _once_more(left, job)
        case _:
            assert_never(driver.job)


def _charge_failed_start(
    pool: model.Pool, failed: model.Driver, event: model.DriverExited, now: int
) -> Decision:
    """Charge the failed start to the first in the queue that can use such a driver, so that nothing
    starts in vain without end.

    If there is none, or such a driver is free, nobody is charged, and the next spare starts later.
    """
    waiting = next((job for job in servable(pool) if job.cores == failed.cores), None)
    charged = None if any(d.cores == failed.cores for d in pool.free(now)) else waiting
    if charged is None:
        wait = min(BACKOFF_MS_FIRST * 2 ** min(pool.failures, DOUBLINGS_MAX), BACKOFF_MS_MAX)
        spare_at = max(pool.spare_at, now + wait)
        return replace(pool, failures=pool.failures + 1, spare_at=spare_at), ()
    pool = replace(pool, queue=tuple(job for job in pool.queue if job != charged))
    if not isinstance(charged, model.RunJob):
        return _once_more(pool, charged)
    over = model.ReportRunEnded(
        pipeline_uid=charged.pipeline_uid, exit_code=event.exit_code, driver_id=event.driver_id
    )
    return pool, (over,)


def _once_more(pool: model.Pool, job: model.CheckOrMaintenance) -> Decision:
    """Queue the check again at the head of the checks, but only once: it may be what ends the
    drivers.
    """
    if job.repeated:
        return pool, (model.ReportCheckFailed(check_id=job.check_id, why="driver_exited"),)
    again = replace(job, repeated=True, started=False)
    return replace(pool, queue=in_order((again, *pool.queue))), ()


def _kill_overdue(pool: model.Pool, now: int) -> Decision:
    actions: tuple[model.PoolAction, ...] = ()
    for driver in pool.drivers.values():
        limit = _limit_of(driver, pool.limits)
        if limit is None or now - driver.since < limit:
            continue
        pool, killed = kill(pool, driver, now)
        actions += killed
        job = driver.job
        if isinstance(job, model.CheckJob | model.MaintenanceJob):
            why: model.CheckFailure = "deadline" if job.started else "not_started"
            actions += (model.ReportCheckFailed(check_id=job.check_id, why=why),)
    return pool, actions


def _limit_of(driver: model.Driver, limits: model.Limits) -> int | None:
    """Return for how long the driver may be in its state, in milliseconds."""
    match driver.job:
        case model.CheckJob(started=True):
            return limits.check_ms
        case model.MaintenanceJob(started=True):
            return limits.maintenance_ms
        case _:
            return PATIENCE_MS.get(driver.state)


def _end_all(pool: model.Pool, now: int) -> Decision:
    """Stop runs and maintenance in good order, and kill all other drivers.

    The others have nothing to save, and each would need a second or more to end by itself.
    """
    actions: tuple[model.PoolAction, ...] = tuple(
        model.ReportRunEnded(pipeline_uid=job.pipeline_uid, exit_code=0, driver_id=None)
        for job in pool.queue
        if isinstance(job, model.RunJob)
    )
    for driver in pool.drivers.values():
        if driver.state is model.DriverState.RUNNING and driver.job is not None:
            actions += (model.StopRun(driver_id=driver.id, pipeline_uid=driver.job.pipeline_uid),)
        elif driver.state is not model.DriverState.ENDING:
            stop = end if isinstance(driver.job, model.MaintenanceJob) or not driver.spark else kill
            pool, ended = stop(pool, driver, now)
            actions += ended
    return replace(pool, queue=(), ended=True), actions
