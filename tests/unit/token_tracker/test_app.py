"""The tracker keeps Redis in step with the facts, and rebuilds what Redis has lost."""

from contextlib import suppress
from dataclasses import replace

import pytest

from builders import (
    NOW,
    ORDERS_ID,
    TENANT,
    UID,
    make_batch,
    make_definition,
    make_fact,
    make_snapshot,
)
from message_builders import make_lifecycle
from unit.token_tracker.fakes import FakeJournal
from unit.token_tracker.line import Bench, commit
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.slots import Progress, Slot, entry_of, slot_to_json
from waybill_token_tracker.core.snapshots import HISTORY_MAX, pack, unpack

SLOT = Slot(tenant=TENANT, pipeline_uid=UID)


def make_progress(sequence: int) -> Progress:
    return Progress(sink="enrich/lake@1", reached={}, batch=make_batch(sequence))


def test_new_slot_is_written_when_all_facts_of_that_moment_are_in(bench: Bench) -> None:
    assert bench.reached() == 1
    assert bench.store.slots[UID].position == 2


def test_commit_reaches_the_store_with_its_progress(bench: Bench) -> None:
    bench.append(commit(5, sequence=1))
    bench.feed()
    bench.tracker.flush()
    assert bench.reached() == 5
    assert [p.batch.sequence for p in bench.store.slots[UID].history] == [0, 1]


def test_repeated_fact_is_not_written_again(bench: Bench) -> None:
    before = bench.store.slots[UID]
    bench.append(commit(1, sequence=0))
    bench.feed()
    bench.tracker.flush()
    assert bench.store.slots[UID] is before


def test_fact_below_the_position_is_not_applied_again(bench: Bench) -> None:
    bench.tracker.handle_fact(0, 0, commit(99, sequence=9))
    bench.append(commit(5, sequence=1))
    bench.feed()
    bench.tracker.flush()
    assert bench.reached() == 5


def test_confirmation_renews_the_age_only(bench: Bench) -> None:
    bench.clock.now += 700
    bench.tracker.confirm()
    assert bench.store.slots[UID].at == bench.clock.now
    assert bench.reached() == 1


def test_lost_slot_is_written_whole_only_behind_the_end_seen_after_the_loss(bench: Bench) -> None:
    bench.store.slots.clear()
    bench.append(commit(5, sequence=1), commit(7, sequence=2))
    bench.feed(1)
    bench.tracker.flush()
    bench.tracker.flush()
    assert bench.store.slots == {}
    bench.append(commit(9, sequence=3))  # after the loss was seen: need not be in it
    bench.feed(1)
    bench.tracker.flush()
    assert bench.reached() == 7
    assert [p.batch.sequence for p in bench.store.slots[UID].history] == [0, 1, 2]


def test_lost_slot_waits_until_it_is_known_how_far_the_facts_go(bench: Bench) -> None:
    bench.store.slots.clear()
    bench.append(commit(5, sequence=1), commit(7, sequence=2))
    bench.feed(1)
    bench.journal.away = True
    for _ in range(3):
        with suppress(Retryable):
            bench.tracker.flush()
    assert bench.store.slots == {}
    bench.journal.away = False
    bench.tracker.flush()
    assert bench.store.slots == {}
    bench.feed()
    bench.tracker.flush()
    assert bench.reached() == 7


def test_tracker_that_stood_still_leaves_the_slot_of_a_topic_that_was_created_anew(
    bench: Bench,
) -> None:
    """Offsets begin again there, so its own position is the greater one."""
    bench.append(*(commit(n, sequence=n) for n in range(2, 9)))
    bench.feed()
    bench.journal.now_id = "anew"
    after = Bench(store=bench.store, journal=FakeJournal(topic_id="anew", now_id="anew"))
    after.append(make_fact(make_definition()), commit(20, sequence=20))
    after.feed()
    after.tracker.flush()
    after.tracker.flush()
    assert after.reached() == 20

    for _ in range(3):
        with suppress(Retryable):
            bench.tracker.flush()
        with suppress(Retryable):
            bench.tracker.confirm()
        assert after.reached() == 20
    after.applied(commit(21, sequence=21))
    assert after.reached() == 21


def test_loss_is_found_while_nothing_changes(bench: Bench) -> None:
    bench.store.slots.clear()
    bench.tracker.confirm()
    assert bench.store.slots == {}
    bench.tracker.flush()
    assert bench.reached() == 1


def test_older_copy_of_a_slot_is_replaced_and_not_confirmed(bench: Bench) -> None:
    older = bench.store.slots[UID]
    bench.append(commit(5, sequence=1))
    bench.feed()
    bench.tracker.flush()
    bench.store.slots[UID] = replace(older, history=[*older.history])
    bench.clock.now += 700
    bench.tracker.confirm()
    assert bench.store.slots[UID].at == older.at, "nobody may take it for what is known now"
    bench.tracker.flush()
    assert bench.reached() == 5


def test_older_copy_with_the_same_position_is_seen_too(bench: Bench) -> None:
    older = replace(bench.store.slots[UID])
    bench.tracker.handle_lifecycle(0, make_lifecycle("Running"))
    bench.tracker.flush()
    bench.store.slots[UID] = older
    bench.tracker.confirm()
    bench.tracker.flush()
    assert bench.store.slots[UID].slot.lifecycle is not None


def test_slot_of_a_tracker_that_has_come_further_is_left_alone(bench: Bench) -> None:
    bench.store.slots[UID].position = 99
    bench.append(commit(5, sequence=1))
    bench.feed()
    bench.tracker.flush()
    assert bench.reached() == 1
    bench.tracker.flush()
    assert bench.store.slots[UID].position == 99


def test_what_could_not_be_written_is_written_later(bench: Bench) -> None:
    bench.store.away = True
    bench.append(commit(5, sequence=1))
    bench.feed()
    with pytest.raises(Retryable):
        bench.tracker.flush()
    bench.store.away = False
    bench.tracker.flush()
    assert bench.reached() == 5
    assert [p.batch.sequence for p in bench.store.slots[UID].history] == [0, 1]


def test_snapshots_are_saved_before_positions(bench: Bench) -> None:
    bench.tracker.save(whole=True)
    assert bench.journal.saves == [f"snapshot {UID}", "positions"]
    assert bench.journal.positions == {0: 2}
    assert bench.journal.snapshots[UID].position == 2


def test_nothing_is_saved_twice(bench: Bench) -> None:
    bench.tracker.save(whole=True)
    bench.tracker.save(whole=True)
    assert bench.journal.saves.count("positions") == 1


def test_failed_save_is_repeated(bench: Bench) -> None:
    bench.journal.away = True
    with pytest.raises(Retryable):
        bench.tracker.save(whole=True)
    bench.journal.away = False
    bench.tracker.save(whole=True)
    assert bench.journal.positions == {0: 2}


def test_restart_from_snapshots_gives_the_same_slots(bench: Bench) -> None:
    bench.tracker.save(whole=True)
    bench.append(commit(5, sequence=1))
    bench.feed()
    bench.tracker.flush()
    before = slot_to_json(bench.store.slots[UID].slot)
    bench.store.slots.clear()
    bench.restart()
    assert bench.position == 2
    bench.feed()
    bench.tracker.flush()
    bench.tracker.flush()
    assert slot_to_json(bench.store.slots[UID].slot) == before


def test_history_outlives_a_restart_and_the_store(bench: Bench) -> None:
    bench.append(*(commit(n, sequence=n) for n in range(2, 100)))
    bench.feed()
    bench.tracker.save(whole=True)
    bench.store.slots.clear()
    bench.restart()
    bench.append(commit(101, sequence=100))
    bench.feed()
    bench.tracker.flush()
    bench.tracker.flush()
    told = [p.batch.sequence for p in bench.store.slots[UID].history]
    assert told == list(range(100 - HISTORY_MAX, 101))


def test_history_never_makes_a_snapshot_too_large() -> None:
    wide = {(ORDERS_ID, partition): 10**12 for partition in range(3_000)}
    history = [entry_of(replace(make_progress(number), reached=wide)) for number in range(9)]
    kept = unpack(make_snapshot(pack(SLOT, history))).history
    assert 0 < len(kept) < 9
    assert kept == tuple(history[-len(kept) :])


def test_restart_without_snapshots_reads_all_facts_again(bench: Bench) -> None:
    bench.restart()
    assert bench.position == 0
    bench.feed()
    bench.tracker.flush()
    assert bench.reached() == 1


def test_phase_reaches_the_store(bench: Bench) -> None:
    bench.tracker.handle_lifecycle(0, make_lifecycle("Running"))
    bench.tracker.flush()
    lifecycle = bench.store.slots[UID].slot.lifecycle
    assert lifecycle is not None
    assert lifecycle.phase == "Running"


def test_what_a_driver_waits_for_reaches_the_store_and_is_cleared(bench: Bench) -> None:
    for at, word in enumerate(["blocked_by_open_transaction", None], start=NOW):
        bench.tracker.handle_lifecycle(0, make_lifecycle(kind="heartbeat", at=at, blocked_by=word))
        bench.tracker.flush()
        assert bench.store.slots[UID].slot.blocked_by == word


def test_what_takes_an_offset_and_is_no_fact_moves_the_position(bench: Bench) -> None:
    bench.tracker.pass_to(0, 3)
    bench.tracker.save(whole=True)
    assert bench.journal.positions == {0: 3}


def test_released_partition_is_no_longer_touched(bench: Bench) -> None:
    bench.tracker.release(0)
    assert not bench.tracker.partitions()
    bench.append(commit(5, sequence=1))
    bench.feed()
    bench.tracker.handle_lifecycle(0, make_lifecycle())
    bench.tracker.flush()
    bench.tracker.save(whole=True)
    assert bench.reached() == 1
    assert bench.journal.positions == {}
