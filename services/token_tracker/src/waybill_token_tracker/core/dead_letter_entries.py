"""Decides which entries of dead records are merged when there are too many, and counts them.

The oldest are merged first: of them only the offsets and the number of records are kept. An answer
that was complete stays complete, because no record between those offsets is called dead. Only above
a hundred thousand offset ranges are the offsets given up, too. No entry is ever dropped.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Final

from waybill_shared.contract.slots import DeadCount, DeadEntry

ENTRIES_MAX: Final = 10_000  # per pipeline
ENTRIES_LEFT_MAX: Final = 7_500  # after a merge: room for more, so that merges are rare
EXACT_KEPT: Final = 5_000  # of the newest
RUN_ENTRIES_MAX: Final = 100  # that are merged into one
RUN_PLACES_MAX: Final = 1_000  # offset ranges that one entry may name: 30 kB
PLACES_MAX: Final = 100_000  # per pipeline: 3 MB
MERGED: Final = "+"  # in the id of a merged entry, behind that of its first hop
ID_BYTES: Final = 8

_Place = tuple[str, int]
_Counts = tuple[DeadCount, ...]
_Runs = tuple[tuple[int, int], ...]


def fewer(entries: Sequence[DeadEntry]) -> tuple[DeadEntry, ...]:
    """Return all entries if there is room for them. Else merge all but the newest EXACT_KEPT; while
    there are still too many, only half as many stay exact."""
    kept, exact = tuple(entries), EXACT_KEPT
    if len(kept) <= ENTRIES_MAX:
        return kept
    kept = _coarser(kept, exact)
    while len(kept) > ENTRIES_LEFT_MAX and exact:
        exact //= 2
        kept = _coarser(kept, exact)
    return kept


def add_counts(known: Iterable[DeadCount], entries: Iterable[DeadEntry]) -> _Counts:
    """Return `known` with the counts of these entries added."""
    numbers: Counter[_Place] = Counter()
    records: Counter[_Place] = Counter()
    longest: dict[_Place, int] = {}
    for each in (*known, *_ones(entries)):
        place = (each.topic_id, each.partition)
        numbers[place] += each.entries
        records[place] += each.records
        longest[place] = max(longest.get(place, 0), each.longest)
    return tuple(
        DeadCount(
            topic_id=place[0],
            partition=place[1],
            entries=number,
            longest=longest[place],
            records=records[place],
        )
        for place, number in sorted(numbers.items())
        if number
    )


def replace_counts(
    known: _Counts, before: Iterable[DeadEntry], after: Iterable[DeadEntry]
) -> _Counts:
    """Return `known` after a merge of the entries `before` into those `after`. Entries that are
    missing, because a snapshot was damaged, stay counted as missing."""
    removed = {(each.topic_id, each.partition): each for each in add_counts((), before)}
    return add_counts((_less(each, removed) for each in known), after)


def _less(count: DeadCount, removed: Mapping[_Place, DeadCount]) -> DeadCount:
    less = removed.get((count.topic_id, count.partition))
    if less is None:
        return count
    records = max(0, count.records - less.records)
    return replace(count, entries=count.entries - less.entries, records=records)


def up_to(entries: Iterable[DeadEntry]) -> int:
    """Return how many records these are at most; those of one hop are counted once."""
    return sum({each.id: each.up_to for each in entries}.values())


def _coarser(entries: tuple[DeadEntry, ...], exact: int) -> tuple[DeadEntry, ...]:
    """Merge all but the newest `exact` entries, and keep the order in which they were received
    first."""
    old, new = entries[: len(entries) - exact], entries[len(entries) - exact :]
    groups: dict[tuple[str, str | None, str, int], list[tuple[int, DeadEntry]]] = {}
    for received, entry in enumerate(old):
        place = (entry.stage, entry.sink, entry.topic_id, entry.partition)
        groups.setdefault(place, []).append((received, entry))
    runs = [run for group in groups.values() for run in _runs(group)]
    runs.sort(key=lambda run: run[0])
    return (*_limit_ranges([entry for _, entry in runs]), *new)


def _runs(group: list[tuple[int, DeadEntry]]) -> Iterator[tuple[int, DeadEntry]]:
    together: list[tuple[int, DeadEntry]] = []
    places = 0
    for received, entry in sorted(group, key=lambda each: (each[1].start, each[1].end)):
        places += len(_places(entry))
        if together and (len(together) == RUN_ENTRIES_MAX or places > RUN_PLACES_MAX):
            yield _one_of(together)
            together, places = [], len(_places(entry))
        together.append((received, entry))
    yield _one_of(together)


def _one_of(together: Sequence[tuple[int, DeadEntry]]) -> tuple[int, DeadEntry]:
    entries = [entry for _, entry in together]
    first = entries[0]
    if len(entries) > 1:
        runs = _merge_runs(run for entry in entries for run in _places(entry))
        first = replace(
            first,
            id=_id_of(entries),
            end=max(entry.end for entry in entries),
            up_to=up_to(entries),
            exact=False,
            dead_topic=None,
            dead_partition=-1,
            dead_offset=-1,
            runs=runs if len(runs) > 1 else (),
        )
    return min(received for received, _ in together), first


def _id_of(entries: Sequence[DeadEntry]) -> str:
    """Return an id that no other merged entry has. One hop has entries in several partitions, which
    are merged with those of other hops there."""
    parts = [(e.id, e.sink, e.topic_id, e.partition, e.start, e.end) for e in entries]
    hop = entries[0].id.partition(MERGED)[0]
    return f"{hop}{MERGED}{blake2b(repr(parts).encode(), digest_size=ID_BYTES).hexdigest()}"


def _limit_ranges(entries: Sequence[DeadEntry]) -> Iterator[DeadEntry]:
    """Yield the entries with at most PLACES_MAX offset ranges. The first entries lose theirs: they
    no longer say where between start and end their records are."""
    surplus = sum(len(_places(entry)) for entry in entries) - PLACES_MAX
    for entry in entries:
        vague = surplus > 0 and len(entry.runs) > 1
        surplus -= len(entry.runs) - 1 if vague else 0
        yield replace(entry, runs=()) if vague else entry


def _places(entry: DeadEntry) -> _Runs:
    return entry.runs or ((entry.start, entry.end),)


def _merge_runs(runs: Iterable[tuple[int, int]]) -> _Runs:
    """Merge runs that touch."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(runs):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return tuple(found)


def _ones(entries: Iterable[DeadEntry]) -> Iterator[DeadCount]:
    """Yield the count of each entry. The records of one hop are counted with its first entry."""
    known: set[str] = set()
    for entry in entries:
        yield DeadCount(
            topic_id=entry.topic_id,
            partition=entry.partition,
            entries=1,
            longest=entry.end - entry.start,
            records=0 if entry.id in known else entry.up_to,
        )
        known.add(entry.id)
