"""Decides whether what a person made of a dead record may be processed in its place. Pure."""

from dataclasses import replace
from typing import Final, TypedDict

from waybill_ingress.core.dead_letters import FoundDeadLetter
from waybill_ingress.core.inputs import row_rules
from waybill_ingress.core.rows import RowLimits, RowReader, RowRule
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.manifest.formats import FORMATS
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.replays import EditedRecord, LetterReplay
from waybill_shared.contract.slots import stage_key

EDITED_BYTES_MAX: Final = 900_000  # with its key: brokers take a message of 1,048,576
LIMITS: Final = RowLimits(
    records_max=1, record_bytes_max=EDITED_BYTES_MAX, bytes_max=EDITED_BYTES_MAX
)
BETWEEN_STAGES: Final = RowRule(columns=(), key=None)
"""What a stage writes for another one is a JSON object; only the driver knows its columns."""
HINT: Final = "`waybill dlq show` has the record as it was, and why it died"


class RecordEdit(TypedDict, total=False):
    """The change of a record by a person; what is absent stays as it was."""

    key: bytes | None
    value: bytes | None


def with_edit(
    record: PipelineRecord, asked: LetterReplay, found: FoundDeadLetter, edit: RecordEdit
) -> LetterReplay:
    """Return the message with the edited record. Raise Refusal if that does not fit its input."""
    edited = EditedRecord(
        key=edit.get("key", found.key),
        value=edit.get("value", found.value),
    )
    name = _input_of(record, asked)
    source = record.manifest.model.input(name)
    any_bytes = source is not None and FORMATS[source.format].whole
    rule = row_rules(record.manifest).get(name, BETWEEN_STAGES)
    reason = _find_fault(rule, edited, any_bytes=any_bytes)
    if reason is not None:
        raise Refusal(
            Slug.RECORDS_REJECTED,
            f"the edited record does not fit input {name!r}: {reason}; nothing was replayed",
            hint=HINT,
            rejected=[{"index": 0, "reason": reason}],
        )
    return replace(asked, edited=edited, size=edited.size)


def _input_of(record: PipelineRecord, asked: LetterReplay) -> str:
    """Return the name of the input in which the record died."""
    return next(
        each.name
        for stage in record.stages
        for each in stage.inputs
        if (stage_key(stage), each.topic) == (asked.stage, asked.topic)
    )


def _find_fault(rule: RowRule, edited: EditedRecord, *, any_bytes: bool) -> str | None:
    """Return why the record gives no row, as for one that is sent over HTTP."""
    if edited.value is None and not any_bytes:
        return "it has no value"
    rows = RowReader(rule, LIMITS, keep=lambda _: None)
    if any_bytes:
        rows.take_checked(edited.value or b"", edited.key)
    else:
        rows.take_record(edited.value or b"", edited.key)
    return rows.rejected[0].reason if rows.rejected else None
