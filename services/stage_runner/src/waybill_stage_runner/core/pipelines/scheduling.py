"""Decides what a time of a pipeline's schedule does, when it has come. Never does I/O, never reads
a clock.

The record has the first time that has not come yet (`next_run_at`). When it comes, the record gets
the next one after now, in the same transaction as what this time does. So no time counts twice, and
of times that nobody was there for, one run is made up. A record without one has no schedule, or
none that is in force: it is stopped, or `endOn` is over.

What a time does depends on the phase: see `decide_due`. Where it says nothing, the time waits until
the phase is another one, because a run is about to end, or a change is made.
"""

from collections.abc import Set
from dataclasses import replace
from typing import Final

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.lifecycle import Happening, Phase
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.schedules import ScheduleSettings
from waybill_stage_runner.core.pipelines import actions
from waybill_stage_runner.core.pipelines.attempts import reset_attempts
from waybill_stage_runner.core.pipelines.moves import Decision, move, of_time
from waybill_stage_runner.core.pipelines.states import PipelineState

GOES_ON: Final[Set[Phase]] = {
    Phase.SCHEDULING,
    Phase.STARTING,
    Phase.RUNNING,
    Phase.PAUSED,
    Phase.RECOVERING,
}
"""Phases of a run that has not ended. Only one that is Running, and is to be, is replaced."""


def schedule_in(manifest: AppliedManifest) -> ScheduleSettings | None:
    """Return the schedule of a manifest; None also if this version cannot read it any more."""
    try:
        return manifest.model.schedule
    except UserError:
        return None


def schedule_of(record: PipelineRecord) -> ScheduleSettings | None:
    """Return the schedule that is in force."""
    return schedule_in(record.manifest) if record.wants_run else None


def with_next_time(
    record: PipelineRecord, before: PipelineRecord | None, now: int
) -> PipelineRecord:
    """Return the record with the first time that is to come, after a command has changed it.

    A schedule that was in force before goes on. If the record asks for a run now, that run makes up
    all times until now.
    """
    schedule = schedule_of(record)
    if schedule is None:
        return replace(record, next_run_at=None)
    time, since = None, now
    if before is not None and schedule_of(before) == schedule:
        time = before.next_run_at
        if time is None or time > now or record.finished:
            return replace(record, next_run_at=time)
        since = time
    following = schedule.first(now) if record.finished else schedule.next_after(now, since)
    return replace(record, next_run_at=following)


def decide_due(state: PipelineState, now: int, at: int) -> Decision | None:
    """Decide what follows if the next time of the schedule has come by `at`; None if nothing does.

    A pipeline that has finished gets its next run. If a run goes on, the time is skipped; or that
    run is stopped and another one follows, as the schedule says.
    """
    due = state.record.next_run_at
    if due is None or at < due or state.closing is not None:
        return None
    if state.phase is Phase.FINISHED:
        return _begin(state, due, now, at)
    if state.phase not in GOES_ON:
        return None
    schedule = schedule_of(state.record)
    replaces = schedule is not None and schedule.concurrency == "replace"
    running = state.record.desired == "running" and state.phase is Phase.RUNNING
    return _replace(state, due, now, at) if replaces and running else _skip(state, due, at)


def _begin(state: PipelineState, due: int, now: int, at: int) -> Decision:
    record = replace(_after(state.record, due, at), finished=False)
    fresh = replace(reset_attempts(state), record=record, due=due)
    return move(fresh, Happening.FALL_DUE, now, of_time(due))


def _replace(state: PipelineState, due: int, now: int, at: int) -> Decision:
    """Let the run end that goes on. Another one begins when its driver has ended."""
    reason = f"replaced: run {state.record.run} still goes, {of_time(due)}"
    fresh = replace(reset_attempts(state), record=_after(state.record, due, at), due=due)
    stopping, made = move(
        replace(fresh, stop_mode=StopMode.CHECKPOINT), Happening.RESTART, now, reason
    )
    return stopping, tuple(
        replace(each, recorded=True) if isinstance(each, actions.ReportPhase) else each
        for each in made
    )


def _skip(state: PipelineState, due: int, at: int) -> Decision:
    record = _after(state.record, due, at)
    reason = f"skipped: run {record.run} is {state.phase}, {of_time(due)}"
    return replace(state, record=record), (actions.ReportSkipped(reason=reason),)


def _after(record: PipelineRecord, due: int, at: int) -> PipelineRecord:
    """Return the record after the time `due` has come: times until now are made up together."""
    schedule = schedule_of(record)
    following = None if schedule is None else schedule.next_after(max(at, due), due)
    return replace(record, next_run_at=following)
