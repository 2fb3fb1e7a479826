"""Drivers to which one thing happens after another, and short words for what is decided."""

from builders import NOW
from waybill_stage_runner.core.pool.decide import decide
from waybill_stage_runner.core.pool.model import (
    AssignCheck,
    AssignRun,
    CheckDone,
    CheckJob,
    CheckRequested,
    CheckStarted,
    DriverExited,
    DriverReady,
    DriverState,
    Limits,
    Pool,
    PoolAction,
    PoolEvent,
    ReportQueuePosition,
    ReportRunEnded,
    RunRequested,
    RunStarted,
    StartProcess,
)
from waybill_stage_runner.core.tick import Tick


class Drivers:
    """A runner to which one thing happens after another. `on` returns the actions of the last.
    `new`: no run has begun there yet."""

    def __init__(
        self, *, spares: int = 0, starts: int = 2, runs: int = 20, new: bool = False
    ) -> None:
        limits = Limits(spares=spares, starts=starts, runs=runs)
        self.pool = Pool(limits=limits, spares_from=None if new else 0)
        self.now = NOW

    def on(self, *events: PoolEvent) -> tuple[PoolAction, ...]:
        actions: tuple[PoolAction, ...] = ()
        for event in events:
            self.pool, actions = decide(self.pool, event, self.now)
        return actions

    def after(self, milliseconds: int) -> tuple[PoolAction, ...]:
        self.now += milliseconds
        return self.on(Tick())

    def states(self) -> dict[str, DriverState]:
        return {driver.id: driver.state for driver in self.pool.drivers.values()}


def want(
    uid: str, *, urgent: bool = False, closing: bool = False, cores: int | None = None
) -> RunRequested:
    return RunRequested(pipeline_uid=uid, urgent=urgent, closing=closing, cores=cores)


def check(check_id: str, uid: str = "c", cores: int | None = None) -> CheckRequested:
    return CheckRequested(job=CheckJob(check_id=check_id, pipeline_uid=uid, cores=cores))


def only_check(check_id: str) -> CheckRequested:
    job = CheckJob(check_id=check_id, pipeline_uid=f"uid of {check_id}", for_run=False)
    return CheckRequested(job=job)


def begins(driver_id: str, check_id: str) -> CheckStarted:
    return CheckStarted(driver_id=driver_id, check_id=check_id)


def begun(driver_id: str) -> RunStarted:
    return RunStarted(driver_id=driver_id)


def checked(driver_id: str, check_id: str, *, keep: bool = False) -> CheckDone:
    return CheckDone(driver_id=driver_id, check_id=check_id, keep=keep)


def ready(driver_id: str) -> DriverReady:
    return DriverReady(driver_id=driver_id)


def gone(driver_id: str, exit_code: int = 137) -> DriverExited:
    return DriverExited(driver_id=driver_id, exit_code=exit_code)


def starts(driver_id: str, *, spark: bool = True, cores: int | None = None) -> StartProcess:
    return StartProcess(driver_id=driver_id, spark=spark, cores=cores)


def runs(driver_id: str, uid: str) -> AssignRun:
    return AssignRun(driver_id=driver_id, pipeline_uid=uid)


def checks(driver_id: str, check_id: str) -> AssignCheck:
    return AssignCheck(driver_id=driver_id, check_id=check_id)


def waits(uid: str, place: int) -> ReportQueuePosition:
    return ReportQueuePosition(pipeline_uid=uid, queue_position=place)


def over(uid: str, exit_code: int, driver_id: str | None) -> ReportRunEnded:
    return ReportRunEnded(pipeline_uid=uid, exit_code=exit_code, driver_id=driver_id)
