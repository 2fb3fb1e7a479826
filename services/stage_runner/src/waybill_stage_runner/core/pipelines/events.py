"""Events of a pipeline. Values only: `supervision` decides what follows from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from waybill_shared.contract.driver_news import (
    IgnoredFields,
    SinkWait,
    StageActivity,
    TableMaintenance,
)
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Command, PipelineRecord
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.words import Obstacle
from waybill_stage_runner.core.tick import Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRequested:
    """A record that is asked for. `written`: it is in Kafka already, as found when the
    runner started.
    """

    record: PipelineRecord
    command: Command | None
    written: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQueued:
    """The run waits for a driver; `queue_position` counts from 1. 0: it has one."""

    queue_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRuns:
    """The driver's report that all stages begin batches. `not_put`: by the id of its command, why a
    record did not go to its dead-letter topic.
    """

    not_put: Mapping[str, Problem] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverPaused:
    """The driver's report that no stage runs a batch, or begins one, since the order of this
    number.
    """

    order: int
    not_put: Mapping[str, Problem] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverBlocked:
    """The obstacle that the driver reports. If both are empty, it waits for nothing any more."""

    blocked_by: Obstacle | None
    waits: tuple[SinkWait, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverProgress:
    """The activity of each stage, which the driver reports every two seconds."""

    stages: tuple[StageActivity, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverIgnores:
    """The fields of its inputs that the driver has left out since it started."""

    fields: tuple[IgnoredFields, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverMaintained:
    """The driver's report that it has done maintenance of a table."""

    maintenance: TableMaintenance


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverDrained:
    """The driver's report that all which its inputs contained is in every sink."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStageStopped:
    """The driver's report that a stage has stopped by itself, while the others go on.

    `error` names the stage. `at` is the time for people, which the supervisor adds.
    """

    error: LifecycleError
    put_aside: int
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStagesStarted:
    """The driver's report that it has tried to start each stage of the order of this number. Those
    that it could not start were reported as stopped before.
    """

    order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFinished:
    """The driver's report that it has read all that there was, and that all of it is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFailed:
    """The driver's report why it is about to end."""

    problems: tuple[Problem, ...]
    error: LifecycleError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverEnded:
    """The end of a run: no process of it is left. `at`: as of a stage that stops."""

    exit_code: int
    at: int = 0


DriverReport = (
    RunQueued
    | DriverRuns
    | DriverPaused
    | DriverBlocked
    | DriverProgress
    | DriverIgnores
    | DriverMaintained
    | DriverDrained
    | DriverStageStopped
    | DriverStagesStarted
    | DriverFinished
    | DriverFailed
)
RunEvent = DriverReport | DriverEnded
Event = RecordRequested | RunEvent | Tick
