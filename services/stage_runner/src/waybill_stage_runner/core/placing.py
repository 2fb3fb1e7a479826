"""Drivers, who waits for one, and what is to be done. Values only: `placement` decides.

A driver is a process with Spark in it. A run is one pipeline in one generation in a driver; a check
is a compile without effect. Times are those of a clock that never goes back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from waybill_stage_runner.core.moves import Tick

CheckFailure = Literal["deadline", "gone", "not_begun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    spares: int  # drivers that are kept ready
    starts: int  # drivers that start at once, or begin what they were given, at most
    runs: int = 20  # of one driver: what piles up in its memory goes with it
    checks: int = 500  # the same
    check_ms: int = 30_000  # that a check may take once it has begun: somebody waits for it
    long_ms: int = 6 * 3_600_000  # of a maintenance: a table may be large


class DriverState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    CHECKING = "checking"
    RUNNING = "running"
    ENDING = "ending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """One without Spark only closes: it has its run from the start, and is given it when ready."""

    id: str
    state: DriverState
    since: int  # in this state
    spark: bool = True
    was_ready: bool = False
    pipeline_uid: str | None = None  # whose run or check it has
    check_id: str | None = None
    begun: bool = False  # its check, or its run
    again: bool = False  # its check was repeated
    for_run: bool = True  # a run of what it checks is likely to follow
    long: bool = False  # its check is a maintenance
    replaced: bool = False  # its run was wanted anew: nobody is told that this one is over
    kept_for: str | None = None  # the pipeline whose compiled manifest it holds
    kept_until: int = 0
    runs: int = 0  # that it was given
    checks: int = 0  # that it has made

    def has_run(self, pipeline_uid: str) -> bool:
        return self.check_id is None and self.pipeline_uid == pipeline_uid

    def free(self, now: int) -> bool:
        """Whether anybody may take it."""
        kept = self.kept_for is not None and now < self.kept_until
        return self.state is DriverState.READY and self.spark and not kept


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAsk:
    pipeline_uid: str
    urgent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAsk:
    check_id: str
    pipeline_uid: str
    again: bool = False  # it was repeated, and is not repeated once more
    for_run: bool = True  # a run is likely to follow; else nothing does
    long: bool = False  # a maintenance, which may take hours


Ask = RunAsk | CheckAsk


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    limits: Limits
    drivers: Mapping[str, Driver] = field(default_factory=dict)  # the oldest first
    line: tuple[Ask, ...] = ()
    failures: int = 0  # starts that failed in a row, with nobody to charge with them
    spare_at: int = 0  # no spare is started before
    spares_from: int | None = None  # the same, for all spares; None: no run has begun yet
    next_id: int = 1
    ended: bool = False

    def having(self, driver: Driver) -> "Placement":
        return replace(self, drivers={**self.drivers, driver.id: driver})

    def without(self, driver: Driver) -> "Placement":
        return replace(self, drivers={k: v for k, v in self.drivers.items() if k != driver.id})

    def in_state(self, driver_id: str, state: DriverState) -> Driver | None:
        driver = self.drivers.get(driver_id)
        return driver if driver is not None and driver.state is state else None

    def free(self, now: int) -> tuple[Driver, ...]:
        return tuple(d for d in self.drivers.values() if d.free(now))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWanted:
    """`urgent`: a person waits for it. `closing`: it only shuts sinks, and needs no Spark."""

    pipeline_uid: str
    urgent: bool = False
    closing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUnwanted:
    pipeline_uid: str
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckWanted:
    """The id is new with each check. `for_run`: a run of what is checked is likely to follow.
    `long`: it is a maintenance."""

    check_id: str
    pipeline_uid: str
    for_run: bool = True
    long: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckUnwanted:
    check_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverReady:
    driver_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckBegun:
    driver_id: str
    check_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBegun:
    """It runs, or waits for somebody else. It may be said more than once."""

    driver_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDone:
    """`keep`: it compiled."""

    driver_id: str
    check_id: str
    keep: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDone:
    """The run ended in good order and left nothing behind; the process lives on."""

    driver_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverGone:
    """The whole process group is gone."""

    driver_id: str
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAll:
    """From now on nothing is started or given any more."""


Wish = RunWanted | RunUnwanted | CheckWanted | CheckUnwanted
PlacementEvent = (
    Wish | DriverReady | CheckBegun | CheckDone | RunBegun | RunDone | DriverGone | Tick | EndAll
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartProcess:
    driver_id: str
    spark: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveRun:
    driver_id: str
    pipeline_uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveCheck:
    driver_id: str
    check_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRun:
    """In good order. It may be said more than once."""

    driver_id: str
    pipeline_uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndProcess:
    """In good order."""

    driver_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KillProcess:
    driver_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TellWaits:
    """Said when the place has changed. 1: one must get a driver before it; 0: it waits no more,
    or only for a driver that is starting."""

    pipeline_uid: str
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TellRunOver:
    """`driver_id`: the one that had it, or failed to start for it; None: none did."""

    pipeline_uid: str
    exit_code: int
    driver_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TellCheckFailed:
    check_id: str
    why: CheckFailure


PlacementMove = (
    StartProcess
    | GiveRun
    | GiveCheck
    | StopRun
    | EndProcess
    | KillProcess
    | TellWaits
    | TellRunOver
    | TellCheckFailed
)
