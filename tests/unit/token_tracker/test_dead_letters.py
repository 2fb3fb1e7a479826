"""What is known of records that went to dead-letter topics, in root inputs."""

from dataclasses import replace

import pytest

from builders import make_commit, make_definition, make_fact, make_sink, make_stage, with_batch
from unit.token_tracker.chains import (
    CHAIN,
    ENRICH,
    LOAD,
    enriched,
    inner,
    loaded,
    loading,
    root,
    without,
    writing,
    wrote,
)
from unit.token_tracker.dead_facts import LAKE, applied, died, letter, past, places, reached
from waybill_shared.contract.slots import DeadCount
from waybill_shared.contract.vectors import Span
from waybill_token_tracker.core.facts import apply_fact


def test_a_record_of_a_root_is_known_exactly_and_where_it_lies() -> None:
    slot, (entry,) = applied(CHAIN, died(letter(12)))
    assert places([entry]) == [("R", 12, 13, 1, True)]
    assert (entry.dead_topic, entry.dead_partition, entry.dead_offset) == ("orders.in.dlq", 0, 112)
    assert slot.dead == (DeadCount(topic_id="R", partition=0, entries=1, longest=1, records=1),)


def test_a_fact_that_is_heard_again_counts_once() -> None:
    slot, entries = applied(CHAIN, died(letter(12)), died(letter(12)))
    assert len(entries) == slot.dead[0].entries == 1


def test_a_commit_that_is_past_what_was_not_heard_moves_nothing() -> None:
    slot, _ = applied(CHAIN, past(enriched(15, 3), 1), loaded(3))
    began = 10
    assert reached(slot, LAKE) == reached(slot, "enrich/out@1") == began
    slot, _ = applied(died(letter(12)), slot=slot)
    assert reached(slot, LAKE) == reached(slot, "enrich/out@1") == 15


def test_facts_count_in_their_order() -> None:
    slot, entries = applied(CHAIN, died(letter(14), sequence=2))
    assert (entries, slot.dead, len(slot.dead_waiting)) == ([], (), 1)
    slot, entries = applied(died(letter(12), sequence=1), slot=slot)
    assert places(entries) == [("R", 12, 13, 1, True), ("R", 14, 15, 1, True)]
    assert slot.dead_waiting == ()


def test_what_died_behind_a_hop_came_of_what_the_hop_took() -> None:
    before = (CHAIN, enriched(15, 3), enriched(20, 8, sequence=1), enriched(30, 20, sequence=2))
    two = (letter(5, topic_id="A"), letter(7, topic_id="A"))
    slot, entries = applied(*before, died(*two, stage="load"))
    assert places(entries) == [("R", 15, 20, 2, False)]
    assert slot.dead == (DeadCount(topic_id="R", partition=0, entries=1, longest=5, records=2),)


@pytest.mark.parametrize("hop", [False, True])
def test_what_a_removed_sink_had_is_dead_for_the_others_of_its_stage_only(hop: bool) -> None:
    """Sink lake is removed while sink late lacks records that it had. One of them dies then."""
    first, late = make_sink("lake"), make_sink("late", since=2)
    source = inner("A") if hop else root()
    load = make_stage("load", inputs=(source,), sinks=(first, late))
    stages = (ENRICH, load) if hop else (load,)
    moved = (enriched(15, 5), loaded(5)) if hop else (make_commit({("R", 0): 15}, stage="load"),)
    slot, _ = applied(make_definition(*stages), *moved)
    lone = replace(load, sinks=(late,))
    changed = make_fact(make_definition(*stages[:-1], lone), generation=2)
    slot = apply_fact(slot, changed).slot
    dead = (letter(2, topic_id="A"),) if hop else (letter(12), letter(17))
    _, entries = applied(died(*dead, stage="load"), slot=slot)
    by_sink = [(entry.sink, entry.start, entry.end) for entry in entries]
    expected = [("load/late@2", 10, 15)] if hop else [("load/late@2", 12, 13), (None, 17, 18)]
    assert by_sink == expected


def test_records_of_two_hops_are_told_apart() -> None:
    before = (CHAIN, enriched(15, 3), enriched(20, 8, sequence=1))
    two = (letter(1, topic_id="A"), letter(7, topic_id="A"))
    _, entries = applied(*before, died(*two, stage="load"))
    assert places(entries) == [("R", 10, 15, 1, False), ("R", 15, 20, 1, False)]
    assert len({entry.id for entry in entries}) == 2


def test_behind_a_deletion_nothing_counts() -> None:
    slot, entries = applied(CHAIN, replace(CHAIN, deleted=True), died(letter(12)))
    assert (entries, slot.dead_waiting) == ([], ())


def test_of_a_stage_that_was_removed_what_was_told_before_stays() -> None:
    slot, entries = applied(CHAIN, died(letter(12)), died(letter(3, topic_id="A"), stage="load"))
    later = apply_fact(slot, make_fact(make_definition(ENRICH), generation=2)).slot
    assert later.dead == slot.dead
    assert len(entries) == 1
    slot, entries = applied(died(letter(14), sequence=2), enriched(15, 5), slot=later)
    assert sorted(places(entries)) == [("R", 10, 15, 1, False), ("R", 14, 15, 1, True)]


def test_what_a_stage_set_aside_and_what_was_before_it_has_not_died() -> None:
    hop = without(enriched(20, 8), [("R", 12, 16)])
    _, entries = applied(CHAIN, hop, died(letter(5, topic_id="A"), stage="load"))
    assert places(entries) == [("R", 10, 12, 1, False), ("R", 16, 20, 1, False)]
    assert len({entry.id for entry in entries}) == 1


def test_what_died_behind_a_topic_that_was_created_anew_came_of_what_was_written_there() -> None:
    """The stage set all of that aside; who had read it before has died of it all the same."""
    went = without(enriched(20, 8, sequence=1), [("R", 10, 20)], reason="sink_topic_recreated")
    _, entries = applied(CHAIN, enriched(20, 8), went, died(letter(5, topic_id="A"), stage="load"))
    assert places(entries) == [("R", 10, 20, 1, False)]


def test_by_all_ways_that_lead_to_it_and_as_far_up_as_they_go() -> None:
    """What one way tells late is told with the same id, and nothing is told twice."""
    shape = make_definition(
        writing("left", "A", root()),
        writing("right", "B", root()),
        writing("join", "C", inner("A"), inner("B"), root("S", base=0)),
        loading(inner("C")),
    )
    slot, entries = applied(
        shape,
        wrote("left", {("R", 0): 20}, {("A", 0): 5}),
        wrote("join", {("A", 0): 5, ("B", 0): 4, ("S", 0): 3}, {("C", 0): 9}),
        died(letter(8, topic_id="C"), stage="load"),
    )
    assert places(entries) == [("R", 10, 20, 1, False), ("S", 0, 3, 1, False)]
    assert [each.open for each in slot.dead_unplaced] == [
        (("right/out@1", Span(topic_id="B", partition=0, start=0, end=4)),)
    ]
    slot, later = applied(wrote("right", {("R", 0): 25}, {("B", 0): 6}), slot=slot)
    assert places(later) == [("R", 20, 25, 1, False)]
    assert {entry.id for entry in (*entries, *later)} == {entries[0].id}
    assert (slot.dead_unplaced, sum(each.entries for each in slot.dead)) == ((), 3)


def test_what_has_arrived_is_not_said_to_have_died_later() -> None:
    """Hops that were passed may be one with the next: it took what was complete, too."""
    slot, _ = applied(CHAIN, enriched(15, 3), enriched(20, 8, sequence=1), loaded(8))
    assert reached(slot, LAKE) == 20
    slot, _ = applied(enriched(30, 12, sequence=2), slot=slot)
    state = slot.sinks["enrich/out@1"]
    slot = replace(slot, sinks={**slot.sinks, "enrich/out@1": replace(state, hops=state.hops[-1:])})
    _, entries = applied(died(letter(10, topic_id="A"), stage="load"), slot=slot)
    assert places(entries) == [("R", 20, 30, 1, False)]


def test_what_only_one_sink_lacks_may_have_come_to_the_others() -> None:
    both = make_definition(ENRICH, replace(LOAD, sinks=(make_sink("lake"), make_sink("copy"))))
    copied = replace(loaded(3), sink="copy")
    slot, _ = applied(both, enriched(15, 3), copied)
    assert reached(slot, "load/copy@1") == 15
    refused = letter(2, topic_id="A", sink=LAKE)
    slot, entries = applied(died(refused, stage="load"), slot=slot)
    assert places(entries) == [("R", 10, 15, 1, False)]
    assert entries[0].sink == LAKE


def test_a_record_that_two_sinks_refuse_is_told_of_both() -> None:
    two = (letter(12, sink="enrich/out@1"), letter(12, sink="enrich/other@1"))
    slot, entries = applied(CHAIN, died(*two))
    assert len({entry.id for entry in entries}) == slot.dead[0].entries == 2


def test_the_newest_batch_says_what_was_dropped() -> None:
    first = with_batch(enriched(15, 3), dropped={"orders.malformed": 2})
    later = with_batch(enriched(20, 5, sequence=1), dropped={"orders.malformed": 5})
    for facts in ((first, later), (later, first)):
        slot, _ = applied(CHAIN, *facts)
        batch = slot.sinks["enrich/out@1"].batch
        assert batch is not None
        assert batch.dropped == {"orders.malformed": 5}
    (progress,) = apply_fact(applied(CHAIN)[0], make_fact(later)).progress
    assert progress.batch.dropped == {"orders.malformed": 5}
