"""Of too many entries the oldest become few; none is forgotten, and what was complete stays so."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from message_builders import make_entry
from strategies import patiently
from waybill_shared.contract.slots import DeadCount, DeadEntry
from waybill_token_tracker.core import dead_letter_entries as core
from waybill_token_tracker.core.dead_letter_entries import (
    ENTRIES_LEFT_MAX,
    ENTRIES_MAX,
    EXACT_KEPT,
    PLACES_MAX,
    RUN_PLACES_MAX,
    add_counts,
    fewer,
    replace_counts,
    up_to,
)


def entry(start: int, end: int | None = None, *, partition: int = 0, hop: str = "") -> DeadEntry:
    name = hop or f"{partition}/{start}"
    return make_entry(start, end, id=name, topic_id="R", partition=partition)


def many(number: int, *, apart: int = 3) -> list[DeadEntry]:
    return [entry(apart * at, partition=at % 2) for at in range(number)]


def places(entries: Iterable[DeadEntry]) -> set[tuple[int, int]]:
    """Every offset that is said to be dead, or may be."""
    return {
        (each.partition, offset)
        for each in entries
        for start, end in each.runs or [(each.start, each.end)]
        for offset in range(start, end)
    }


def buried(number: int, at_once: int, *, apart: int = 3) -> list[DeadEntry]:
    """As a tracker does it."""
    held: list[DeadEntry] = []
    told = many(number, apart=apart)
    for first in range(0, number, at_once):
        held = [*fewer([*held, *told[first : first + at_once]])]
    return held


def test_those_that_have_room_stay_as_they_are() -> None:
    entries = many(ENTRIES_MAX)
    assert fewer(entries) == tuple(entries)


def test_of_too_many_the_oldest_become_runs_and_none_is_forgotten() -> None:
    entries = many(ENTRIES_MAX + 1)
    kept = fewer(entries)
    assert len(kept) <= ENTRIES_LEFT_MAX
    assert kept[-EXACT_KEPT:] == tuple(entries[-EXACT_KEPT:])
    assert places(kept) == places(entries)
    assert up_to(kept) == len(entries)
    assert len({each.id for each in kept}) == len(kept)


def test_what_is_no_record_any_more_lies_nowhere() -> None:
    first = fewer(many(ENTRIES_MAX + 1))[0]
    assert (first.exact, first.dead_topic, first.dead_offset) == (False, None, -1)
    assert first.up_to == len(first.runs) == 100


def test_again_and_again_the_same_records_are_told() -> None:
    kept = buried(20_000, 500)
    assert len(kept) <= ENTRIES_MAX
    assert places(kept) == places(many(20_000))
    assert up_to(kept) == 20_000


def test_more_places_than_have_room_become_one_and_still_none_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The oldest: then records between them may be said to be dead, too."""
    monkeypatch.setattr(core, "PLACES_MAX", PLACES_MAX // 50)
    kept = buried(20_000, 500)
    old = kept[:-EXACT_KEPT]
    assert sum(max(1, len(each.runs)) for each in old) <= PLACES_MAX // 50 + EXACT_KEPT
    assert places(kept) > places(many(20_000))
    assert up_to(kept) == 20_000
    newest = many(20_000)[-EXACT_KEPT:]
    assert kept[-EXACT_KEPT:] == newest


def test_none_names_more_places_than_a_message_has_room_for() -> None:
    kept = buried(20_000, 500)
    assert max(len(each.runs) for each in kept) <= RUN_PLACES_MAX


def test_neighbours_that_touch_are_one_run() -> None:
    kept = fewer(many(ENTRIES_MAX + 1, apart=1))  # every second one in each partition
    assert kept[0].runs[:2] == ((0, 1), (2, 3))
    whole = fewer([entry(at) for at in range(ENTRIES_MAX + 1)])
    assert (whole[0].start, whole[0].end, whole[0].up_to, whole[0].runs) == (0, 100, 100, ())


def test_entries_of_other_stages_sinks_and_partitions_stay_apart() -> None:
    entries = many(ENTRIES_MAX + 1)
    entries[0] = replace(entries[0], stage="load@1")
    entries[2] = replace(entries[2], sink="enrich/copy@1")
    kept = fewer(entries)
    assert {entries[0], entries[2]} <= {*kept}


def test_one_hop_counts_once_in_a_run() -> None:
    hop = [entry(at, at + 5, hop="hop") for at in (0, 10, 20)]
    kept = fewer([*hop, *many(ENTRIES_MAX)[:2], *many(ENTRIES_MAX, apart=9)])
    assert sum(each.up_to for each in kept if each.partition == 0) < ENTRIES_MAX // 2 + 3


def test_many_partitions_become_few_too() -> None:
    """The newest give way, where the oldest alone are too few of each."""
    entries = [entry(at, partition=at % 4_000) for at in range(ENTRIES_MAX + 1)]
    kept = fewer(entries)
    assert len(kept) <= ENTRIES_LEFT_MAX
    assert places(kept) == places(entries)


def test_a_slot_counts_by_partition_and_says_how_long_the_longest_is() -> None:
    first = add_counts((), [entry(3), entry(7, 12), entry(4, partition=1)])
    assert first == (count(0, 2, 5), count(1, 1, 1))
    assert add_counts(first, [entry(9)]) == (count(0, 3, 5), count(1, 1, 1))


def test_what_is_missing_stays_missing_when_others_become_fewer() -> None:
    """Else whoever reads would take what is there for all."""
    known = add_counts((), many(10))
    before = many(10)[4:]
    after = [entry(12, 28, partition=0)]
    assert replace_counts(known, before, after) == (count(0, 2 + 1, 16), count(1, 2, 1))


def test_however_few_entries_they_become_as_many_records_are_counted() -> None:
    heard = many(ENTRIES_MAX + 2)
    kept = fewer(heard)
    assert len(kept) < len(heard)
    counts = replace_counts(add_counts((), heard), heard, kept)
    assert sum(each.records for each in counts) == len(heard)
    assert sum(each.entries for each in counts) == len(kept)


entries_of_all_kinds = st.lists(
    st.builds(
        lambda start, length, partition, hop: entry(
            start, None if length == 0 else start + length, partition=partition, hop=hop
        ),
        start=st.integers(0, 40),
        length=st.integers(0, 9),
        partition=st.integers(0, 1),
        hop=st.sampled_from("abcdefgh"),
    ),
    unique=True,
    min_size=1,
    max_size=60,
)


@patiently
@given(entries_of_all_kinds, st.integers(1, 20))
@example(
    [entry(0, partition=at, hop=hop) for at, hop in ((0, "b"), (1, "b"), (0, "a"), (1, "c"))], 1
)
def test_whatever_becomes_one_is_told_as_before(heard: Sequence[DeadEntry], limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("ENTRIES_MAX", limit),
            ("ENTRIES_LEFT_MAX", limit * 3 // 4),
            ("EXACT_KEPT", limit // 2),
            ("RUN_ENTRIES_MAX", 4),
        ):
            patch.setattr(core, name, value)
        kept: tuple[DeadEntry, ...] = ()
        counts: tuple[DeadCount, ...] = ()
        for each in heard:
            counts = add_counts(counts, [each])
            before = (*kept, each)
            kept = fewer(before)
            counts = replace_counts(counts, before, kept) if len(kept) < len(before) else counts
    assert places(kept) == places(heard)
    assert up_to(kept) >= up_to(heard)
    assert Counter({c.partition: c.entries for c in counts}) == Counter(e.partition for e in kept)
    assert all(
        c.longest >= e.end - e.start for c in counts for e in kept if e.partition == c.partition
    )
    assert len({*kept}) == len(kept), "as many as there are in a set"


def count(partition: int, entries: int, longest: int) -> DeadCount:
    """Each of one record."""
    return DeadCount(
        topic_id="R", partition=partition, entries=entries, longest=longest, records=entries
    )
