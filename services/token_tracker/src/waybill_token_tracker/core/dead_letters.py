"""Decides what is known of records that went to dead-letter topics, in root inputs.

1. A stage reports its dead letters as facts, numbered 1, 2, 3 and so on. `receive` puts them in the
   slot, each once.
2. `count` makes entries of them in the order of the numbers. While one is missing, no sink of the
   pipeline gets a higher `reached`.
3. A letter concerns no sink that has the record since before, as after a rewind: what was complete
   there stays so. If only some sinks have it, each of the others gets an entry of its own.
4. A record of a root input gives an exact entry, and so does one that died in a replay, at the
   position of its message. One of an inner topic was written in a hop, so the
   entry covers all root records that the hop read, without those that its sink has reached.
5. If a sink that was removed since had the record, it is dead for the other sinks of the stage.
   Each of them gets an entry of its own. So tokens that waited for the removed one stay final.
6. While it is not known what the hop read, the record is kept as `Unplaced`. No sink can have
   reached any of its roots then.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final

from waybill_shared.contract import slots
from waybill_shared.contract.dead_letter_facts import DeadLetters
from waybill_shared.contract.events import Definition, StageDefinition
from waybill_shared.contract.slots import DeadEntry, SinkState, Slot, Unplaced
from waybill_shared.contract.topology import StageSink, Topology, inputs_by_id
from waybill_shared.contract.vectors import (
    Span,
    TopicPartition,
    Vector,
    beyond,
    ends,
    join,
    without,
)
from waybill_token_tracker.core.dead_letter_entries import add_counts, up_to
from waybill_token_tracker.core.entries_of_letters import entry_of
from waybill_token_tracker.core.graph import Graph
from waybill_token_tracker.core.origins import Origin, Origins, unite_origins

WAITING_LETTERS_MAX: Final = 1_000  # per pipeline; after a gap, more are treated as not received
UNPLACED_MAX: Final = 100  # per pipeline; if there are more, those of one partition are merged

_Kind = tuple[str, str | None, str, str | None]
"""Stage, sink, reason and rule."""
_Place = tuple[str, str, int]
"""Sink that writes there, topic id and partition."""


def receive(slot: Slot, letters: DeadLetters) -> Slot:
    """Return the slot with a fact that waits to be counted, unless the slot has received it before.
    A fact that does not fit in the limit is ignored, unless it is the next in order."""
    if was_received(slot, letters):
        return slot
    waiting = (*slot.dead_waiting, letters)
    room = WAITING_LETTERS_MAX - sum(len(each.letters) for each in waiting)
    if (
        room < 0
        and letters.sequence > slot.dead_sequences.get(slots.key_of_letters(letters), 0) + 1
    ):
        return slot
    return replace(slot, dead_waiting=tuple(sorted(waiting, key=_order)))


def was_received(slot: Slot, letters: DeadLetters) -> bool:
    """Return True if the slot has received this fact before."""
    return letters.sequence <= slot.dead_sequences.get(slots.key_of_letters(letters), 0) or any(
        _order(each) == _order(letters) for each in slot.dead_waiting
    )


def count(slot: Slot) -> tuple[Slot, tuple[DeadEntry, ...]]:
    """Return the slot with all waiting facts counted that can be, and the entries that they
    give."""
    if slot.definition is None or not (slot.dead_waiting or slot.dead_unplaced):
        return slot, ()
    sequences, waiting = dict(slot.dead_sequences), []
    placing = _Placing(slot, slot.definition)
    for known in slot.dead_unplaced:
        placing.retry(known)
    for letters in slot.dead_waiting:
        key = slots.key_of_letters(letters)
        if letters.sequence == sequences.get(key, 0) + 1 and placing.place(letters):
            sequences[key] = letters.sequence
        else:
            waiting.append(letters)
    entries, unplaced = placing.result()
    slot = replace(
        slot,
        dead=add_counts(slot.dead, entries),
        dead_sequences=sequences,
        dead_waiting=tuple(waiting),
        dead_unplaced=_fewer(unplaced),
    )
    return slot, entries


def all_known(slot: Slot, sinks: Iterable[StageSink]) -> bool:
    """Return True if all dead letters are counted that belong to batches that the sinks are
    past."""
    return not slot.dead_waiting and all(
        state.batch.dead_sequence <= slot.dead_sequences.get(slots.stage_key(sink.stage), 0)
        for sink in sinks
        if (state := slot.sinks.get(sink.key)) is not None and state.batch is not None
    )


class _Placing:
    """The work of one `count`: entries for letters of one slot, in root inputs."""

    def __init__(self, slot: Slot, definition: Definition) -> None:
        self._slot = slot
        present = Topology(definition.stages)
        self._stages = present.by_stage
        self._known = present.with_removed(slot.removals).by_stage
        graph = Graph(definition, slot)
        self._writers = {sink.key: sink for sink in graph.sinks}
        self._origins = Origins(graph)
        self._removed_had = _find_reached(slot)
        self._exact: list[DeadEntry] = []
        self._inner: list[tuple[Unplaced, Origin]] = []

    def place(self, letters: DeadLetters) -> bool:
        """Add the letters of one fact. Return False while it is not known what the stage reads."""
        key = slots.key_of_letters(letters)
        stage = self._known.get(key)
        if stage is None:
            return letters.since <= self._slot.generation  # else its definition is still to come
        sources = inputs_by_id(stage)
        read = (each for each in letters.letters if each.replayed is None)
        if key in self._stages and any(each.topic_id not in sources for each in read):
            return False
        for letter in letters.letters:
            source, entry = sources.get(letter.topic_id), entry_of(key, letter)
            if letter.replayed is not None or (source is not None and source.root):
                self._exact += self._for_those_without(entry, lambda state: state.reached)
            elif source is not None:
                had = partial(_frontier_before, sequence=letters.sequence)
                origin = self._origins.read_by(source, _span(entry))
                for each in self._for_those_without(entry, had):
                    self._inner.append((Unplaced(entry=each, open=()), origin))
        return True

    def retry(self, unplaced: Unplaced) -> None:
        """Try again with what an earlier call left open. A sink that was removed is skipped: it
        will not report any more what it read."""
        origin = unite_origins(
            self._origins.origin_of(self._writers[key], span)
            for key, span in unplaced.open
            if key in self._writers
        )
        self._inner.append((unplaced, origin))

    def result(self) -> tuple[tuple[DeadEntry, ...], list[Unplaced]]:
        """Return the entries that are known now, and what is still open."""
        entries, unplaced = [*chain.from_iterable(map(self._by_sinks, self._exact))], []
        for known, origin in _by_hop(self._inner):
            placed = known.placed
            for entry, lacking in self._find_lacking(known.entry, origin.roots):
                roots = without(lacking, known.placed)
                placed = (*placed, *roots)
                entries += chain.from_iterable(self._by_sinks(_at(entry, at)) for at in roots)
            if origin.open:
                unplaced.append(replace(known, open=origin.open, placed=placed))
        return tuple(entries), unplaced

    def _for_those_without(
        self, entry: DeadEntry, had: Callable[[SinkState], Vector]
    ) -> list[DeadEntry]:
        """Return the entry; where some of its sinks had the record, one for each sink that had not.
        `had`: what a sink had before the record died."""
        place, stage = (entry.topic_id, entry.partition), self._stages.get(entry.stage)
        begun = {} if stage is None else _begins(stage, place)
        keys = self._sinks_in(entry)
        ends = {key: had(self._state(key)).get(place, 0) for key in keys}
        lacking = [key for key in keys if not begun.get(key, 0) <= entry.start < ends[key]]
        return [entry] if lacking == keys else [_of_sink(entry, key) for key in lacking]

    def _find_lacking(
        self, entry: DeadEntry, roots: tuple[Span, ...]
    ) -> list[tuple[DeadEntry, tuple[Span, ...]]]:
        """Return the entry with what its sinks have not reached of the roots. Where they lack
        different parts, return one for each sink."""
        parts = {key: beyond(roots, self._state(key).reached) for key in self._sinks_in(entry)}
        if len({*parts.values()}) > 1:
            return [(_of_sink(entry, key), part) for key, part in parts.items()]
        return [(entry, next(iter(parts.values()), roots))]

    def _by_sinks(self, entry: DeadEntry) -> Iterator[DeadEntry]:
        """Yield the entry; where removed sinks of its stage had the records, one for each sink that
        the stage still has."""
        had = self._removed_had.get(entry.stage, {}).get((entry.topic_id, entry.partition), 0)
        sinks = _sinks_of(self._stages.get(entry.stage))
        if entry.sink is not None or not sinks or had <= entry.start:
            yield entry
            return
        middle = min(had, entry.end)
        for sink in sinks:
            yield replace(_of_sink(entry, sink), end=middle)
        if middle < entry.end:
            yield replace(entry, start=middle)

    def _sinks_in(self, entry: DeadEntry) -> list[str]:
        return [entry.sink] if entry.sink is not None else _sinks_of(self._stages.get(entry.stage))

    def _state(self, key: str) -> SinkState:
        return self._slot.sinks.get(key, SinkState())


def _frontier_before(state: SinkState, *, sequence: int) -> Vector:
    """Return how far a sink was before its stage reported this fact; nothing if it is past it."""
    before = state.batch is not None and state.batch.dead_sequence < sequence
    return state.frontier if before else {}


def _of_sink(entry: DeadEntry, sink: str) -> DeadEntry:
    return replace(entry, id=f"{sink}:{entry.id}", sink=sink)


def _begins(stage: StageDefinition, place: TopicPartition) -> dict[str, int]:
    """Return where each sink of the stage begins in a partition, at the latest."""
    base = stage.bases.get(place, 0)
    return {slots.key_of(stage, sink): max(base, sink.bases.get(place, 0)) for sink in stage.sinks}


def _find_reached(slot: Slot) -> dict[str, Vector]:
    """Return by key of a stage how far the sinks were that were removed from it."""
    found: dict[str, Vector] = {}
    for stage in (stage for removal in slot.removals for stage in removal.stages):
        for key in _sinks_of(stage):
            reached = slot.sinks.get(key, SinkState()).reached
            found[slots.stage_key(stage)] = join(found.get(slots.stage_key(stage), {}), reached)
    return found


def _sinks_of(stage: StageDefinition | None) -> list[str]:
    if stage is None:
        return []
    return [slots.key_of(stage, sink) for sink in stage.sinks]


def _by_hop(placed: Iterable[tuple[Unplaced, Origin]]) -> Iterator[tuple[Unplaced, Origin]]:
    """Combine records of one kind with the same origin."""
    records: dict[tuple[_Kind, Origin], list[Unplaced]] = {}
    for known, origin in placed:
        if known.entry.exact and not (known.placed or origin.open):
            records.setdefault((_kind(known.entry), origin), []).append(known)
        else:
            yield known, origin
    for (_, origin), found in records.items():
        entry = replace(found[0].entry, up_to=len(found))
        yield Unplaced(entry=entry, open=()), origin


def _kind(entry: DeadEntry) -> _Kind:
    return entry.stage, entry.sink, entry.reason, entry.rule


def _fewer(unplaced: Sequence[Unplaced]) -> tuple[Unplaced, ...]:
    """Return `unplaced`, merged by kind and by what they wait for if there are too many."""
    if len(unplaced) <= UNPLACED_MAX:
        return tuple(unplaced)
    groups: dict[tuple[_Kind, tuple[_Place, ...]], list[Unplaced]] = {}
    for each in unplaced:
        places = tuple(dict.fromkeys((writer, *span.key) for writer, span in each.open))
        groups.setdefault((_kind(each.entry), places), []).append(each)
    return tuple(_run(group) for group in groups.values())


def _run(group: Sequence[Unplaced]) -> Unplaced:
    if len(group) == 1:
        return group[0]
    found: dict[_Place, list[Span]] = {}
    for writer, span in (each for unplaced in group for each in unplaced.open):
        found.setdefault((writer, *span.key), []).append(span)
    still_open = tuple(
        (place[0], replace(spans[0], start=min(s.start for s in spans), end=ends(spans)[place[1:]]))
        for place, spans in sorted(found.items())
    )
    entries = [unplaced.entry for unplaced in group]
    first = entries[0]
    entry = replace(first, id=f"{first.id}+", up_to=up_to(entries), exact=False)
    return Unplaced(entry=entry, open=still_open)


def _at(entry: DeadEntry, span: Span) -> DeadEntry:
    """Return the entry at the root records that its own record was made from."""
    return replace(
        entry,
        topic_id=span.topic_id,
        partition=span.partition,
        start=span.start,
        end=span.end,
        exact=False,
        dead_topic=None,
        dead_partition=-1,
        dead_offset=-1,
    )


def _span(entry: DeadEntry) -> Span:
    return Span(
        topic_id=entry.topic_id, partition=entry.partition, start=entry.start, end=entry.end
    )


def _order(letters: DeadLetters) -> tuple[str, int]:
    return slots.key_of_letters(letters), letters.sequence
