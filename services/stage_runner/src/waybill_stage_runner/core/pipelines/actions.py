"""Actions that follow from the events of a pipeline. Values only: `supervision` decides."""

from dataclasses import dataclass

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.driver_news import TableMaintenance
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Command, PipelineRecord, StageDefinition
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import OperationState


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRecord:
    """Write the record of the state, and the definition that follows from it.

    It comes before everything that does follow from the record.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteReservedName:
    """Write the record of a life that is only a name. It follows from no state."""

    record: PipelineRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDriver:
    """Start a driver. With `closing` it only closes these sinks, reports what they contain,
    and ends.
    """

    closing: tuple[StageDefinition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StopDriver:
    mode: StopMode = StopMode.CHECKPOINT


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpThreads:
    """Let the driver write into the log of its run where its threads are: Python's and Java's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseDriver:
    """Let the driver begin no batch, or let it begin them again. It reports `order` when that is
    so.
    """

    paused: bool
    order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartStages:
    """Let the driver start stages that are stopped. It reports `order` when it has tried all."""

    stages: tuple[str, ...]
    order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPhase:
    """Report that the phase has changed. `recorded`: write the record in the same transaction."""

    phase_from: Phase
    recorded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSkipped:
    """Report that a time of the schedule begins no run, and write the record in the same
    transaction.
    """

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendHeartbeat:
    """Send a heartbeat at once, because something that it reports has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportMaintenance:
    """Report that maintenance of a table was done."""

    maintenance: TableMaintenance


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLastDefinition:
    """Write the last definition of a deleted pipeline, and record that it was written.

    With an error: what its sinks contain may not have been reported.
    """

    error: LifecycleError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a command. `problem` says why it failed, `result` what a validation found."""

    command: Command
    state: OperationState
    errors: tuple[Problem, ...] = ()
    problem: Slug | None = None
    result: str | None = None
    warnings: tuple[str, ...] = ()


DriverAction = StartDriver | StopDriver | DumpThreads | PauseDriver | StartStages
PipelineAction = (
    WriteRecord
    | DriverAction
    | ReportPhase
    | ReportSkipped
    | SendHeartbeat
    | ReportMaintenance
    | WriteLastDefinition
    | Answer
)
