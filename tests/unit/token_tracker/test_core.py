"""What one fact changes in a slot."""

from dataclasses import replace
from itertools import pairwise

import pytest

from builders import (
    NOW,
    make_commit,
    make_definition,
    make_fact,
    make_input,
    make_sink,
    make_stage,
    with_batch,
)
from message_builders import make_beat, make_lifecycle
from unit.token_tracker.chains import CHAIN, EMPTY, ENRICH, LOAD, enriched, inner, loaded, reached
from waybill_shared.contract.driver_news import IgnoredFields
from waybill_shared.contract.events import Commit, Definition
from waybill_shared.contract.lifecycle_events import Condition
from waybill_shared.contract.slots import SinkState, Slot, slot_from_json, slot_to_json
from waybill_token_tracker.core import hops
from waybill_token_tracker.core.facts import Applied, apply_beat, apply_fact, apply_lifecycle


def apply(*bodies: Definition | Commit, slot: Slot = EMPTY) -> Applied:
    applied = Applied(slot=slot, progress=())
    for body in bodies:
        applied = apply_fact(applied.slot, make_fact(body))
    return applied


def written(slot: Slot) -> list[int]:
    """By hop of stage enrich that is kept, where its rows end."""
    return [hop.outputs["A", 0] for hop in slot.sinks["enrich/out@1"].hops]


def version_of(state: SinkState) -> dict[str, str]:
    assert state.batch is not None
    return state.batch.version


def test_a_time_that_was_skipped_changes_no_phase() -> None:
    slot = apply_lifecycle(EMPTY, make_lifecycle("Running", at=NOW), NOW)
    skipped = replace(make_lifecycle("Running", at=NOW + 9), kind="schedule", reason="skipped")
    assert apply_lifecycle(slot, skipped, NOW + 9) == replace(slot, heard_at=NOW + 9)


def test_a_heartbeat_says_when_the_next_run_begins_by_now() -> None:
    slot = apply_lifecycle(EMPTY, make_lifecycle("Finished", at=NOW), NOW)
    changed = replace(make_lifecycle("Finished", kind="heartbeat", at=NOW + 9), next_run_at=77)
    slot = apply_lifecycle(slot, changed, NOW + 9)
    assert slot.lifecycle is not None
    assert (slot.lifecycle.at, slot.lifecycle.next_run_at) == (NOW, 77)


def test_commit_moves_frontier_and_reached_of_its_sink() -> None:
    commit = make_commit({("AAAAAAAAAAAAAAAAAAAAAA", 0): 5}, version=77)
    commit = with_batch(commit, started_at=commit.batch.committed_at - 90)
    applied = apply(make_definition(), commit)
    state = applied.slot.sinks["enrich/lake@1"]
    assert state.frontier == {("AAAAAAAAAAAAAAAAAAAAAA", 0): 5}
    assert state.reached == state.frontier
    assert version_of(state) == {"iceberg_snapshot_id": "77"}
    (progress,) = applied.progress
    assert (progress.sink, progress.batch.batch_id) == ("enrich/lake@1", 0)
    assert progress.reached == state.reached
    assert progress.batch.version == {"iceberg_snapshot_id": "77"}
    assert progress.batch.started_at == progress.batch.committed_at - 90


def test_record_has_reached_the_lake_behind_both_stages() -> None:
    slot = apply(CHAIN, enriched(12, 4)).slot
    assert reached(slot) == {("R", 0): 10}
    slot = apply(loaded(3), slot=slot).slot
    assert reached(slot) == {("R", 0): 10}
    slot = apply(loaded(4, sequence=1), slot=slot).slot
    assert reached(slot) == {("R", 0): 12}


def test_reached_begins_at_the_bases_and_that_is_no_progress() -> None:
    applied = apply(CHAIN)
    assert reached(applied.slot) == {("R", 0): 10}
    assert applied.progress == ()


def test_batch_that_writes_nothing_passes_with_the_hop_before_it() -> None:
    slot = apply(CHAIN, enriched(12, 4), loaded(4), enriched(20, 4, sequence=1)).slot
    assert reached(slot) == {("R", 0): 20}


def test_first_batch_that_writes_nothing_is_through_at_once() -> None:
    assert reached(apply(CHAIN, enriched(12, None)).slot) == {("R", 0): 12}


def test_hop_may_arrive_after_the_commit_downstream() -> None:
    slot = apply(CHAIN, loaded(9)).slot
    assert reached(slot) == {("R", 0): 10}
    applied = apply(enriched(12, 9), slot=slot)
    assert reached(applied.slot) == {("R", 0): 12}
    assert {p.sink for p in applied.progress} == {"enrich/out@1", "load/lake@1"}


def test_three_stages_follow_one_another() -> None:
    join = make_stage(
        "join",
        inputs=(inner("A"),),
        sinks=(make_sink("joined", topic_id="B", terminal=False),),
    )
    load = make_stage(
        "load", inputs=(make_input("joined", topic_id="B", root=False),), sinks=(make_sink("lake"),)
    )
    joined = make_commit(
        {("A", 0): 4}, stage="join", sink="joined", outputs={("B", 0): 6}, sequence=0
    )
    slot = apply(make_definition(ENRICH, join, load), enriched(12, 4), joined).slot
    assert reached(slot) == {("R", 0): 10}
    done = make_commit({("B", 0): 6}, stage="load", sink="lake")
    assert reached(apply(done, slot=slot).slot) == {("R", 0): 12}


def test_diamond_has_reached_as_far_as_its_slower_side() -> None:
    right = make_stage(
        "right",
        inputs=(make_input("orders", topic_id="R", bases=(10,)),),
        sinks=(make_sink("other", topic_id="B", terminal=False),),
    )
    sources = tuple(make_input(t, topic_id=t, root=False) for t in ("A", "B"))
    load = make_stage("load", inputs=sources, sinks=(make_sink("lake"),))
    other = make_commit(
        {("R", 0): 11}, stage="right", sink="other", outputs={("B", 0): 2}, sequence=0
    )
    done = make_commit({("A", 0): 4, ("B", 0): 2}, stage="load", sink="lake")
    slot = apply(make_definition(ENRICH, right, load), enriched(30, 4), other, done).slot
    assert reached(slot) == {("R", 0): 11}


def test_topic_that_two_stages_write_waits_for_both() -> None:
    twin = replace(ENRICH, name="twin")
    slot = apply(make_definition(ENRICH, twin, LOAD), enriched(30, 4), loaded(4)).slot
    assert reached(slot) == {("R", 0): 10}


def test_sinks_of_one_stage_have_frontiers_of_their_own() -> None:
    stage = make_stage(sinks=(make_sink("lake"), make_sink("archive")))
    first = make_commit({("AAAAAAAAAAAAAAAAAAAAAA", 0): 5}, sink="lake")
    slot = apply(make_definition(stage), first).slot
    assert reached(slot, "enrich/lake@1") == {("AAAAAAAAAAAAAAAAAAAAAA", 0): 5}
    assert reached(slot, "enrich/archive@1") == {("AAAAAAAAAAAAAAAAAAAAAA", 0): 0}


def test_older_commit_changes_neither_frontier_nor_version() -> None:
    slot = apply(CHAIN, loaded(9, sequence=4, version=2)).slot
    again = apply(loaded(5, sequence=3, version=1), slot=slot).slot
    assert again.sinks["load/lake@1"].frontier == slot.sinks["load/lake@1"].frontier
    assert version_of(again.sinks["load/lake@1"]) == {"iceberg_snapshot_id": "2"}


def test_same_batch_with_smaller_outputs_needs_only_those() -> None:
    facts = (CHAIN, enriched(12, 9), enriched(12, 4), loaded(4))
    assert reached(apply(*facts).slot) == {("R", 0): 12}


@pytest.mark.parametrize(("room", "kept"), [(0, [6]), (5, [6]), (9, [1, 5, 6])])
def test_of_the_hops_that_every_reader_has_passed_a_few_are_kept(
    monkeypatch: pytest.MonkeyPatch, room: int, kept: list[int]
) -> None:
    monkeypatch.setattr(hops, "PASSED_OFFSETS_MAX", room)
    slot = apply(CHAIN, *(enriched(11 + n, n + 1, sequence=n) for n in range(9))).slot
    assert written(slot) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    slot = apply(loaded(7), slot=slot).slot
    assert written(slot) == [*kept, 7, 8, 9]
    assert reached(slot) == {("R", 0): 17}


def test_hops_stay_until_the_slower_of_two_readers_has_passed() -> None:
    slow = replace(LOAD, name="slow")
    hops = [enriched(11 + n, n + 1, sequence=n) for n in range(5)]
    slow_taken = make_commit({("A", 0): 2}, stage="slow", sink="lake")
    definition = make_definition(ENRICH, slow, LOAD)
    slot = apply(definition, *hops, slow_taken, loaded(5)).slot
    assert reached(slot, "slow/lake@1") == {("R", 0): 12}
    slow_taken = make_commit({("A", 0): 3}, stage="slow", sink="lake", sequence=1)
    assert reached(apply(slow_taken, slot=slot).slot, "slow/lake@1") == {("R", 0): 13}


def test_sink_that_no_stage_reads_keeps_few_hops_from_all_its_time() -> None:
    facts = (enriched(11 + n, n + 1, sequence=n) for n in range(300))
    slot = apply(make_definition(ENRICH), *facts).slot
    kept = written(slot)
    assert len(kept) * 3 <= hops.PASSED_OFFSETS_MAX + 3
    assert (kept[0], kept[-1]) == (1, 300)
    assert all(after - before <= 2 + (300 - before) / 6 for before, after in pairwise(kept))


@pytest.mark.parametrize("most", [4, 5, 6])
def test_of_too_many_hops_the_first_and_the_newest_stay(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(hops, "HOP_OFFSETS_MAX", 0)
    monkeypatch.setattr(hops, "HOPS_MIN", most)
    slot = apply(CHAIN).slot
    for n in range(9):
        slot = apply(enriched(11 + n, n + 1, sequence=n), slot=slot).slot
        kept = written(slot)
        assert len(kept) <= most
        assert (kept[0], kept[-1]) == (1, n + 1)
    assert reached(apply(loaded(9), slot=slot).slot) == {("R", 0): 19}


def test_commits_before_their_definition_count_when_it_comes() -> None:
    early = apply(enriched(12, 4), loaded(4))
    assert early.progress == ()
    assert reached(early.slot) == {}
    assert reached(apply(CHAIN, slot=early.slot).slot) == {("R", 0): 12}


def test_older_generation_is_ignored() -> None:
    slot = apply_fact(EMPTY, make_fact(CHAIN, generation=2)).slot
    assert apply_fact(slot, make_fact(make_definition(), generation=1)).slot == slot


def test_newer_generation_replaces_the_definition_and_keeps_what_was_reached() -> None:
    slot = apply(CHAIN, enriched(12, 4), loaded(4)).slot
    wider = make_definition(ENRICH, make_stage("load", inputs=LOAD.inputs, sinks=LOAD.sinks))
    after = apply_fact(slot, make_fact(wider, generation=2)).slot
    assert after.generation == 2
    assert reached(after) == {("R", 0): 12}


@pytest.mark.parametrize("deleted_first", [True, False])
def test_deletion_wins_over_its_own_generation(*, deleted_first: bool) -> None:
    gone = replace(CHAIN, deleted=True)
    order = (gone, CHAIN) if deleted_first else (CHAIN, gone)
    slot = apply(*order).slot
    assert slot.definition == gone


@pytest.mark.parametrize("later_ms", [5, -3_600_000])
def test_the_last_transition_is_the_phase_whatever_the_runners_clock_shows(later_ms: int) -> None:
    slot = apply_lifecycle(EMPTY, make_lifecycle("Running", at=NOW), NOW)
    slot = apply_lifecycle(slot, make_lifecycle("Failed", at=NOW + later_ms), NOW)
    assert slot.lifecycle is not None
    assert slot.lifecycle.phase == "Failed"


def test_heartbeat_says_only_that_the_runner_lives() -> None:
    slot = apply_lifecycle(EMPTY, make_lifecycle("Running", at=NOW), NOW)
    slot = apply_lifecycle(slot, make_lifecycle("Failed", kind="heartbeat", at=NOW + 9), NOW + 1)
    assert slot.lifecycle is not None
    assert slot.lifecycle.phase == "Running"


def test_heartbeat_of_the_same_phase_tells_the_place_in_a_line() -> None:
    slot = apply_lifecycle(EMPTY, make_lifecycle("Scheduling", at=NOW), NOW)
    moved = replace(make_lifecycle("Scheduling", kind="heartbeat", at=NOW + 9), reason="1. in line")
    slot = apply_lifecycle(slot, moved, NOW + 9)
    assert slot.lifecycle is not None
    assert (slot.lifecycle.at, slot.lifecycle.reason) == (NOW, "1. in line")


@pytest.mark.parametrize("ahead_ms", [-3_600_000, 0, 3_600_000])
def test_a_runner_is_heard_when_it_is_heard_whatever_its_clock_shows(ahead_ms: int) -> None:
    beat = make_lifecycle(kind="heartbeat", at=NOW + ahead_ms)
    assert apply_lifecycle(EMPTY, beat, NOW + 7).heard_at == NOW + 7


def test_heartbeat_alone_tells_the_phase() -> None:
    slot = apply_lifecycle(EMPTY, make_lifecycle("Running", kind="heartbeat"), NOW)
    assert slot.lifecycle is not None
    assert slot.lifecycle.phase == "Running"


def test_the_last_beat_says_which_fields_are_left_out() -> None:
    fields = (IgnoredFields(input="orders", records=3, warnings=("field 'a' is no column",)),)
    slot = apply_beat(EMPTY, replace(make_beat(), ignored=fields), NOW)
    assert slot.ignored == fields
    assert slot_from_json(slot_to_json(slot)) == slot
    assert apply_beat(slot, make_beat(), NOW).ignored == ()


def test_the_last_message_says_what_is_wrong_with_the_pipeline() -> None:
    found = (Condition(stage="load", cause="no_progress", since=NOW),)
    slot = apply_beat(EMPTY, replace(make_beat(), conditions=found), NOW)
    assert slot.conditions == found
    assert slot_from_json(slot_to_json(slot)) == slot
    assert apply_lifecycle(slot, make_lifecycle(kind="claim"), NOW).conditions == found
    assert apply_lifecycle(slot, make_lifecycle("Recovering"), NOW).conditions == ()
    assert apply_beat(slot, make_beat(), NOW).conditions == ()


def test_last_event_says_what_blocks_the_driver() -> None:
    slot = apply_lifecycle(EMPTY, make_lifecycle(kind="heartbeat", at=NOW, blocked_by="x"), NOW)
    assert slot.blocked_by == "x"
    slot = apply_lifecycle(slot, make_lifecycle(kind="claim", at=NOW + 3), NOW)
    assert slot.blocked_by == "x"
    assert apply_lifecycle(slot, make_lifecycle("Running", at=NOW + 3), NOW).blocked_by is None


def test_versions_that_are_gone_do_not_come_back() -> None:
    first = loaded(3, sequence=4)
    slot = EMPTY
    for told in (first, replace(first, versions_from=4), loaded(5, sequence=5)):
        slot = apply_fact(slot, make_fact(told)).slot
    assert slot.sinks["load/lake@1"].versions_from == 4
    assert slot_from_json(slot_to_json(slot)) == slot
