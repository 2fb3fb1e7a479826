"""Decides how a command changes the record of a pipeline. Never does I/O, never reads the clock."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from waybill_shared.contract.commands import PlainChange, Start, StopMode
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import (
    Command,
    Desired,
    PipelineRecord,
    StageDefinition,
)
from waybill_shared.contract.lifecycle import STOPS, Phase, allowed_actions
from waybill_shared.contract.manifest.applied import AppliedManifest, EarlierManifest
from waybill_shared.contract.manifest.renamed import rename_manifest
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.words import Action
from waybill_stage_runner.core.pipelines.compatibility import refuse_incompatible
from waybill_stage_runner.core.pipelines.names import with_name
from waybill_stage_runner.core.pipelines.parallelism import rescale_to_keep
from waybill_stage_runner.core.pipelines.renaming import follow_names
from waybill_stage_runner.core.pipelines.scheduling import schedule_in
from waybill_stage_runner.core.pipelines.stopped_stages import keep_stopped

DESIRED_BY_ACTION: Final[Mapping[Action, Desired]] = {
    Action.START: "running",
    Action.RESUME: "running",
    Action.PAUSE: "paused",
    Action.STOP: "stopped",
    Action.DELETE: "deleted",
}
EARLIER_MAX: Final = 10  # earlier manifests that are kept
EARLIER_BYTES_MAX: Final = 262_144  # of all of them: the record is one message


def create_record(
    command: Command,
    manifest: AppliedManifest,
    desired: Literal["running", "stopped"],
    stages: tuple[StageDefinition, ...],
    now: int,
) -> PipelineRecord:
    return PipelineRecord(
        tenant=command.tenant,
        pipeline_uid=command.pipeline_uid,
        name=command.pipeline,
        generation=1,
        desired=desired,
        manifest=manifest,
        stages=stages,
        created_at=now,
        updated_at=now,
        commanded_at=-1,
        life=command.life,
        finished=schedule_in(manifest) is not None and desired == "running",
    )


def change_record(
    before: PipelineRecord,
    manifest: AppliedManifest,
    desired: Literal["running", "stopped"],
    stages: tuple[StageDefinition, ...],
    now: int,
) -> PipelineRecord:
    """Return the record after `apply`: a new generation if the native manifest or
    the stages differ.

    A paused pipeline stays paused, and one that waits for a time of its schedule waits for it.
    Raises UserError if the stages cannot continue with the change.
    """
    before = replace(before, rescaled=rescale_to_keep(before, manifest))
    wanted: Desired = "paused" if (desired, before.desired) == ("running", "paused") else desired
    scheduled = schedule_in(manifest) is not None and wanted == "running"
    stopped = keep_stopped(before, manifest, stages)
    if manifest.native == before.manifest.native and stages == before.stages:
        rests = before.finished if wanted == before.desired else scheduled
        return replace(
            before, desired=wanted, manifest=manifest, finished=rests, stopped_stages=stopped
        )
    refuse_incompatible(before, stages)
    before = follow_names(before, stages)
    rests = scheduled and (before.finished or before.desired == "stopped")
    return replace(
        before,
        generation=before.generation + 1,
        desired=wanted,
        finished=rests,
        manifest=manifest,
        stages=stages,
        updated_at=now,
        earlier=_earlier(before, manifest, now),
        stopped_stages=stopped,
    )


def rename_record(before: PipelineRecord, name: str, now: int) -> PipelineRecord:
    """Return the record under another name, which its manifest has, too: a new generation. What is
    desired stays. Raise UserError if the manifest is not valid any more.
    """
    if name == before.name:
        return before
    manifest = rename_manifest(before.manifest, name, was=before.name)
    return replace(
        with_name(before, name),
        generation=before.generation + 1,
        manifest=manifest,
        updated_at=now,
        earlier=_earlier(before, manifest, now),
    )


def _earlier(
    before: PipelineRecord, manifest: AppliedManifest, now: int
) -> tuple[EarlierManifest, ...]:
    if manifest.native == before.manifest.native:
        return before.earlier
    last = EarlierManifest(generation=before.generation, manifest=before.manifest, until=now)
    kept = [*before.earlier, last][-EARLIER_MAX:]
    while sum(each.manifest.size for each in kept) > EARLIER_BYTES_MAX:
        del kept[0]
    return tuple(kept)


def restart_record(
    before: PipelineRecord, stages: tuple[StageDefinition, ...], now: int
) -> PipelineRecord:
    """Return the record after a restart: a new generation only if a topic was created again.

    A paused pipeline stays paused.
    """
    generation = before.generation + (stages != before.stages)
    return replace(
        before,
        generation=generation,
        desired="paused" if before.desired == "paused" else "running",
        finished=False,
        stages=stages,
        updated_at=now,
        stopped_stages=(),
    )


def refuse_not_allowed(body: PlainChange, record: PipelineRecord, phase: Phase) -> None:
    """Raise UserError if the phase does not allow the change, unless it asks for what is wanted
    already. A pipeline that has failed does not do what is wanted.
    """
    stopped = bool(record.stopped_stages)
    action, allowed = body.action, allowed_actions(phase, record.desired, has_stopped=stopped)
    is_wanted = record.desired == _desired_by(body) and phase is not Phase.FAILED
    if action in allowed or is_wanted:
        return
    *most, last = allowed
    hint = f"{', '.join(most)} or {last} it"
    problem = Problem(message=f"{record.name} is {phase}: {action} is not possible now", hint=hint)
    raise UserError([problem], Slug.NOT_ALLOWED_NOW)


def _desired_by(body: PlainChange) -> Desired | None:
    """Return what the record says after the change; None if that depends on the record before."""
    starts_paused = isinstance(body, Start) and body.paused
    return "paused" if starts_paused else DESIRED_BY_ACTION.get(body.action)


def refuse_drain(mode: StopMode, record: PipelineRecord, phase: Phase) -> None:
    """Raise UserError for a drain of a pipeline that does not run: nothing would be drained.

    One that is to be paused begins no batch, even if it is not there yet. A second drain joins the
    one that goes on.
    """
    runs = phase is Phase.RUNNING and record.desired == "running"
    drains = phase in STOPS and record.stop_mode is StopMode.DRAIN
    if mode is StopMode.DRAIN and not runs and not (drains and record.desired == "stopped"):
        now = "about to be paused" if phase is Phase.RUNNING else phase
        only = f"only a pipeline that is {Phase.RUNNING} can be drained"
        message = f"{record.name} is {now}: {only}"
        hint = "wait until it runs, or stop it with --mode checkpoint"
        raise UserError([Problem(message=message, hint=hint)], Slug.NOT_ALLOWED_NOW)


def refuse_deleted(command: Command, before: PipelineRecord | None, *, deleted: bool) -> None:
    """Raise UserError for a command that comes after a deletion, or for no pipeline.

    Only `apply` creates a pipeline, and only `delete` may follow a deletion.
    """
    refuse_ended(command, before, deleted=deleted)
    if before is None and command.action is not Action.APPLY:
        message = f"pipeline {command.pipeline} does not exist any more"
        raise UserError([Problem(message=message, hint="apply it again")], Slug.PIPELINE_GONE)


def refuse_ended(command: Command, before: PipelineRecord | None, *, deleted: bool) -> None:
    """Raise UserError for a command that comes after a deletion."""
    ended = before is not None and before.desired == "deleted"
    if deleted or (ended and command.action is not Action.DELETE):
        message = f"pipeline {command.pipeline} was deleted while this command was on its way"
        hint = "send it again: it makes a new one"
        raise UserError([Problem(message=message, hint=hint)], Slug.PIPELINE_GONE)
