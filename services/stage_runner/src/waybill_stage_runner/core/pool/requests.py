"""Adds runs and checks to the queue, and removes those that nobody wants any more.

Never does I/O, never reads the clock.
"""

from dataclasses import replace
from typing import Final, assert_never

from waybill_shared.contract.commands import STOP_MODES
from waybill_stage_runner.core.pool import model
from waybill_stage_runner.core.pool.assign import Decision, in_order, kill, start

NOT_CLOSED: Final = 1  # for a closing run that reported no result: 0 would mean that all is closed


def accept(pool: model.Pool, request: model.Request, now: int) -> Decision:
    match request:
        case model.RunRequested():
            return _request_run(pool, request, now)
        case model.RunCancelled():
            return _cancel_run(pool, request, now)
        case model.CheckRequested():
            return _request_check(pool, request), ()
        case model.CheckCancelled():
            return _cancel_check(pool, request, now)
        case _:
            assert_never(request)


def _request_run(pool: model.Pool, request: model.RunRequested, now: int) -> Decision:
    uid = request.pipeline_uid
    actions: tuple[model.PoolAction, ...] = ()
    if (holder := _holder(pool, uid)) is not None:
        job = model.RunJob(pipeline_uid=uid, replaced=True)
        pool, actions = kill(pool, replace(holder, job=job), now)
    if pool.ended:
        code = NOT_CLOSED if request.closing else 0
        return pool, (
            *actions,
            model.ReportRunEnded(pipeline_uid=uid, exit_code=code, driver_id=None),
        )
    if request.closing:
        pool, started = start(_without_run(pool, uid), now, closes=uid)
        return pool, actions + started
    job = model.RunJob(pipeline_uid=uid, urgent=request.urgent, cores=request.cores)
    if job in pool.queue:
        return pool, actions  # it keeps its queue position
    pool = _without_run(pool, uid)
    return replace(pool, queue=in_order((*pool.queue, job))), actions


def _holder(pool: model.Pool, pipeline_uid: str) -> model.Driver | None:
    """Return the driver that ends the pipeline's run when it ends."""
    return next((d for d in pool.drivers.values() if d.holds_run(pipeline_uid)), None)


def _without_run(pool: model.Pool, pipeline_uid: str) -> model.Pool:
    queue = (
        job
        for job in pool.queue
        if not (isinstance(job, model.RunJob) and job.pipeline_uid == pipeline_uid)
    )
    return replace(pool, queue=tuple(queue))


def _cancel_run(pool: model.Pool, request: model.RunCancelled, now: int) -> Decision:
    uid = request.pipeline_uid
    left = _without_run(pool, uid)
    if left.queue != pool.queue:
        return left, (model.ReportRunEnded(pipeline_uid=uid, exit_code=0, driver_id=None),)
    holder = _holder(pool, uid)
    if holder is None:
        return pool, ()
    if holder.state is not model.DriverState.RUNNING or not STOP_MODES[request.mode].asks_driver:
        return kill(pool, holder, now)
    return pool, (model.StopRun(driver_id=holder.id, pipeline_uid=uid, mode=request.mode),)


def _request_check(pool: model.Pool, request: model.CheckRequested) -> model.Pool:
    return pool if pool.ended else replace(pool, queue=in_order((*pool.queue, request.job)))


def _cancel_check(pool: model.Pool, request: model.CheckCancelled, now: int) -> Decision:
    for driver in pool.drivers.values():
        if driver.check_id == request.check_id:
            return kill(pool, driver, now)
    queue = (
        job
        for job in pool.queue
        if isinstance(job, model.RunJob) or job.check_id != request.check_id
    )
    return replace(pool, queue=tuple(queue)), ()
