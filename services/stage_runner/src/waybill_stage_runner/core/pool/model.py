"""Drivers, the queue for them, and the actions of the pool. Values only: `decide` decides.

A driver is a process with Spark in it. A run is one pipeline in one generation in a driver. A check
is a compile without effect. Times are those of a clock that never goes back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from waybill_shared.contract.commands import StopMode
from waybill_stage_runner.core.tick import Tick

CheckFailure = Literal["deadline", "driver_exited", "not_started"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    spares: int  # drivers that are kept ready
    starts: int  # drivers that start, or start what they got, at the same time
    runs: int = 20  # of one driver: what grows in its memory ends with it
    checks: int = 500  # the same
    check_ms: int = 30_000  # limit of a check from its start on: somebody waits for it
    maintenance_ms: int = 6 * 3_600_000  # limit of a maintenance: a table may be large


class DriverState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    CHECKING = "checking"
    RUNNING = "running"
    ENDING = "ending"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """A run of a pipeline. `urgent`: a person waits for it. `cores`: see `Driver`."""

    pipeline_uid: str
    urgent: bool = False
    cores: int | None = None
    started: bool = False
    replaced: bool = False  # it was asked for again: its end is not reported


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckJob:
    """A check of a manifest. `for_run`: a run of the manifest is likely to follow, in a driver with
    so many `cores`; any driver serves for the check.
    """

    check_id: str
    pipeline_uid: str
    for_run: bool = True
    cores: int | None = None
    started: bool = False
    repeated: bool = False  # once, and it is not repeated again


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceJob:
    """A maintenance of a table, which may take hours. Its result is reported like a check."""

    check_id: str
    started: bool = False
    repeated: bool = False

    @property
    def pipeline_uid(self) -> str:
        """A uid of its own, because no run of a pipeline needs its driver."""
        return self.check_id

    @property
    def for_run(self) -> bool:
        return False

    @property
    def cores(self) -> None:
        """The cores of a spare driver."""


CheckOrMaintenance = CheckJob | MaintenanceJob
Job = RunJob | CheckOrMaintenance
"""What a driver does, or what waits in the queue for a driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A driver process. One without Spark only closes sinks: its run is known from the start, and
    is sent to it when it is ready. `cores`: how many its Spark has; None: as many as spares have.
    """

    id: str
    state: DriverState
    since: int  # in this state
    spark: bool = True
    cores: int | None = None
    was_ready: bool = False
    job: Job | None = None
    kept_for: str | None = None  # the pipeline that it has compiled the manifest of
    kept_until: int = 0
    runs: int = 0  # that it was assigned, in all
    checks: int = 0  # that it has made

    @property
    def check_id(self) -> str | None:
        """The id of its check or maintenance."""
        return None if self.job is None or isinstance(self.job, RunJob) else self.job.check_id

    def has_run(self, pipeline_uid: str) -> bool:
        return isinstance(self.job, RunJob) and self.job.pipeline_uid == pipeline_uid

    def holds_run(self, pipeline_uid: str) -> bool:
        """Return True if the end of this driver ends the pipeline's run."""
        return self.has_run(pipeline_uid) and not (
            isinstance(self.job, RunJob) and self.job.replaced
        )

    def fits(self, job: Job) -> bool:
        """Return True if the driver has the cores that a run needs. A check needs none of its
        own.
        """
        return not isinstance(job, RunJob) or job.cores == self.cores

    def free(self, now: int) -> bool:
        """Return True if the driver is free for every pipeline."""
        kept = self.kept_for is not None and now < self.kept_until
        return self.state is DriverState.READY and self.spark and not kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    limits: Limits
    drivers: Mapping[str, Driver] = field(default_factory=dict)  # the oldest first
    queue: tuple[Job, ...] = ()
    failures: int = 0  # failed starts in a row that were charged to nobody
    spare_at: int = 0  # no spare is started before this time
    spares_from: int | None = None  # the same, for all spares; None: no run has started yet
    next_id: int = 1
    ended: bool = False

    def with_driver(self, driver: Driver) -> "Pool":
        return replace(self, drivers={**self.drivers, driver.id: driver})

    def without(self, driver: Driver) -> "Pool":
        return replace(self, drivers={k: v for k, v in self.drivers.items() if k != driver.id})

    def in_state(self, driver_id: str, state: DriverState) -> Driver | None:
        driver = self.drivers.get(driver_id)
        return driver if driver is not None and driver.state is state else None

    def free(self, now: int) -> tuple[Driver, ...]:
        return tuple(d for d in self.drivers.values() if d.free(now))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequested:
    """A run that is asked for. `urgent`: a person waits for it. `closing`: it only closes sinks,
    and needs no Spark.
    """

    pipeline_uid: str
    urgent: bool = False
    closing: bool = False
    cores: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCancelled:
    pipeline_uid: str
    mode: StopMode = StopMode.CHECKPOINT


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequested:
    """A check or a maintenance that is asked for, with an id of its own."""

    job: CheckOrMaintenance


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCancelled:
    check_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverReady:
    driver_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckStarted:
    driver_id: str
    check_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run that has started, or waits for an outside system. It may be reported more than once."""

    driver_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDone:
    """A check that is done. `keep`: the manifest compiled, so the driver may be kept for
    its run.
    """

    driver_id: str
    check_id: str
    keep: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """A run that ended in good order. Nothing of it is left, and the process lives on."""

    driver_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverExited:
    """The end of a driver with its whole process group."""

    driver_id: str
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAll:
    """The end of the runner: nothing is started or assigned to a driver any more."""


Request = RunRequested | RunCancelled | CheckRequested | CheckCancelled
PoolEvent = (
    Request
    | DriverReady
    | CheckStarted
    | CheckDone
    | RunStarted
    | RunEnded
    | DriverExited
    | Tick
    | EndAll
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartProcess:
    driver_id: str
    spark: bool
    cores: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignRun:
    driver_id: str
    pipeline_uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignCheck:
    driver_id: str
    check_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRun:
    """Order a driver to stop its run. It may be sent more than once."""

    driver_id: str
    pipeline_uid: str
    mode: StopMode = StopMode.CHECKPOINT


@dataclass(frozen=True, slots=True, kw_only=True)
class EndProcess:
    """End a driver process in good order."""

    driver_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KillProcess:
    driver_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportQueuePosition:
    """Report the new queue position of a run. 1: one other gets a driver before it does. 0: it
    waits no more, or only for a driver that is starting.
    """

    pipeline_uid: str
    queue_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRunEnded:
    """Report that a run is over. `driver_id` is the driver that had it, or that failed to start for
    it; None if there was none.
    """

    pipeline_uid: str
    exit_code: int
    driver_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCheckFailed:
    check_id: str
    why: CheckFailure


PoolAction = (
    StartProcess
    | AssignRun
    | AssignCheck
    | StopRun
    | EndProcess
    | KillProcess
    | ReportQueuePosition
    | ReportRunEnded
    | ReportCheckFailed
)
