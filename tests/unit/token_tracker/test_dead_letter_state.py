"""The tracker keeps dead letters beside its slots: in Redis, in snapshots, and through restarts."""

from collections import Counter
from dataclasses import replace

import pytest

from builders import ORDERS_ID, UID, make_commit, make_definition, make_fact, with_batch
from message_builders import make_entry, make_letter
from unit.token_tracker.line import Bench
from waybill_shared.contract.dead_letter_facts import DeadLetter, DeadLetters
from waybill_shared.contract.events import Fact
from waybill_shared.contract.slots import DeadEntry, for_readers, slot_to_json
from waybill_token_tracker.core import dead_letter_entries, snapshots
from waybill_token_tracker.core.snapshots import DeadChunk, pack_dead, unpack_dead

LETTERS = 500  # of a fact, as drivers tell them


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.applied(make_fact(make_definition()))
    bench.tracker.flush()
    return bench


def died(sequence: int, count: int = 1, *, partitions: int = 1) -> Fact:
    """The records behind those of the fact before, if that told of as many."""
    first = (sequence - 1) * count
    letters = (letter(at // partitions, at % partitions) for at in range(first, first + count))
    told = DeadLetters(stage="enrich", since=1, sequence=sequence, letters=tuple(letters))
    return make_fact(told)


def letter(offset: int, partition: int = 0) -> DeadLetter:
    return make_letter(
        2 * offset,
        partition=partition,
        message=f"column amount: {offset} is no number, and this is said at some length",
        dead_offset=offset,
    )


def past(taken: int, sequence: int) -> Fact:
    commit = make_commit({(ORDERS_ID, 0): taken})
    return make_fact(with_batch(commit, dead_sequence=sequence))


def dead(bench: Bench) -> list[DeadEntry]:
    """In Redis, which has as many as the slot says."""
    stored = bench.store.slots[UID]
    counts = {(count.topic_id, count.partition): count.entries for count in stored.slot.dead}
    assert counts == Counter((each.topic_id, each.partition) for each in stored.dead)
    return stored.dead


def offsets(bench: Bench) -> list[int]:
    return [entry.start for entry in dead(bench)]


def chunks(bench: Bench) -> list[str]:
    return [key for key in bench.journal.snapshots if "/dead/" in key]


def test_dead_letters_come_to_redis_with_the_slot_that_counts_them(bench: Bench) -> None:
    bench.applied(died(1))
    assert offsets(bench) == [0]
    bench.applied(died(2), past(10, 2))
    assert (offsets(bench), bench.reached()) == ([0, 2], 10)


def test_what_redis_did_not_take_is_told_again(bench: Bench) -> None:
    bench.store.away = True
    bench.append(died(1))
    bench.feed()
    with pytest.raises(Exception, match="away"):
        bench.tracker.flush()
    bench.store.away = False
    bench.applied(died(2))
    assert offsets(bench) == [0, 2]


def test_what_redis_has_lost_is_written_whole(bench: Bench) -> None:
    bench.applied(died(1), died(2))
    before = dead(bench)
    bench.store.slots.clear()
    bench.applied(died(3))
    bench.tracker.flush()
    assert dead(bench)[:2] == before
    assert len(dead(bench)) == 3


def test_a_restart_begins_with_the_same_in_the_same_order(bench: Bench) -> None:
    """Some in snapshots, some behind them."""
    bench.applied(*(died(number) for number in range(1, 6)))
    bench.tracker.save(whole=True)
    bench.applied(died(6))
    before = dead(bench)
    bench.store.slots.clear()
    bench.restart()
    bench.feed()
    bench.tracker.flush()
    bench.tracker.flush()
    assert dead(bench) == before


def test_what_was_saved_before_redis_was_told_comes_there_after_a_restart(bench: Bench) -> None:
    bench.append(died(1))
    bench.feed()
    bench.tracker.save(whole=True)
    bench.restart()
    bench.append(died(2))
    bench.feed()
    bench.tracker.flush()
    assert len(dead(bench)) == 2


def test_twenty_thousand_leave_the_slot_small(bench: Bench) -> None:
    facts = [died(number, LETTERS, partitions=8) for number in range(1, 41)]
    for fact in facts:
        bench.applied(fact)
    stored = bench.store.slots[UID]
    assert len(slot_to_json(for_readers(stored.slot))) < 64_000
    assert len(slot_to_json(stored.slot)) < 64_000
    found = dead(bench)
    assert len(found) <= dead_letter_entries.ENTRIES_MAX
    assert sum(each.up_to for each in found) == 20_000


def test_twenty_thousand_that_wait_leave_the_slot_in_redis_small(bench: Bench) -> None:
    for number in range(2, 42):
        bench.applied(died(number, LETTERS))
    bench.applied(past(10, 41))
    stored = bench.store.slots[UID].slot
    assert stored.dead_waiting
    assert len(slot_to_json(for_readers(stored))) < 64_000


def test_too_many_come_to_redis_as_they_are_in_memory(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    few(monkeypatch)
    for number in range(1, 31):
        bench.applied(died(number))
    found = dead(bench)
    assert len(found) < 20
    assert sum(each.up_to for each in found) == 30
    bench.tracker.save(whole=True)
    bench.store.slots.clear()
    bench.restart()
    bench.tracker.flush()
    bench.tracker.flush()
    assert {*dead(bench)} == {*found}


def test_a_chunk_that_is_as_it_was_is_not_written_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "CHUNK_BYTES_MAX", 2_000)
    bench.applied(died(1, 12))
    bench.tracker.save(whole=True)
    number = len(chunks(bench))
    assert number > 2
    for _ in range(2):  # by a tracker that begins with them, too
        bench.journal.saves.clear()
        bench.applied(make_fact(make_definition(), generation=bench.position))
        bench.tracker.save(whole=True)
        assert bench.journal.saves == [f"snapshot {UID}", "positions"]
        bench.restart()
        bench.feed()
    bench.journal.saves.clear()
    bench.applied(died(2, 12))
    bench.tracker.save(whole=True)
    written = [each for each in bench.journal.saves if "/dead/" in each]
    assert written[0] == f"snapshot {UID}/dead/{number - 1}"
    assert len(chunks(bench)) == number + len(written) - 1


def test_chunks_that_are_no_more_are_removed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "CHUNK_BYTES_MAX", 1_000)
    few(monkeypatch)
    bench.applied(died(1, 15))
    bench.tracker.save(whole=True)
    before = len(chunks(bench))
    bench.applied(died(16))
    bench.applied(died(2, 15))
    bench.tracker.save(whole=True)
    assert len(chunks(bench)) < before
    assert f"no more {UID}/dead/{before - 1}" in bench.journal.saves
    found = dead(bench)
    bench.store.slots.clear()
    bench.restart()
    bench.feed()
    bench.tracker.flush()
    bench.tracker.flush()
    assert {*dead(bench)} == {*found}


def test_what_was_not_saved_is_saved_with_the_next(bench: Bench) -> None:
    bench.journal.away = True
    bench.applied(died(1))
    with pytest.raises(Exception, match="away"):
        bench.tracker.save(whole=True)
    bench.journal.away = False
    bench.tracker.save(whole=True)
    assert len(chunks(bench)) == 1


def test_all_are_saved_again_where_their_snapshots_may_be_gone(bench: Bench) -> None:
    bench.applied(died(1))
    bench.tracker.save(whole=True)
    bench.journal.snapshots.clear()
    bench.tracker.save(whole=True, again=True)
    assert len(chunks(bench)) == 1


@pytest.mark.parametrize("torn", ["gone", "older"])
def test_of_chunks_that_are_missing_the_slot_still_counts_what_they_held(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, torn: str
) -> None:
    """So whoever reads finds fewer than there are, and does not know; nothing else is forgotten."""
    monkeypatch.setattr(snapshots, "CHUNK_BYTES_MAX", 1_000)
    bench.applied(died(1, 5))
    bench.tracker.save(whole=True)
    key = chunks(bench)[0]
    older = replace(bench.journal.snapshots[key], slot="")
    if torn == "gone":
        del bench.journal.snapshots[key]
    else:
        text = pack_dead(unpack_dead(bench.journal.snapshots[key].slot)[:1])[0].text
        bench.journal.snapshots[key] = replace(older, slot=text)
    with caplog.at_level("ERROR"):
        bench.restart()
    assert [record.message for record in caplog.records] == [
        "dead letters are missing in snapshots"
    ]
    caplog.clear()
    assert_some_are_missing(bench)
    few(monkeypatch)
    bench.applied(died(6), past(10, 6))
    bench.applied(*(died(number) for number in range(2, 6)), *map(died, range(7, 30)))
    assert_some_are_missing(bench)
    assert bench.reached() == 10


def assert_some_are_missing(bench: Bench) -> None:
    """Also after another restart."""
    for _ in range(2):
        bench.store.slots.clear()
        bench.tracker.confirm()
        for _ in range(2):
            bench.tracker.flush()
        stored = bench.store.slots[UID]
        assert 0 < len(stored.dead) < sum(count.entries for count in stored.slot.dead)
        bench.tracker.save(whole=True)
        bench.restart()
        bench.feed()


def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letter_entries, "ENTRIES_MAX", 20)
    monkeypatch.setattr(dead_letter_entries, "ENTRIES_LEFT_MAX", 15)
    monkeypatch.setattr(dead_letter_entries, "EXACT_KEPT", 5)
    monkeypatch.setattr(dead_letter_entries, "RUN_ENTRIES_MAX", 10)


def entry(number: int, message: str = "") -> DeadEntry:
    return make_entry(number, id=f"enrich@1:R:0:{number}", message=message)


def test_chunks_hold_all_and_one_more_changes_the_last_alone() -> None:
    many = [entry(number, "\u00fc" * 300) for number in range(3_000)]
    packed = pack_dead(many)
    assert len(packed) > 3
    assert [each for chunk in packed for each in unpack_dead(chunk.text)] == many
    longer = [*many, entry(3_000)]
    again = pack_dead(longer, packed)
    assert again == pack_dead(longer)
    assert again[: len(packed) - 1] == packed[:-1]
    assert max(len(chunk.text) for chunk in packed) < 500_000


def test_no_entry_is_too_large_for_a_chunk() -> None:
    """What cannot be compressed, with as many places as one entry may have."""
    runs = tuple(
        (10**12 + 7 * at, 10**12 + 7 * at + 1) for at in range(dead_letter_entries.RUN_PLACES_MAX)
    )
    packed = pack_dead([replace(entry(at), runs=runs) for at in range(50)])
    assert all(isinstance(chunk, DeadChunk) and len(chunk.text) < 500_000 for chunk in packed)
    assert sum(chunk.entries for chunk in packed) == 50
