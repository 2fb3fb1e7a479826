"""Decides what can be said of a pipeline from what Redis holds of it. Never guesses: what is not
known for sure is a fault of the view, and no outcome but `unknown` comes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.events import Definition, to_vector
from shared.lifecycle import HEARTBEAT_AGE_MS_MAX, Phase
from shared.slots import NON_FINAL_AGE_MS_MAX, Slot
from shared.vectors import Vector

PipelineKey = tuple[str, str]
"""Tenant and uid."""

STOPPED_PHASES = frozenset({Phase.STOPPED, Phase.FAILED, Phase.STOPPING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Whose the slot is, which change it shows, when that was confirmed, and who answers now."""

    server_run_id: str
    run_id: str | None
    version: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One look at a pipeline's slot; `slot` is None when there is none that we can read."""

    stamp: Stamp
    slot: Slot | None
    reached: Mapping[str, Vector]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Equal views give every token the same outcome, so nobody is woken by a mere heartbeat."""

    fault: str | None
    fresh: bool
    generation: int
    definition: Definition | None
    reached: Mapping[str, Vector]
    blocked_by: str | None
    version: int = field(compare=False)


def reading_of(stamp: Stamp, slot: Slot | None) -> Reading:
    sinks = {} if slot is None else slot.sinks
    reached = {key: to_vector(state.reached) for key, state in sinks.items()}
    return Reading(stamp=stamp, slot=slot, reached=reached)


def view_of(reading: Reading | None, now_ms: int) -> View:
    """The view of a reading; without one, Redis did not answer."""
    if reading is None:
        return _no_view("redis_away", version=0)
    slot, stamp = usable_slot(reading), reading.stamp
    if slot is None:
        return _no_view("slot_missing", version=stamp.version)
    return View(
        fault=None if slot.definition is not None else "no_definition",
        fresh=now_ms - stamp.at <= NON_FINAL_AGE_MS_MAX,
        generation=slot.generation,
        definition=slot.definition,
        reached=reading.reached,
        blocked_by=_blocked_by(slot, now_ms),
        version=stamp.version,
    )


def usable_slot(reading: Reading | None) -> Slot | None:
    """The slot, if it was written to the very server that answers."""
    if reading is None or reading.stamp.run_id != reading.stamp.server_run_id:
        return None
    return reading.slot


def silent(slot: Slot, now_ms: int) -> bool:
    """The runner has said nothing for several heartbeats."""
    return now_ms - slot.heard_at > HEARTBEAT_AGE_MS_MAX


def _no_view(fault: str, *, version: int) -> View:
    return View(
        fault=fault,
        fresh=False,
        generation=-1,
        definition=None,
        reached={},
        blocked_by=None,
        version=version,
    )


def _blocked_by(slot: Slot, now_ms: int) -> str | None:
    event = slot.lifecycle
    if event is None:
        return None
    if event.phase in STOPPED_PHASES:
        return "stage_stopped"
    if silent(slot, now_ms):
        return "runner_silent"
    return "recovering" if event.phase == Phase.RECOVERING else None
