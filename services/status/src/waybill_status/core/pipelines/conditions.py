"""Describes what is wrong with a pipeline next to its phase, and what to do about it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

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
    DegradedCause.RETRYING: "`waybill events {name}` shows what failed before",
}
"""By cause. `{name}` is that of the pipeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionDetail:
    kind: str = field(metadata={"description": "degraded"})
    stage: str | None
    cause: DegradedCause | str
    since: Moment
    hint: str | None = field(metadata={"description": "what to do"})


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
            hint=HINTS[each.cause].format(name=name) if each.cause in HINTS else None,
        )
        for each in slot.conditions
    )


def sentence_of(condition: ConditionDetail) -> str:
    """Return what is wrong, for people."""
    known = condition.cause in set(DegradedCause)
    what = DegradedCause(condition.cause).plain if known else condition.cause
    return what if condition.stage is None else f"stage {condition.stage}: {what}"
