"""Keeps one slot per pipeline in memory, and the same slots in Redis.

Promise: a slot in Redis is always what the facts below its position give. If Redis has lost it, the
slot is written there only after every fact that existed at that moment has been applied again. An
older copy of a slot is replaced as soon as it is seen.
"""

import logging
import secrets
from collections.abc import Iterable
from dataclasses import replace
from itertools import count

from waybill_shared.contract.events import Fact, Snapshot
from waybill_shared.contract.lifecycle_events import Beat, LifecycleEvent
from waybill_shared.contract.slots import Slot, entry_of
from waybill_shared.process.clock import Clock
from waybill_token_tracker.app.measuring import count_beat, count_lost_slot, measure, measure_delay
from waybill_token_tracker.app.ports import Journal, SlotWrite, Store, WriteResult
from waybill_token_tracker.app.state import Partition, TrackedPipeline, restore
from waybill_token_tracker.core.facts import apply_beat, apply_fact, apply_lifecycle
from waybill_token_tracker.core.snapshots import SnapshotRule, Unsaved

logger = logging.getLogger(__name__)


class Tracker:
    """The slots of the partitions that this process owns.

    `loop` drives it. `adapters.kafka` calls `acquire`, `handle_…` and `release`; `core.facts`
    decides what a fact changes. `flush` writes changed slots, `confirm` finds lost ones and `save`
    snapshots.
    """

    def __init__(
        self, store: Store, journal: Journal, clock: Clock, rule: SnapshotRule | None = None
    ) -> None:
        self._rule = rule or SnapshotRule()
        self._store = store
        self._journal = journal
        self._clock = clock
        self._partitions: dict[int, Partition] = {}
        self._name = secrets.token_hex(8)
        self._marks = count()

    def acquire(self, partition: int, position: int, snapshots: Iterable[Snapshot]) -> None:
        """Start to own a partition. Every fact below `position` is in its snapshots; each of them
        says up to which position."""
        state = restore(snapshots)
        self._partitions[partition] = Partition(
            position=position, rebuild_from=self._journal.end(partition), pipelines=state
        )
        for pipeline in state.values():
            pipeline.changed = True

    def release(self, partition: int) -> None:
        self._partitions.pop(partition, None)

    def handle_fact(self, partition: int, offset: int, fact: Fact) -> None:
        own = self._partitions.get(partition)
        if own is None or offset < own.position:
            return
        own.position = offset + 1
        state = self._state_of(own, fact.tenant, fact.pipeline_uid)
        if offset < state.restored_to:
            return
        applied = apply_fact(state.slot, fact)
        measure(state.slot, fact, applied.slot)
        if applied.slot != state.slot:
            state.changed = True
            state.unsaved = state.unsaved or self._collect_unsaved(offset)
        state.slot = state.dead_letters.add(applied.slot, applied.dead)
        entries = [entry_of(progress) for progress in applied.progress]
        state.fresh += entries
        state.history += entries
        if applied.progress:
            measure_delay(applied.progress, self._clock.now_ms())

    def pass_to(self, partition: int, position: int) -> None:
        """Move the position: nothing is left to read below it. Transaction markers have offsets,
        too."""
        own = self._partitions.get(partition)
        if own is not None:
            own.position = max(own.position, position)

    def handle_lifecycle(self, partition: int, event: LifecycleEvent) -> None:
        own = self._partitions.get(partition)
        if own is None:
            return
        state = self._state_of(own, event.tenant, event.pipeline_uid)
        slot = apply_lifecycle(state.slot, event, self._clock.now_ms())
        if slot.lifecycle != state.slot.lifecycle:
            state.unsaved = replace(
                state.unsaved or self._collect_unsaved(own.position), urgent=True
            )
        if slot != state.slot:
            state.slot, state.changed = slot, True

    def handle_beat(self, partition: int, beat: Beat) -> None:
        """Apply a beat. It needs no snapshot, because the next beat repeats it."""
        own = self._partitions.get(partition)
        if own is None:
            return
        count_beat()
        state = self._state_of(own, beat.tenant, beat.pipeline_uid)
        slot = apply_beat(state.slot, beat, self._clock.now_ms())
        if slot != state.slot:
            state.slot, state.changed = slot, True

    def flush(self) -> None:
        """Write every slot that has changed, and every lost one that may be written again."""
        for number, partition in self._partitions.items():
            if partition.rebuild_from is None:
                partition.rebuild_from = self._journal.end(number)
            pending = [
                state
                for state in partition.pipelines.values()
                if (state.changed and not state.lost) or (state.lost and partition.complete)
            ]
            self._write(number, partition, pending, confirm=False)

    def confirm(self) -> None:
        """Confirm every unchanged slot in Redis, and find out which are lost."""
        for number, partition in self._partitions.items():
            quiet = [h for h in partition.pipelines.values() if not (h.changed or h.lost)]
            self._write(number, partition, quiet, confirm=True)

    def save(self, *, whole: bool = False, again: bool = False) -> None:
        """Store snapshots of what is due, so that a restart reads only the latest facts. If
        `whole`, store every change that is in no snapshot. If `again`, store all: the existing ones
        may be deleted."""
        now = self._clock.now_ms()
        saved: list[TrackedPipeline] = []
        snapshots: list[Snapshot] = []
        positions: dict[int, int] = {}
        for number, partition in self._partitions.items():
            due, waiting = partition.due(now, None if whole else self._rule)
            due = [*partition.pipelines.values()] if again else due
            position = min([partition.position, *(unsaved.position for unsaved in waiting)])
            if due or position != partition.saved_position:
                positions[number] = position
                saved += due
                for state in due:
                    snapshots += partition.snapshots(number, state, now, again=again)
        if not positions:
            return
        self._journal.save(snapshots, positions)
        for state in saved:
            state.unsaved = None
            state.dead_letters.saved = state.dead_letters.checksums()
        for number, position in positions.items():
            self._partitions[number].saved_position = position

    def partitions(self) -> frozenset[int]:
        """Return the partitions that this tracker owns."""
        return frozenset(self._partitions)

    def slots(self) -> tuple[Slot, ...]:
        """Return the slots of partitions that have applied every fact from before their takeover,
        or more."""
        return tuple(
            state.slot
            for partition in self._partitions.values()
            if partition.complete
            for state in partition.pipelines.values()
        )

    def _collect_unsaved(self, position: int) -> Unsaved:
        return Unsaved(position=position, since_ms=self._clock.now_ms())

    def _state_of(self, partition: Partition, tenant: str, pipeline_uid: str) -> TrackedPipeline:
        state = partition.pipelines.get(pipeline_uid)
        if state is None:
            slot = Slot(tenant=tenant, pipeline_uid=pipeline_uid)
            state = partition.pipelines[pipeline_uid] = TrackedPipeline(slot=slot)
        return state

    def _write(
        self, number: int, partition: Partition, pending: list[TrackedPipeline], *, confirm: bool
    ) -> None:
        if not pending:
            return
        writes = [self._plan(number, partition, state, confirm=confirm) for state in pending]
        results = self._store.write(writes)
        lost = 0
        for state, write, result in zip(pending, writes, results, strict=True):
            if result in (WriteResult.LOST, WriteResult.STALE):
                state.lost = True
                lost += 1
                if state.mark:  # else it is new, and was not lost
                    count_lost_slot()
            elif not confirm:
                state.fresh.clear()
                state.dead_letters.mark_written()
                state.changed = state.lost = False
                state.mark = write.mark
        if lost:
            partition.rebuild_from = None
            logger.info(
                "slots are missing and will be written whole",
                extra={"partition": number, "slots": lost},
            )

    def _plan(
        self, number: int, partition: Partition, state: TrackedPipeline, *, confirm: bool
    ) -> SlotWrite:
        must_replace = state.lost or state.dead_letters.must_replace
        dead = state.dead_letters.entries if must_replace else state.dead_letters.fresh
        return SlotWrite(
            tenant=state.slot.tenant,
            pipeline_uid=state.slot.pipeline_uid,
            topic_id=self._journal.topic_id,
            partition=number,
            position=partition.position,
            at=self._clock.now_ms(),
            slot=None if confirm else state.slot,
            writer=self._name,
            mark=state.mark if confirm else f"{self._name}.{next(self._marks)}",
            history=tuple(state.history if state.lost else state.fresh),
            rebuilt=state.lost,
            dead=() if confirm else tuple(dead),
            replaces_dead=must_replace,
        )
