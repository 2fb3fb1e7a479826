"""Describes what is wrong with a pipeline next to its phase, and what to do about it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from waybill_shared.contract.lifecycle_events import Condition
from waybill_shared.contract.moments import Moment
from waybill_shared.contract.run_words import DegradedCause
from waybill_status.core.outcomes.views import SlotReading, silent, usable_slot

SHOWN: Final = {"description": "what is wrong with it next to its phase; empty: nothing"}
HINTS: Final[Mapping[str, str]] = {
    DegradedCause.NO_PROGRESS: (
        "`waybill logs {name}` says what it did last; `waybill restart {name} --mode force` does"
        " not wait"
    ),
    DegradedCause.DRIVER_SILENT: (
        "look at the driver's process and the memory of its host;"
        " `waybill restart {name} --mode force` does not wait"
    ),
    DegradedCause.SINK_WAITS: "look for locks, and for what else the sink is busy with",
    DegradedCause.BATCH_LONG: "a larger batch than usual? `maxOffsetsPerTrigger` is its bound",
    DegradedCause.NO_COMMIT: "compare the time of its batches with the trigger; look at its sinks",
    DegradedCause.STAGE_FAILED: "`waybill start {name} --stage {stage}` goes on",
    DegradedCause.RETRYING: "`waybill events {name}` shows what failed before",
}
"""By cause. `{name}` is that of the pipeline, `{stage}` that of the stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionDetail:
    kind: str = field(metadata={"description": "degraded"})
    stage: str | None
    cause: DegradedCause | str
    since: Moment
    message: str | None = field(
        default=None, metadata={"description": "what has happened, if the cause does not say it"}
    )
    hint: str | None = field(default=None, metadata={"description": "what to do"})


def conditions_of(name: str, reading: SlotReading | None) -> tuple[ConditionDetail, ...]:
    """Return what is wrong with the pipeline of that name, if its runner is alive."""
    slot = usable_slot(reading)
    if slot is None or reading is None or silent(slot, reading.stamp.now_ms):
        return ()
    return tuple(
        ConditionDetail(
            kind=each.kind,
            stage=each.stage,
            cause=each.cause,
            since=each.since,
            message=each.message,
            hint=_hint(name, each),
        )
        for each in slot.conditions
    )


def _hint(name: str, condition: Condition) -> str | None:
    """Return what to do: what the failure says, and what the cause does."""
    text = HINTS.get(condition.cause, "").format(name=name, stage=condition.stage)
    return "; ".join(filter(None, (condition.hint, text))) or None


def sentence_of(condition: ConditionDetail) -> str:
    """Return what is wrong, for people."""
    known = condition.cause in set(DegradedCause)
    cause = DegradedCause(condition.cause).plain if known else condition.cause
    what = condition.message or cause
    named = condition.stage is None or f"stage {condition.stage}:" in what
    return what if named else f"stage {condition.stage}: {what}"
