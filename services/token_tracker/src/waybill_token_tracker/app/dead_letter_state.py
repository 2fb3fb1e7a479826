"""Keeps in memory the dead records of one pipeline, next to its slot."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from waybill_shared.contract.slots import DeadEntry, Slot
from waybill_token_tracker.core.dead_letter_entries import fewer, replace_counts
from waybill_token_tracker.core.snapshots import DeadChunk, checksum_of, pack_dead, unpack_dead


@dataclass(slots=True)
class DeadLetterState:
    """All entries, in the order in which they were received. `fresh` are those that Redis does not
    have yet. If `must_replace`, Redis must replace what it has with all of them."""

    entries: list[DeadEntry] = field(default_factory=list)
    fresh: list[DeadEntry] = field(default_factory=list)
    must_replace: bool = False
    chunks: tuple[DeadChunk, ...] = ()
    """Chunks of the entries that existed when they were last packed."""
    saved: tuple[str, ...] = ()
    """Checksums of the chunks that are in the topic of snapshots."""

    def add(self, slot: Slot, found: Iterable[DeadEntry]) -> Slot:
        """Add entries that the slot has counted. If there were too many and some were merged, the
        returned slot has the new counts."""
        new = [*found]
        if not new:
            return slot
        before = [*self.entries, *new]
        after = fewer(before)
        if len(after) == len(before):
            self.entries += new
            self.fresh += new
            return slot
        self.entries, self.fresh, self.must_replace, self.chunks = [*after], [], True, ()
        return replace(slot, dead=replace_counts(slot.dead, before, after))

    def mark_written(self) -> None:
        """Note that Redis has all entries."""
        self.fresh, self.must_replace = [], False

    def checksums(self) -> tuple[str, ...]:
        return tuple(chunk.checksum for chunk in self._pack())

    def list_unsaved(self, *, again: bool) -> Iterator[tuple[int, str]]:
        """Yield the chunks that a save has to write, by number; all of them if `again`. Chunks that
        no longer exist come last, without text."""
        chunks = self._pack()
        for number, chunk in enumerate(chunks):
            if again or self.saved[number : number + 1] != (chunk.checksum,):
                yield number, chunk.text
        for number in range(len(chunks), len(self.saved)):
            yield number, ""

    def _pack(self) -> tuple[DeadChunk, ...]:
        if sum(chunk.entries for chunk in self.chunks) < len(self.entries):
            self.chunks = pack_dead(self.entries, self.chunks)
        return self.chunks


def restore_dead_letters(texts: Mapping[int, str], checksums: tuple[str, ...]) -> DeadLetterState:
    """Return the entries as they were saved; `texts` is by number of chunk. A chunk that is missing
    or different is left out. The slot still counts its entries, so readers see that some are
    missing. The snapshot may have been saved before Redis was written, so Redis gets all entries
    again."""
    complete = {
        number: texts[number]
        for number, checksum in enumerate(checksums)
        if number in texts and checksum_of(texts[number]) == checksum
    }
    found = {number: unpack_dead(text) for number, text in complete.items()}
    chunks = tuple(DeadChunk(complete[number], len(entries)) for number, entries in found.items())
    return DeadLetterState(
        entries=[entry for entries in found.values() for entry in entries],
        must_replace=bool(found),
        chunks=chunks,
        saved=checksums,
    )
