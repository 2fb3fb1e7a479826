"""What the pool of drivers reports to the runner."""

from dataclasses import dataclass

from waybill_shared.contract.driver import DriverEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A report of a run's driver. `epoch` distinguishes the run from those before and after it."""

    pipeline_uid: str
    epoch: int
    event: DriverEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReport:
    """A run that waits for a driver. `queue_position` counts from 1. 0: it has a driver."""

    pipeline_uid: str
    epoch: int
    queue_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReport:
    """The end of a run: nothing of it is left, in whatever process it was."""

    pipeline_uid: str
    epoch: int
    exit_code: int
