"""Decides whether a pipeline is degraded, and whether its run hangs. Never does I/O, never reads
the clock.

Every two seconds the driver reports how the batches of each stage go on. A batch makes progress
when it begins, when its rows are read, when its dead letters are written, when a sink has taken it
or a piece of it, and when a task of Spark for it ends, or reads or writes records. So a batch may
take as long as it needs. What it waits for in a sink, and in nothing else, is the sink's: its
driver has limits for a server that is silent, and another driver would wait there, too.

1. `look` is called at each tick. It goes through `CAUSES` and notes which of them are true now.
2. A cause is true when its time is longer than its limit: ten times what is usual for the stage, or
   five times its pause between commits, and never shorter than the setting says.
3. If that lasts as long again, the run hangs, where the row says so, or where the driver is silent.
   Its threads are dumped into its log (`DumpThreads`), and it is stopped by force. That is a crash:
   it is started again as after any other.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.driver_news import StageActivity
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.run_words import DegradedCause
from waybill_shared.contract.words import Obstacle
from waybill_stage_runner.core.pipelines import actions
from waybill_stage_runner.core.pipelines.moves import Decision
from waybill_stage_runner.core.pipelines.states import Degraded, PipelineState

BATCHES: Final = 10  # times the usual length of a batch
PAUSES: Final = 5  # times the usual pause between commits
PAUSE_PART: Final = 5  # of the shortest limit of a batch: the shortest for a pause
ATTEMPTS: Final = 3  # that failed in a row
WATCHED: Final = (Phase.RUNNING, Phase.PAUSED)
TWICE: Final = 2
STEP_MS: Final = 10_000  # of silence in one tick, at most
DUMP_MS: Final = 3_000  # until the log has the dumps; a JVM on a loaded machine takes a second
WHAT: Final = {
    DegradedCause.NO_PROGRESS: "a batch has done nothing",
    DegradedCause.DRIVER_SILENT: "the driver has reported nothing",
}
RETRIES: Final = (Phase.RECOVERING, Phase.SCHEDULING, Phase.STARTING, Phase.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWatch:
    """A stage by its newest report, with the time since it came."""

    report: StageActivity
    stall_ms: int
    age_ms: int

    @property
    def batch_limit_ms(self) -> int:
        return max(BATCHES * self.report.usual_ms, self.stall_ms)

    @property
    def pause_limit_ms(self) -> int:
        return max(PAUSES * self.report.usual_pause_ms, self.stall_ms // PAUSE_PART)


class Symptom(NamedTuple):
    """A cause that is true now. `stage` None: of the whole run."""

    stage: str | None
    cause: DegradedCause
    lasts_ms: int
    hangs: bool


class CauseRow(NamedTuple):
    lasts_ms: Callable[[StageWatch], int | None]
    """For how long it has been so. None: it is not."""
    limit_ms: Callable[[StageWatch], int]
    hangs: bool = False
    """True if the run is stopped and started again when it lasts twice as long as the limit."""


def _quiet_ms(it: StageWatch) -> int | None:
    runs = it.report.batch_ms is not None and it.report.sink is None
    return it.report.quiet_ms + it.age_ms if runs else None


def _in_sink_ms(it: StageWatch) -> int | None:
    waits = it.report.batch_ms is not None and it.report.sink is not None
    return it.report.quiet_ms + it.age_ms if waits else None


def _batch_ms(it: StageWatch) -> int | None:
    """Return how long the batch has run, where another one has shown what is usual."""
    known = it.report.batch_ms is not None and it.report.usual_ms > 0
    return (it.report.batch_ms or 0) + it.age_ms if known else None


def _waiting_ms(it: StageWatch) -> int | None:
    return it.report.waiting_ms if it.report.lag_grows else None


def _batch_limit_ms(it: StageWatch) -> int:
    return it.batch_limit_ms


CAUSES: Final[Mapping[DegradedCause, CauseRow]] = {
    DegradedCause.NO_PROGRESS: CauseRow(_quiet_ms, _batch_limit_ms, hangs=True),
    DegradedCause.SINK_WAITS: CauseRow(_in_sink_ms, _batch_limit_ms),
    DegradedCause.BATCH_LONG: CauseRow(_batch_ms, _batch_limit_ms),
    DegradedCause.NO_COMMIT: CauseRow(_waiting_ms, lambda it: it.pause_limit_ms),
}
"""Of a stage, in this order: the first that is true is shown."""


def look(state: PipelineState, now: int) -> Decision:
    """Note what is degraded now, and report it if that has changed. Stop a run that hangs."""
    if state.phase in WATCHED and state.dumped_at is not None:
        return _stop_dumped(state, now)
    state = _count_silence(state, now)
    symptoms = find(state, now)
    found = find_degraded(state, symptoms, now)
    news = state.phase in WATCHED and found != state.degraded  # else the next beat has it
    reported = (actions.SendHeartbeat(),) if news else ()
    state = replace(state, degraded=found)
    hung = next((each for each in symptoms if each.hangs), None)
    if hung is None:
        return state, reported
    dumped = replace(state, dumped_at=now, error=_error_of(hung))
    return dumped, (*reported, actions.DumpThreads())


def _count_silence(state: PipelineState, now: int) -> PipelineState:
    """Count for how long the driver has not reported. If this runner itself has not ticked for
    long, its driver may have reported all the time, and is not read yet.
    """
    if state.phase not in WATCHED:
        return state
    silent_ms = state.silent_ms + min(now - state.looked_at, STEP_MS)
    return replace(state, silent_ms=silent_ms, looked_at=now)


def _stop_dumped(state: PipelineState, now: int) -> Decision:
    """Stop by force the run of which the threads are dumped, as soon as its log may have them."""
    assert state.dumped_at is not None
    if now - state.dumped_at < DUMP_MS:
        return state, ()
    return replace(state, dumped_at=now), (actions.StopDriver(mode=StopMode.FORCE),)


def _error_of(hung: Symptom) -> LifecycleError:
    stage = f"stage {hung.stage}: " if hung.stage is not None else ""
    return LifecycleError(
        domain="internal",
        message=f"{stage}{WHAT[hung.cause]} for {hung.lasts_ms // 1000} s",
        hint="the driver's log has where its threads were: `waybill logs PIPELINE`",
        stage=hung.stage,
        retryable=True,
    )


def find_degraded(
    state: PipelineState, symptoms: Iterable[Symptom], now: int
) -> tuple[Degraded, ...]:
    """Return what is degraded. What was so before keeps the time since when."""
    known = {(each.stage, each.cause): each.since for each in state.degraded}
    return (
        *(
            Degraded(
                stage=each.stage,
                cause=each.cause,
                since=known.get((each.stage, each.cause), now - each.lasts_ms),
            )
            for each in symptoms
        ),
        *_find_retrying(state, now),
    )


def find(state: PipelineState, now: int) -> list[Symptom]:
    """Return the causes that are true of the run and its stages. Where the cluster computes nothing
    for them, that is shown as what they wait for, and the driver ends by itself.
    """
    symptoms = _find_silent(state)
    if state.phase is not Phase.RUNNING or state.blocked_by == Obstacle.NO_SPARK_EXECUTOR:
        return symptoms
    age_ms = _silent_ms(state)
    for each in state.progress:
        it = StageWatch(report=each, stall_ms=state.times.stall_ms, age_ms=age_ms)
        symptoms += _find_first(it)
    return symptoms


def _find_first(it: StageWatch) -> list[Symptom]:
    for cause, row in CAUSES.items():
        lasts_ms, limit_ms = row.lasts_ms(it), row.limit_ms(it)
        if lasts_ms is not None and lasts_ms >= limit_ms:
            hangs = row.hangs and lasts_ms >= TWICE * limit_ms
            return [Symptom(it.report.stage, cause, lasts_ms, hangs)]
    return []


def _find_silent(state: PipelineState) -> list[Symptom]:
    silent_ms = _silent_ms(state)
    if silent_ms < state.times.stall_ms:
        return []
    hangs = silent_ms >= TWICE * state.times.stall_ms
    return [Symptom(None, DegradedCause.DRIVER_SILENT, silent_ms, hangs)]


def _silent_ms(state: PipelineState) -> int:
    """Return for how long a driver that should report has not."""
    return state.silent_ms if state.phase in WATCHED else 0


def _find_retrying(state: PipelineState, now: int) -> list[Degraded]:
    if state.phase not in RETRIES or state.attempt < ATTEMPTS:
        return []
    before = [each for each in state.degraded if each.cause is DegradedCause.RETRYING]
    stage = state.error.stage if state.error is not None else None
    return before or [Degraded(stage=stage, cause=DegradedCause.RETRYING, since=now)]
