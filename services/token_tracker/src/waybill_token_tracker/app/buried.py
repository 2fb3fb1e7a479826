"""What the tracker holds in memory of the dead records of one pipeline, beside its slot."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from waybill_shared.contract.slots import DeadEntry, Slot
from waybill_token_tracker.core.entries import fewer, recounted
from waybill_token_tracker.core.snapshots import DeadChunk, checksum_of, pack_dead, unpack_dead


@dataclass(slots=True)
class Buried:
    """All entries, in the order in which they were heard. `fresh` are those that Redis is still to
    be told; or all of them, in place of what it has, if `anew`."""

    entries: list[DeadEntry] = field(default_factory=list)
    fresh: list[DeadEntry] = field(default_factory=list)
    anew: bool = False
    chunks: tuple[DeadChunk, ...] = ()
    """Of those entries that were there when this was packed last."""
    saved: tuple[str, ...] = ()
    """Checksums of the chunks that stand in the topic of snapshots."""

    def add(self, slot: Slot, found: Iterable[DeadEntry]) -> Slot:
        """Entries that the slot has counted; returned is how it counts them when there were too
        many."""
        new = [*found]
        if not new:
            return slot
        before = [*self.entries, *new]
        after = fewer(before)
        if len(after) == len(before):
            self.entries += new
            self.fresh += new
            return slot
        self.entries, self.fresh, self.anew, self.chunks = [*after], [], True, ()
        return replace(slot, dead=recounted(slot.dead, before, after))

    def told(self) -> None:
        """Redis has all of it."""
        self.fresh, self.anew = [], False

    def checksums(self) -> tuple[str, ...]:
        return tuple(chunk.checksum for chunk in self._pack())

    def unsaved(self, *, again: bool) -> Iterator[tuple[int, str]]:
        """By number, the chunks that a save has to write, or all of them `again`; and, without
        text, those that are no more."""
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


def buried_in(texts: Mapping[int, str], checksums: tuple[str, ...]) -> Buried:
    """As it was saved, by number of chunk. What is missing or another one is left out: the slot
    counts it all the same, so whoever reads sees that something is missing. What of it Redis was
    told, nobody knows: it may have been saved first."""
    whole = {
        number: texts[number]
        for number, checksum in enumerate(checksums)
        if number in texts and checksum_of(texts[number]) == checksum
    }
    found = {number: unpack_dead(text) for number, text in whole.items()}
    chunks = tuple(DeadChunk(whole[number], len(entries)) for number, entries in found.items())
    return Buried(
        entries=[entry for entries in found.values() for entry in entries],
        anew=bool(found),
        chunks=chunks,
        saved=checksums,
    )
