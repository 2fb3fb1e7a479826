"""Decides which phase is shown when the record of a pipeline is newer than its slot. Pure.

The record has the wish and the number of the newest run, the slot the last phase that the tracker
has received. The runner writes the record first, so the slot may be that of an earlier wish.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.lifecycle import Phase
from waybill_shared.contract.lifecycle_events import LifecycleEvent

OVERTAKEN: Final[Mapping[tuple[str, str], Phase]] = {
    (Phase.PAUSED, "running"): Phase.STARTING,
    (Phase.STOPPED, "running"): Phase.STARTING,
    (Phase.STOPPED, "paused"): Phase.STARTING,
    (Phase.FINISHED, "paused"): Phase.STARTING,
}
"""What is shown in place of a phase that a wish has ended already."""


def newest_event(record: PipelineRecord, event: LifecycleEvent | None) -> LifecycleEvent | None:
    """Return the event of the slot; if the record is newer, with the phase that follows from it."""
    phase = None if event is None else _overtaken_by(record, event)
    if event is None or phase is None:
        return event
    return replace(
        event,
        phase=phase,
        reason=f"what comes after {event.phase} is not reported yet",
        at=max(event.at, record.updated_at),
        run=record.run,
        attempt=event.attempt if event.phase == Phase.RECOVERING else 0,
        error=None,
        next_at=None,
        escalates_at=None,
        blocked_by=None,
    )


def next_run_at(record: PipelineRecord, phase: str) -> int | None:
    """Return when its schedule begins the next run. One that has failed waits for a person."""
    begins = record.desired == "running" and phase != Phase.FAILED
    return record.next_run_at if begins else None


def _overtaken_by(record: PipelineRecord, event: LifecycleEvent) -> Phase | None:
    if event.run < record.run:
        return Phase.STARTING
    if event.phase == Phase.FINISHED and record.desired == "running" and not record.finished:
        return Phase.STARTING
    if event.phase == Phase.PAUSED and record.desired == "stopped":
        return Phase.STOPPING if record.stop_mode is StopMode.FORCE else Phase.CHECKPOINT_STOPPING
    return OVERTAKEN.get((event.phase, record.desired))
