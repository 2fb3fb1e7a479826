"""Which snapshots are written, and what a restart reads: few, and little."""

from dataclasses import replace
from random import Random

import pytest

from builders import NOW, TENANT, UID, make_definition, make_fact, make_snapshot
from message_builders import make_beat, make_lifecycle
from unit.token_tracker.line import Bench, commit
from waybill_shared.contract.slots import SLOT_VERSION, Entry, Hop, SinkState, Slot
from waybill_shared.contract.vectors import between
from waybill_token_tracker.app.state import restore
from waybill_token_tracker.core import snapshots
from waybill_token_tracker.core.hops import thin_out
from waybill_token_tracker.core.snapshots import (
    AGE_MS_MAX,
    PACKED_CHARACTERS_MAX,
    SnapshotRule,
    pack,
)

OTHER = "6e4bc4b3-9ee6-5f4c-8e5c-8f907b2c3d4e"


@pytest.fixture
def saved(bench: Bench) -> Bench:
    """All that the tracker knows is in snapshots."""
    bench.rule = SnapshotRule(tail_max=4)
    bench.tracker.save(whole=True)
    bench.restart()
    bench.journal.saves.clear()
    return bench


def test_a_runner_that_only_lives_costs_no_snapshot(saved: Bench) -> None:
    for beat in range(100):
        heard_at = saved.clock.now
        saved.tracker.handle_beat(0, make_beat(at=NOW + beat, blocked_by="no_spark_executor"))
        saved.clock.now += AGE_MS_MAX
        saved.tracker.flush()
        saved.tracker.save()
    assert saved.store.slots[UID].slot.heard_at == heard_at
    assert saved.store.slots[UID].slot.blocked_by == "no_spark_executor"
    assert saved.journal.saves == ["positions"]  # once, by this process


def test_a_snapshot_of_another_version_is_not_guessed_at(saved: Bench) -> None:
    """To leave it out would forget what is lost."""
    (snapshot,) = saved.journal.snapshots.values()
    saved.journal.snapshots[UID] = replace(snapshot, slot_version=snapshot.slot_version + 1)
    with pytest.raises(
        RuntimeError, match=f"{UID} has version {SLOT_VERSION + 1}.* {SLOT_VERSION}:"
    ):
        saved.restart()


def test_one_commit_is_no_reason_for_a_snapshot_and_stands_in_the_tail(saved: Bench) -> None:
    saved.applied(commit(5, sequence=1))
    saved.tracker.save()
    assert saved.journal.saves == ["positions"]
    assert saved.journal.positions == {0: 2}, "the commit at offset 2 is read again"


def test_a_tail_that_gets_long_ends_in_a_snapshot(saved: Bench) -> None:
    for number in range(4):
        saved.applied(commit(5 + number, sequence=1 + number))
        saved.tracker.save()
    assert saved.journal.saves.count(f"snapshot {UID}") == 1
    assert saved.journal.positions == {0: 6}


def test_a_commit_does_not_get_old_without_a_snapshot(saved: Bench) -> None:
    saved.applied(commit(5, sequence=1))
    saved.clock.now += AGE_MS_MAX
    saved.tracker.save()
    assert saved.journal.saves == [f"snapshot {UID}", "positions"]
    assert saved.journal.positions == {0: 3}


def test_a_transition_is_in_a_snapshot_before_its_offset_is_committed(saved: Bench) -> None:
    saved.tracker.handle_lifecycle(0, make_lifecycle("Failed"))
    saved.tracker.save()
    assert saved.journal.saves == [f"snapshot {UID}", "positions"]


def test_the_offset_stays_at_the_first_commit_that_is_in_no_snapshot(saved: Bench) -> None:
    saved.applied(make_fact(make_definition(), uid=OTHER), commit(5, sequence=1))
    saved.clock.now += AGE_MS_MAX // 2
    saved.applied(commit(6, sequence=2))
    saved.tracker.handle_lifecycle(0, make_lifecycle())
    saved.tracker.save()
    assert saved.journal.saves == [f"snapshot {UID}", "positions"]
    assert saved.journal.positions == {0: 2}, "where the other pipeline's definition stands"


def test_what_a_snapshot_holds_is_not_applied_again(saved: Bench) -> None:
    """The tail of others may begin below it."""
    saved.applied(make_fact(make_definition(), uid=OTHER), commit(5, sequence=1))
    saved.tracker.handle_lifecycle(0, make_lifecycle())
    saved.tracker.save()
    before = saved.store.slots[UID]
    saved.store.slots.clear()
    saved.restart()
    assert saved.position == 2
    saved.feed()
    saved.tracker.flush()
    saved.tracker.flush()
    after = saved.store.slots[UID]
    assert replace(after.slot, lifecycle=None, heard_at=0) == replace(
        before.slot, lifecycle=None, heard_at=0
    )
    assert [step.batch.sequence for step in after.history] == [0, 1]
    assert OTHER in saved.store.slots


def test_a_snapshot_of_a_topic_that_is_gone_is_kept_and_its_position_is_not(saved: Bench) -> None:
    """Its journal gives such a one with position 0, and everything is read."""
    (snapshot,) = saved.journal.snapshots.values()
    saved.journal.snapshots[UID] = replace(snapshot, position=0)
    saved.journal.positions.clear()
    saved.store.slots.clear()
    saved.log.clear()
    saved.restart()
    saved.append(commit(9, sequence=7))
    saved.feed()
    saved.tracker.flush()
    saved.tracker.flush()
    assert saved.reached() == 9


def test_a_slot_is_rebuilt_though_a_marker_stands_last(bench: Bench) -> None:
    bench.store.slots.clear()
    bench.journal.ends[0] = 3  # two facts, and the marker of their transaction
    bench.tracker.confirm()
    bench.tracker.flush()
    assert bench.store.slots == {}
    bench.tracker.pass_to(0, 3)
    bench.tracker.flush()
    assert bench.reached() == 1


def test_a_slot_of_many_hops_and_partitions_fits_into_a_message() -> None:
    """A tracker whose snapshot Kafka does not take can save nothing any more."""
    sinks = {f"s{n}/out@1": lagging(Random(n), partitions=1_000, batches=30) for n in range(5)}
    kept = thin_out(sinks, dict.fromkeys(sinks, 0))
    states = {key: SinkState(frontier=hops[-1].inputs, hops=hops) for key, hops in kept.items()}
    packed = pack(Slot(tenant=TENANT, pipeline_uid=UID, sinks=states), ())
    assert len(packed) <= PACKED_CHARACTERS_MAX


def test_a_history_that_does_not_fit_is_left_out_and_the_slot_is_whole(
    monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    """Who begins with a slot that lacks hops takes back what was told by them."""
    monkeypatch.setattr(snapshots, "PACKED_CHARACTERS_MAX", 0)
    hops = lagging(Random(1), partitions=1, batches=9)
    slot = bench.store.slots[UID].slot
    slot = replace(slot, sinks={**slot.sinks, "s/out@1": SinkState(hops=hops)})
    found = restore([make_snapshot(pack(slot, (Entry("s/out@1", "{}"),)))])[UID]
    assert found.slot == slot
    assert not found.history


def lagging(dice: Random, *, partitions: int, batches: int) -> tuple[Hop, ...]:
    """Others write between any two batches, in each partition."""
    at, hops = dict.fromkeys((("some-topic-or-other-id", n) for n in range(partitions)), 0), []
    for number in range(batches):
        before, at = at, {place: end + dice.randrange(2, 100_000) for place, end in at.items()}
        ends = at
        gaps = between(before, {place: end - 1 for place, end in at.items()})
        hops.append(Hop(sequence=number, inputs=ends, outputs=ends, gaps=gaps))
    return tuple(hops)
