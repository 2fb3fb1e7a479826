"""Decides which stages of a pipeline are stopped, and what starts them again. Never does I/O, never
reads the clock.

1. A driver reports a stage that has failed by itself; its other stages go on. `note_stopped` adds
   it to the record, which is written at once, and each later run gets the record.
2. A command may start it again: `start_record`; `keep_stopped` after `apply`; `without_reads` for
   a record that a person puts into a dead-letter topic. A restart starts all.
3. Where a run goes on, `order_starts` lets its driver start these stages. `note_started` answers
   the command when the driver has tried all of them.
4. A stage at which each attempt crashes is stopped, too, when there were enough: `stop_crashing`.
5. If every stage is stopped, `fail_stopped` lets the pipeline fail; no driver is started for it.
   It does so, too, when a run ends by itself that had left out a stage.
"""

from collections.abc import Iterator
from dataclasses import replace

from waybill_shared.contract.commands import Start
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import Command, Desired, PipelineRecord, StageDefinition
from waybill_shared.contract.lifecycle import STOPS, Happening, Phase
from waybill_shared.contract.lifecycle_events import LifecycleError
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.model import Manifest, Stage
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.stopped_stages import MESSAGE_CHARACTERS_MAX, StoppedStage
from waybill_stage_runner.core.pipelines import actions, events
from waybill_stage_runner.core.pipelines.attempts import reset_attempts, wait_longer
from waybill_stage_runner.core.pipelines.moves import Decision, answer_done, move
from waybill_stage_runner.core.pipelines.states import PipelineState

Stopped = tuple[StoppedStage, ...]


def is_all_stopped(record: PipelineRecord) -> bool:
    """Return True if each stage is stopped, so that a run would do nothing."""
    return bool(record.stopped_stages) and {s.name for s in record.stages} <= _names(record)


def note_stopped(state: PipelineState, event: events.DriverStageStopped) -> Decision:
    """Write down that a stage has stopped by itself.

    A run that is ended for another one, or by a person, may be of an earlier record: what fails in
    it counts no more. If it fails again, the next run says so.
    """
    stopped = _make_stopped(state.record, event)
    if stopped is None or state.phase in STOPS:
        return state, ()
    after = replace(state, record=_with(state.record, stopped))
    if state.pending and not state.starting:
        warning = f"stage {stopped.stage} is stopped: {stopped.message}"
        after = replace(after, warnings=(*state.warnings, warning))
    if after.next is not None:
        after = replace(after, next=_with(after.next, stopped))
    return after, (actions.WriteRecord(), actions.SendHeartbeat())


def stop_crashing(
    state: PipelineState, error: LifecycleError, at: int, now: int
) -> Decision | None:
    """Stop the stage at which each run of late has crashed, and let the next run begin without it.

    None: another stage or none was named, too, or it is the only one that is left.
    """
    record = state.record
    crashes = error.retryable and error.stage is not None and error.stage == state.crash_stage
    if not crashes:
        return None
    report = events.DriverStageStopped(error=error, put_aside=0, at=at)
    after, made = note_stopped(reset_attempts(state), report)
    if after.record == record or is_all_stopped(after.record):
        return None
    waiting, more = move(wait_longer(after, error, now), Happening.RETRY, now, error.message)
    return reset_attempts(waiting), (*made, *more)


def start_record(before: PipelineRecord, body: Start, now: int) -> PipelineRecord:
    """Return the record after a start: its stopped stages start, or the one that is named. If there
    are any, a pipeline that is paused stays so.
    """
    names = [stage.name for stage in before.stages]
    if body.stage is not None and body.stage not in names:
        message = f"{before.name} has no stage {body.stage}"
        problem = Problem(message=message, hint=f"its stages: {', '.join(names)}")
        raise UserError([problem], Slug.INVALID)
    kept = tuple(each for each in before.stopped_stages if body.stage not in (None, each.stage))
    stays = before.desired == "paused" and bool(before.stopped_stages)
    desired: Desired = "paused" if body.paused or stays else "running"
    return replace(before, desired=desired, finished=False, stopped_stages=kept, updated_at=now)


def keep_stopped(
    before: PipelineRecord, manifest: AppliedManifest, stages: tuple[StageDefinition, ...]
) -> Stopped:
    """Return the stages that stay stopped after `apply`: those that it does not change. If all were
    stopped, the pipeline has failed, and `apply` starts it.
    """
    if is_all_stopped(before):
        return ()
    lives = {(stage.name, stage.since) for stage in stages}
    return tuple(
        each
        for each in before.stopped_stages
        if (each.stage, each.since) in lives
        and _part(before.manifest, each.stage) == _part(manifest, each.stage)
    )


def without_reads(record: PipelineRecord, topic_id: str, stage: str | None) -> Stopped:
    """Return the stages that stay stopped when those that read a topic, or one of these, start. All
    stages read `waybill.replays`, which is no input of any.
    """
    reads = {s.name for s in record.stages for i in s.inputs if i.topic_id == topic_id}
    reads = reads or {stage.name for stage in record.stages}
    started = reads if stage is None else reads & {stage}
    return tuple(each for each in record.stopped_stages if each.stage not in started)


def find_started(before: PipelineRecord, after: PipelineRecord) -> tuple[str, ...]:
    """Return the stages that a new record starts."""
    present = {stage.name for stage in after.stages}
    return tuple(
        each.stage
        for each in before.stopped_stages
        if each.stage in present and each.stage not in _names(after)
    )


def warn_of_letters(state: PipelineState, after: PipelineRecord) -> PipelineState:
    """Say to whoever starts stages how many records these have put aside."""
    started = find_started(state.record, after)
    warnings = tuple(
        f"stage {each.stage} had put {_records(each.put_aside)} aside before it stopped; its start"
        " has a fresh budget"
        for each in state.record.stopped_stages
        if each.stage in started and each.put_aside
    )
    return replace(state, warnings=(*state.warnings, *warnings))


def warn_of_going(state: PipelineState, command: Command | None) -> PipelineState:
    """Say that a stage goes on already, to whoever starts it while the pipeline runs. Where runs
    end by themselves, the next one starts it.
    """
    stage = command.body.stage if command is not None and isinstance(command.body, Start) else None
    goes_on = stage is not None and stage not in (*_names(state.record), *state.starting)
    runs = state.phase in (Phase.RUNNING, Phase.PAUSED) and not state.record.manifest.model.ends
    if not (goes_on and runs):
        return state
    left = ", ".join(each.stage for each in state.record.stopped_stages)
    others = f"; stopped are: {left}" if left else ""
    warning = f"stage {stage} is not stopped, so nothing was started{others}"
    return replace(state, warnings=(*state.warnings, warning))


def order_starts(state: PipelineState, stages: tuple[str, ...]) -> Decision:
    """Let the driver start stages while the others go on. A driver that has not reported that it
    runs does it before that, or right after. If the run ends by itself, the next one starts them.
    """
    if not stages or state.record.manifest.model.ends:
        return state, ()
    order = state.start_orders + 1
    runs = state.phase in (Phase.RUNNING, Phase.PAUSED)
    starting = (*state.starting, *stages) if runs else ()
    ordered = replace(state, start_orders=order, starting=starting)
    return ordered, (actions.StartStages(stages=stages, order=order),)


def note_started(state: PipelineState, event: events.DriverStagesStarted) -> Decision:
    """Answer the commands, now that the driver has tried all stages of its newest order."""
    if event.order != state.start_orders:
        return state, ()
    names, after = state.starting, replace(state, starting=())
    if not after.is_as_desired:
        return after, ()
    answered, answers = answer_done(after, names)
    return answered, (*answers, actions.SendHeartbeat())


def fail_stopped(state: PipelineState, now: int) -> Decision:
    """Let a pipeline fail of which every stage is stopped, or one of a run that has ended."""
    first = state.record.stopped_stages[0]
    error = LifecycleError(
        domain="user",
        message=first.message,
        hint=first.hint,
        stage=first.stage,
        sink=first.sink,
        retryable=False,
    )
    return move(replace(state, error=error, next_at=None), Happening.FAIL, now, first.message)


def _make_stopped(record: PipelineRecord, event: events.DriverStageStopped) -> StoppedStage | None:
    """Return what the record is to say; None if it has no such stage."""
    definition = next((s for s in record.stages if s.name == event.error.stage), None)
    if definition is None:
        return None
    return StoppedStage(
        stage=definition.name,
        since=definition.since,
        at=event.at,
        run=record.run,
        message=event.error.message[:MESSAGE_CHARACTERS_MAX],
        hint=event.error.hint[:MESSAGE_CHARACTERS_MAX],
        sink=event.error.sink,
        put_aside=event.put_aside,
    )


def _records(count: int) -> str:
    return f"{count} record{'' if count == 1 else 's'}"


def _names(record: PipelineRecord) -> set[str]:
    return {each.stage for each in record.stopped_stages}


def _with(record: PipelineRecord, stopped: StoppedStage) -> PipelineRecord:
    """Return the record with a stopped stage, if it has that life of the stage."""
    if not any((s.name, s.since) == (stopped.stage, stopped.since) for s in record.stages):
        return record
    others = tuple(each for each in record.stopped_stages if each.stage != stopped.stage)
    return replace(record, stopped_stages=(*others, stopped))


def _part(manifest: AppliedManifest, stage: str) -> object:
    """Return what a stage depends on: itself, what it reads, the stages that write that, and where
    dead letters go. None: the manifest is refused today.
    """
    try:
        model = manifest.model
    except UserError:
        return None
    stages = list(_stages_before(model, stage))
    read = {name for each in stages for name in each.inputs}
    return stages, [source for source in model.inputs if source.name in read], model.dead_letter


def _stages_before(model: Manifest, stage: str) -> Iterator[Stage]:
    """Yield a stage, and those that write what it reads, directly or through others."""
    wanted, found = {stage}, set[str]()
    while wanted - found:
        name = min(wanted - found)
        found.add(name)
        own = next(each for each in model.stages if each.name == name)
        yield own
        wanted |= {s.name for s in model.stages for k in s.sinks if k.name in own.inputs}
