"""The state of a pipeline in its runner. Values only: `supervision` decides.

Times are those of a clock that never goes back, so that no change of the wall clock makes anything
wait. Times for people are computed from them when a message is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from waybill_shared.contract.commands import STOP_MODES, StopMode
from waybill_shared.contract.driver_news import (
    IgnoredFields,
    SinkWait,
    StageActivity,
    TableMaintenance,
)
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import Command, Desired, PipelineRecord
from waybill_shared.contract.lifecycle import STOPS, Phase
from waybill_shared.contract.lifecycle_events import (
    Condition,
    LifecycleError,
    LifecycleEvent,
    RunCounts,
    SqlGuard,
)
from waybill_shared.contract.run_words import DegradedCause
from waybill_shared.contract.words import Obstacle
from waybill_stage_runner.core.pipelines.parallelism import AS_USUAL, CoreLimits, parallelism_of
from waybill_stage_runner.core.pipelines.time_limits import BY_DEFAULT, TimeLimits

ITSELF: Final = "stage_runner"
SCHEDULE: Final = "schedule"
"""The actor of what the schedule of a pipeline does."""
REACHED: Final[Mapping[Desired, Phase]] = {
    "running": Phase.RUNNING,
    "paused": Phase.PAUSED,
    "stopped": Phase.STOPPED,
    "deleted": Phase.STOPPED,
}
"""The phase in which a pipeline is as its record wants it."""
EventKind = Literal["claim", "transition", "heartbeat", "maintenance", "schedule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageOrigin:
    """The writer and the time of a message: `at` is the time for people, `now` that of the clock
    for waits."""

    at: int
    now: int
    sql_guard: SqlGuard = "strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Degraded:
    """A condition of a pipeline. `since` is a time of the clock for waits."""

    stage: str | None
    cause: DegradedCause
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineState:
    record: PipelineRecord
    next: PipelineRecord | None = None  # accepted, but not written before what it removes is closed
    phase: Phase = Phase.CREATED
    since: int = 0
    driver: bool = False
    stop_mode: StopMode = StopMode.CHECKPOINT  # of the stop that is going on
    runs_again: bool = False  # if this run ends by itself, the next one begins
    drained: bool = False  # its driver has reported it
    pause_orders: int = 0  # how often its driver was asked to pause or to continue
    start_orders: int = 0  # how often it was asked to start stages that are stopped
    starting: tuple[str, ...] = ()  # those that it starts now, with a command that waits
    closing: PipelineRecord | None = None  # what the driver closes that lives or is waited for
    attempt: int = 0
    crashes: int = 0  # of these attempts, those that failed for no outside reason
    crash_stage: str | None = None  # that all these crashes have named
    next_at: int | None = None
    due: int | None = None  # the time of the schedule for which the next run begins
    problems: tuple[Problem, ...] = ()
    error: LifecycleError | None = None
    pending: tuple[Command, ...] = ()
    warnings: tuple[str, ...] = ()  # for whoever gets the next answer
    reason: str = ""
    actor: str = ITSELF  # who asked for this phase
    blocked_by: Obstacle | None = None
    waits: tuple[SinkWait, ...] = ()
    ignored: tuple[IgnoredFields, ...] = ()
    times: TimeLimits = BY_DEFAULT
    limits: CoreLimits = AS_USUAL
    run_parallelism: int | None = None  # of the newest run, if it began here
    progress: tuple[StageActivity, ...] = ()  # the newest report of the driver
    done: RunCounts | None = None  # by the newest report of a driver
    silent_ms: int = 0  # since then, or since it runs or is paused, as ticks count
    looked_at: int = 0  # when that was counted last
    degraded: tuple[Degraded, ...] = ()
    dumped_at: int | None = None  # when the threads of its driver, which hangs, were dumped

    @property
    def is_as_desired(self) -> bool:
        """True if the pipeline is what its record wants."""
        finished = self.record.has_finished and self.phase is Phase.FINISHED
        reached = finished or self.phase is REACHED[self.record.desired]
        return reached and not self.starting

    @property
    def parallelism(self) -> int:
        """The tasks that run at once in the present run; if there is none, in the next one."""
        lives = self.driver and self.closing is None
        began_with = self.run_parallelism if lives else None
        return began_with or self.planned_parallelism

    @property
    def planned_parallelism(self) -> int:
        """The same of a run that would begin now."""
        return self.limits.allow(parallelism_of(self.record))

    @property
    def next_run_at(self) -> int | None:
        """The time at which its schedule begins the next run; None if it begins none."""
        begins = self.record.desired == "running" and self.phase is not Phase.FAILED
        return self.record.next_run_at if begins else None

    def event(
        self,
        kind: EventKind,
        phase_from: str | None,
        origin: MessageOrigin,
        maintenance: TableMaintenance | None = None,
        skipped: str | None = None,
    ) -> LifecycleEvent:
        """Return the event. `skipped`: why a time of the schedule begins no run."""
        return LifecycleEvent(
            tenant=self.record.tenant,
            pipeline_uid=self.record.pipeline_uid,
            pipeline=self.record.name,
            generation=self.record.generation,
            kind=kind,
            phase_from=phase_from,
            phase=self.phase,
            reason=self.reason if skipped is None else skipped,
            error=self.error,
            actor={"transition": self.actor, "schedule": SCHEDULE}.get(kind, ITSELF),
            run=self.record.run,
            attempt=self.attempt,
            next_at=None if self.next_at is None else origin.at + max(0, self.next_at - origin.now),
            blocked_by=self.blocked_by,
            waits=self.waits,
            maintenance=maintenance,
            at=origin.at,
            sql_guard=origin.sql_guard,
            escalates_at=self._escalates_at(origin),
            next_run_at=self.next_run_at,
            conditions=self.conditions(origin),
            parallelism=None if kind == "claim" else self.parallelism,
            done=self.done,
        )

    @property
    def causes(self) -> frozenset[str]:
        """The causes for which it is degraded."""
        stopped = self.record.wants_run and bool(self.record.stopped_stages)
        failed = {DegradedCause.STAGE_FAILED} if stopped else set[DegradedCause]()
        return frozenset(map(str, {*failed, *(each.cause for each in self.degraded)}))

    def conditions(self, origin: MessageOrigin) -> tuple[Condition, ...]:
        """Return what is wrong with it, as messages say it: first the stages that are stopped."""
        stopped = self.record.stopped_stages if self.record.wants_run else ()
        return (
            *(
                Condition(
                    stage=each.stage,
                    cause=DegradedCause.STAGE_FAILED,
                    since=each.at,
                    message=each.message,
                    hint=each.hint,
                )
                for each in stopped
            ),
            *(
                Condition(
                    stage=each.stage, cause=each.cause, since=origin.at - origin.now + each.since
                )
                for each in self.degraded
            ),
        )

    def _escalates_at(self, origin: MessageOrigin) -> int | None:
        """Return when the stop that goes on becomes a stronger one; None if there is none."""
        row = STOP_MODES[self.stop_mode]
        stops = self.phase in STOPS and self.closing is None
        if not stops or row.then is self.stop_mode:
            return None
        return origin.at + max(0, self.since + self.times.of_stop(self.stop_mode) - origin.now)
