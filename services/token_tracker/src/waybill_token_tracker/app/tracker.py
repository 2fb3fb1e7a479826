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

from waybill_shared.contract.events import (
    Beat,
    Fact,
    LifecycleEvent,
    Snapshot,
)
from waybill_shared.contract.slots import Slot, entry_of
from waybill_shared.process.clock import Clock
from waybill_token_tracker.app.measuring import (
    count_beat,
    count_lost_slot,
    measure,
    measure_delay,
)
from waybill_token_tracker.app.ports import Journal, SlotWrite, Store, WriteResult
from waybill_token_tracker.app.state import Held, Partition, restore
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
        held = restore(snapshots)
        self._partitions[partition] = Partition(
            position=position, rebuild_from=self._journal.end(partition), pipelines=held
        )
        for pipeline in held.values():
            pipeline.changed = True

    def release(self, partition: int) -> None:
        self._partitions.pop(partition, None)

    def handle_fact(self, partition: int, offset: int, fact: Fact) -> None:
        own = self._partitions.get(partition)
        if own is None or offset < own.position:
            return
        own.position = offset + 1
        held = self._hold(own, fact.tenant, fact.pipeline_uid)
        if offset < held.restored_to:
            return
        applied = apply_fact(held.slot, fact)
        measure(held.slot, fact, applied.slot)
        if applied.slot != held.slot:
            held.changed = True
            held.unsaved = held.unsaved or self._unsaved(offset)
        held.slot = held.buried.add(applied.slot, applied.dead)
        entries = [entry_of(progress) for progress in applied.progress]
        held.fresh += entries
        held.history += entries
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
        held = self._hold(own, event.tenant, event.pipeline_uid)
        slot = apply_lifecycle(held.slot, event, self._clock.now_ms())
        if slot.lifecycle != held.slot.lifecycle:
            held.unsaved = replace(held.unsaved or self._unsaved(own.position), urgent=True)
        if slot != held.slot:
            held.slot, held.changed = slot, True

    def handle_beat(self, partition: int, beat: Beat) -> None:
        """Apply a beat. It needs no snapshot, because the next beat repeats it."""
        own = self._partitions.get(partition)
        if own is None:
            return
        count_beat()
        held = self._hold(own, beat.tenant, beat.pipeline_uid)
        slot = apply_beat(held.slot, beat, self._clock.now_ms())
        if slot != held.slot:
            held.slot, held.changed = slot, True

    def flush(self) -> None:
        """Write every slot that has changed, and every lost one that may be written again."""
        for number, partition in self._partitions.items():
            if partition.rebuild_from is None:
                partition.rebuild_from = self._journal.end(number)
            pending = [
                held
                for held in partition.pipelines.values()
                if (held.changed and not held.lost) or (held.lost and partition.whole)
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
        saved: list[Held] = []
        snapshots: list[Snapshot] = []
        positions: dict[int, int] = {}
        for number, partition in self._partitions.items():
            due, waiting = partition.due(now, None if whole else self._rule)
            due = [*partition.pipelines.values()] if again else due
            position = min([partition.position, *(unsaved.position for unsaved in waiting)])
            if due or position != partition.saved_position:
                positions[number] = position
                saved += due
                for held in due:
                    snapshots += partition.snapshots(number, held, now, again=again)
        if not positions:
            return
        self._journal.save(snapshots, positions)
        for held in saved:
            held.unsaved = None
            held.buried.saved = held.buried.checksums()
        for number, position in positions.items():
            self._partitions[number].saved_position = position

    def partitions(self) -> frozenset[int]:
        """Return the partitions that this tracker owns."""
        return frozenset(self._partitions)

    def slots(self) -> tuple[Slot, ...]:
        """Return the slots of partitions that have applied every fact from before their takeover,
        or more."""
        return tuple(
            held.slot
            for partition in self._partitions.values()
            if partition.whole
            for held in partition.pipelines.values()
        )

    def _unsaved(self, position: int) -> Unsaved:
        return Unsaved(position=position, since_ms=self._clock.now_ms())

    def _hold(self, partition: Partition, tenant: str, pipeline_uid: str) -> Held:
        held = partition.pipelines.get(pipeline_uid)
        if held is None:
            slot = Slot(tenant=tenant, pipeline_uid=pipeline_uid)
            held = partition.pipelines[pipeline_uid] = Held(slot=slot)
        return held

    def _write(
        self, number: int, partition: Partition, pending: list[Held], *, confirm: bool
    ) -> None:
        if not pending:
            return
        writes = [self._plan(number, partition, held, confirm=confirm) for held in pending]
        results = self._store.write(writes)
        lost = 0
        for held, write, result in zip(pending, writes, results, strict=True):
            if result in (WriteResult.LOST, WriteResult.STALE):
                held.lost = True
                lost += 1
                if held.mark:  # else it is new, and was not lost
                    count_lost_slot()
            elif not confirm:
                held.fresh.clear()
                held.buried.told()
                held.changed = held.lost = False
                held.mark = write.mark
        if lost:
            partition.rebuild_from = None
            logger.info(
                "slots are missing and will be written whole",
                extra={"partition": number, "slots": lost},
            )

    def _plan(self, number: int, partition: Partition, held: Held, *, confirm: bool) -> SlotWrite:
        anew = held.lost or held.buried.anew
        dead = held.buried.entries if anew else held.buried.fresh
        return SlotWrite(
            tenant=held.slot.tenant,
            pipeline_uid=held.slot.pipeline_uid,
            topic_id=self._journal.topic_id,
            partition=number,
            position=partition.position,
            at=self._clock.now_ms(),
            slot=None if confirm else held.slot,
            writer=self._name,
            mark=held.mark if confirm else f"{self._name}.{next(self._marks)}",
            history=tuple(held.history if held.lost else held.fresh),
            rebuilt=held.lost,
            dead=() if confirm else tuple(dead),
            dead_anew=anew,
        )
