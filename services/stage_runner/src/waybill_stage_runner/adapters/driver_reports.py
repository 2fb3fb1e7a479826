"""What the pool of drivers reports to the runner."""

from dataclasses import dataclass

from waybill_shared.contract.driver import DriverEvent
from waybill_stage_runner.app.ports import Checked
from waybill_stage_runner.core.pool.model import ReportRunEnded


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


PoolReport = RunReport | QueueReport | EndReport | Checked


def make_end_report(over: ReportRunEnded, epoch: int) -> EndReport:
    return EndReport(pipeline_uid=over.pipeline_uid, epoch=epoch, exit_code=over.exit_code)


def make_check_result(check_id: str, event: DriverEvent) -> Checked:
    """Return what a driver found in a check, or did in a maintenance."""
    return Checked(
        check_id=check_id,
        problems=event.problems,
        columns=event.columns,
        columns_before=event.columns_before,
        alterations=event.alterations,
        tasks=event.tasks,
    )
