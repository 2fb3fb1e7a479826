"""Keeps the pipelines of the tracker in memory, makes snapshots of them and restores them."""

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from waybill_shared.contract.events import SLOT, Snapshot
from waybill_shared.contract.slots import SLOT_VERSION, Entry, Slot
from waybill_token_tracker.app.dead_letter_state import DeadLetterState, restore_dead_letters
from waybill_token_tracker.core.snapshots import SnapshotRule, Unsaved, pack, unpack

logger = logging.getLogger(__name__)

HISTORY_IN_MEMORY: Final = 256  # per pipeline; the past batches that a rebuilt slot has


@dataclass(slots=True)
class TrackedPipeline:
    """A pipeline in memory."""

    slot: Slot
    fresh: list[Entry] = field(default_factory=list)
    history: deque[Entry] = field(default_factory=lambda: deque(maxlen=HISTORY_IN_MEMORY))
    changed: bool = False
    unsaved: Unsaved | None = None
    restored_to: int = 0
    """Facts below this position are in the snapshot that this started with."""
    lost: bool = False
    mark: str = ""
    """The mark of the last write. No two writes have the same."""
    dead_letters: DeadLetterState = field(default_factory=DeadLetterState)


@dataclass(slots=True)
class Partition:
    """A partition of the commits topic that this process owns."""

    position: int
    rebuild_from: int | None
    """A lost slot may be rebuilt once `position` is here. None: the journal must be asked for its
    end."""
    pipelines: dict[str, TrackedPipeline] = field(default_factory=dict)
    saved_position: int = -1

    @property
    def complete(self) -> bool:
        return self.rebuild_from is not None and self.position >= self.rebuild_from

    def due(
        self, now_ms: int, rule: SnapshotRule | None
    ) -> tuple[list[TrackedPipeline], list[Unsaved]]:
        """Return the pipelines to snapshot now, and what is unsaved of those that may wait. Without
        a rule none may wait."""
        due, waiting = [], []
        for state in self.pipelines.values():
            if state.unsaved is None:
                continue
            if rule is None or state.unsaved.due(self.position, now_ms, rule):
                due.append(state)
            else:
                waiting.append(state.unsaved)
        return due, waiting

    def snapshots(
        self, number: int, state: TrackedPipeline, now_ms: int, *, again: bool
    ) -> tuple[Snapshot, ...]:
        """Return the snapshot of the slot and those of dead letters that are not saved yet; all if
        `again`."""
        slot = pack(state.slot, state.history, state.dead_letters.checksums())
        return tuple(
            Snapshot(
                tenant=state.slot.tenant,
                pipeline_uid=state.slot.pipeline_uid,
                partition=number,
                position=self.position,
                slot_version=SLOT_VERSION,
                slot=text,
                at=now_ms,
                chunk=chunk,
            )
            for chunk, text in ((SLOT, slot), *state.dead_letters.list_unsaved(again=again))
        )


def restore(snapshots: Iterable[Snapshot]) -> dict[str, TrackedPipeline]:
    """Return the pipelines of one partition by uid."""
    by_uid: dict[str, dict[int, Snapshot]] = {}
    for snapshot in snapshots:
        by_uid.setdefault(snapshot.pipeline_uid, {})[snapshot.chunk] = snapshot
    return {uid: _restore(parts) for uid, parts in by_uid.items() if SLOT in parts}


def _restore(parts: Mapping[int, Snapshot]) -> TrackedPipeline:
    snapshot = parts[SLOT]
    saved = unpack(snapshot)
    dead_letters = restore_dead_letters(
        {number: part.slot for number, part in parts.items()}, saved.dead_chunks
    )
    if dead_letters.checksums() != saved.dead_chunks:
        uid = snapshot.pipeline_uid
        logger.error("dead letters are missing in snapshots", extra={"pipeline_uid": uid})
    return TrackedPipeline(
        slot=saved.slot,
        history=deque(saved.history, maxlen=HISTORY_IN_MEMORY),
        restored_to=snapshot.position,
        dead_letters=dead_letters,
    )
