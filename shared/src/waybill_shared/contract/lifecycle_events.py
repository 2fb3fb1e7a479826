"""What a runner reports of a pipeline: its phases, and that it is alive."""

from dataclasses import dataclass
from typing import Literal

from waybill_shared.contract.driver_news import IgnoredFields, SinkWait, TableMaintenance

SqlGuard = Literal["strict", "trusted"]
"""Strict: queries are judged by the lists of what is allowed. Commands are refused in both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleError:
    domain: Literal["user", "external", "internal"]
    message: str
    hint: str
    stage: str | None
    retryable: bool
    sink: str | None = None
    retry_after_ms: int = 0  # the sink has asked not to be tried again before


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Something that is wrong with a pipeline, next to its phase."""

    kind: Literal["degraded"] = "degraded"
    stage: str | None = None
    cause: str  # a DegradedCause
    since: int  # milliseconds since the epoch
    message: str | None = None  # what has happened, if the cause alone does not say it
    hint: str | None = None  # what to do, if it depends on that


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """The batches and rows of a run, as its driver has last reported. Each sink is counted."""

    run: int
    batches: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleEvent:
    tenant: str
    pipeline_uid: str
    pipeline: str
    generation: int
    kind: Literal["claim", "transition", "heartbeat", "maintenance", "schedule"]
    phase_from: str | None
    phase: str
    reason: str
    error: LifecycleError | None
    actor: str
    run: int  # the number of its newest run
    attempt: int
    next_at: int | None
    at: int
    blocked_by: str | None = None  # an Obstacle
    waits: tuple[SinkWait, ...] = ()
    maintenance: TableMaintenance | None = None
    sql_guard: SqlGuard = "strict"
    escalates_at: int | None = None  # when a stop becomes a stronger one
    next_run_at: int | None = None  # when its schedule begins the next run
    conditions: tuple[Condition, ...] = ()
    parallelism: int | None = None  # tasks at once of the run that goes on, else of the next one
    done: RunCounts | None = None  # of the newest run with a report, if its runner has seen it


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """The runner of a pipeline is alive. `blocked_by` is what its driver waits for, `waits` what it
    waits for in single sinks."""

    tenant: str
    pipeline_uid: str
    at: int
    blocked_by: str | None = None  # an Obstacle
    waits: tuple[SinkWait, ...] = ()
    ignored: tuple[IgnoredFields, ...] = ()
    conditions: tuple[Condition, ...] = ()
