"""Finds the input that a request means, and the rules for its records.

A refusal names the inputs that exist.
"""

from functools import lru_cache

from waybill_ingress.core.encoders.form import form_of
from waybill_ingress.core.rows import RowRule
from waybill_shared.contract.connector_view import no_connector
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import InputDefinition, PipelineRecord
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.connectors import FileConnector
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.suggestions import hint_of_names


@lru_cache(maxsize=1024)
def row_rules(manifest: AppliedManifest) -> dict[str, RowRule]:
    """Return the rule of each input by its name. The manifest was checked when it was applied."""
    return {
        source.name: RowRule(
            columns=source.list_columns(),
            key=source.key,
            strict=source.on_unknown_field == "refuse",
            deletes=source.deletes.column if source.deletes is not None else None,
            form=form_of(source),
        )
        for source in manifest.model.inputs
    }


def find_input(record: PipelineRecord, name: str) -> InputDefinition:
    """Return the root input of that name, with its bases. Raises Refusal."""
    roots = record.root_inputs()
    found = roots.get(name)
    if found is not None and found.bases:
        return found
    if found is not None or (not record.stages and name in row_rules(record.manifest)):
        raise not_ready(
            Slug.INPUT_NOT_READY, f"input {name} of {record.name} has no starting offsets yet"
        )
    known = sorted(roots)
    detail = f"pipeline {record.name} has no input {name!r} that takes records"
    hint = hint_of_names(name, known, "known inputs")
    raise Refusal(Slug.INPUT_NOT_FOUND, detail, hint=hint, known=known)


def find_connector(record: PipelineRecord, source: str, name: str) -> FileConnector:
    manifest = record.manifest.model.input(source)
    connectors = manifest.connectors if manifest is not None else ()
    found = next((each for each in connectors if each.name == name), None)
    if found is None:
        raise no_connector(name, record.name, source, [each.name for each in connectors])
    return found


def not_ready(slug: Slug, reason: str, **members: object) -> Refusal:
    return Refusal(slug, f"{reason}: it is being set up, try again", **members)
