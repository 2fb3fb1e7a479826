"""Says what `apply` would change in a pipeline that exists, or why it would refuse.

Creates no topic.
"""

from waybill_shared.contract.commands import Validate
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.model import Manifest
from waybill_stage_runner.app.ports import Checked, Topics
from waybill_stage_runner.core.pipelines.change import Change
from waybill_stage_runner.core.pipelines.compatibility import refuse_incompatible
from waybill_stage_runner.core.pipelines.manifest_changes import changes_of, notes_of, only_text
from waybill_stage_runner.core.pipelines.planning import as_planned, define, topics_of
from waybill_stage_runner.core.pipelines.validation_result import validation_result


def compare(body: Validate, found: Checked, before: PipelineRecord | None, topics: Topics) -> str:
    """Return the result of a validation, with the changes that `before` would get.

    Raises Retryable.
    """
    problems, changes = found.problems, None
    if before is not None:
        try:
            changes = _changes(body, found, before, topics)
        except UserError as error:
            problems = (*problems, *error.problems)
    notes = notes_of(found.alterations)
    return validation_result(body, problems, found.columns, changes, notes=notes)


def _changes(
    body: Validate, found: Checked, before: PipelineRecord, topics: Topics
) -> tuple[Change, ...] | None:
    """Return the changes; None if the earlier manifest is not valid any more."""
    manifest, old = body.manifest.model, _readable(before.manifest)
    plans = topics_of(manifest)
    try:
        planned = define(manifest, as_planned(plans, topics.ids(plans)), before)
        refuse_incompatible(before, planned)
    except UserError as error:
        raise UserError(body.manifest.place(error.problems), error.slug) from error
    if old is None:
        return None
    changes = changes_of(
        before,
        manifest_before=old,
        manifest_now=manifest,
        stages_now=planned,
        columns_before=found.columns_before,
        columns_now=found.columns,
        alterations=found.alterations,
    )
    same = body.manifest.source == before.manifest.source
    return changes or (() if same else (only_text(),))


def _readable(manifest: AppliedManifest) -> Manifest | None:
    try:
        return manifest.model
    except UserError:
        return None
