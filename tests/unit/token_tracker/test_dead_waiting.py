"""What died of something that is not known yet waits for it, up to a limit."""

from dataclasses import replace

import pytest

from builders import make_definition, make_fact
from unit.token_tracker.chains import CHAIN, ENRICH, enriched, loaded
from unit.token_tracker.dead_facts import EMPTY, LAKE, applied, died, letter, past, places, reached
from waybill_shared.contract.slots import for_readers, slot_from_json, slot_to_json
from waybill_token_tracker.core import hops
from waybill_token_tracker.core.dead_letters import UNPLACED_MAX, WAITING_LETTERS_MAX
from waybill_token_tracker.core.facts import apply_fact


def test_what_died_behind_a_hop_that_is_not_known_yet_waits_for_it() -> None:
    """Until then nothing that the hop took has arrived behind it."""
    before = (CHAIN, enriched(15, 3), died(letter(5, topic_id="A"), stage="load"))
    slot, entries = applied(*before, past(loaded(8), 1))
    assert (entries, reached(slot, LAKE)) == ([], 15)
    slot, entries = applied(enriched(20, 8, sequence=1), slot=slot)
    assert places(entries) == [("R", 15, 20, 1, False)]
    assert (slot.dead_unplaced, reached(slot, LAKE)) == ((), 20)


def test_records_of_one_hop_that_came_later_are_one() -> None:
    slot, _ = applied(CHAIN, died(letter(5, topic_id="A"), stage="load"))
    slot, _ = applied(died(letter(6, topic_id="A"), sequence=2, stage="load"), slot=slot)
    slot, entries = applied(enriched(15, 3), enriched(20, 8, sequence=1), slot=slot)
    assert places(entries) == [("R", 15, 20, 2, False)]


def test_what_others_wrote_between_stages_holds_nobody_up_and_is_nobodys() -> None:
    """A quiet stage may not write there for days."""
    slot, entries = applied(CHAIN, enriched(15, 3), died(letter(5, topic_id="A"), stage="load"))
    slot, _ = applied(past(loaded(8), 1), slot=slot)
    assert (entries, slot.dead_waiting, reached(slot, LAKE)) == ([], (), 15)
    slot, entries = applied(enriched(20, 9, sequence=1, gaps=[("A", 3, 7)]), slot=slot)
    assert (entries, slot.dead_unplaced, slot.dead) == ([], (), ())


def test_of_many_that_wait_for_one_hop_none_is_forgotten() -> None:
    """They are told as one when it comes."""
    slot, _ = applied(CHAIN, enriched(15, 3))
    number = UNPLACED_MAX + 5
    for at in range(number):
        fact = died(letter(4 + at, topic_id="A"), sequence=at + 1, stage="load")
        slot, _ = applied(fact, slot=slot)
    assert len(slot.dead_unplaced) < 10
    slot, entries = applied(enriched(20, 300, sequence=1), slot=slot)
    assert {(e.start, e.end) for e in entries} == {(15, 20)}
    assert sum({e.id: e.up_to for e in entries}.values()) == number
    assert slot.dead_unplaced == ()


def test_hops_stay_while_it_is_not_known_what_died(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any of them may have written it."""
    monkeypatch.setattr(hops, "PASSED_OFFSETS_MAX", 0)
    slot, _ = applied(CHAIN, enriched(15, 3))
    for number in range(1, 12):
        fact = enriched(20 + number, 8 + 2 * number, sequence=number)
        slot, _ = applied(fact, past(loaded(8 + 2 * number, sequence=number), 1), slot=slot)
    assert len(slot.sinks["enrich/out@1"].hops) == 12
    slot, entries = applied(died(letter(11, topic_id="A"), stage="load"), slot=slot)
    assert places(entries) == [("R", 21, 22, 1, False)]
    assert len(slot.sinks["enrich/out@1"].hops) < 12


def test_hops_that_stay_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hops, "HOP_OFFSETS_MAX", 30)
    slot, _ = applied(CHAIN, past(loaded(1), 1))
    for number in range(40):
        slot, _ = applied(enriched(20 + number, 8 + number, sequence=number), slot=slot)
    assert len(slot.sinks["enrich/out@1"].hops) <= 10


def test_before_the_definition_is_known_all_waits() -> None:
    slot, entries = applied(died(letter(12)))
    assert (entries, len(slot.dead_waiting)) == ([], 1)
    assert len(applied(CHAIN, slot=slot)[1]) == 1


def test_of_a_stage_that_is_to_come_all_waits_and_nothing_moves() -> None:
    facts = (replace(died(letter(12)), since=2), enriched(15, 3))
    slot, entries = applied(CHAIN, *facts)
    assert (entries, len(slot.dead_waiting), reached(slot, "enrich/out@1")) == ([], 1, 10)
    again = make_definition(replace(ENRICH, since=2), *CHAIN.stages[1:])
    late = apply_fact(slot, make_fact(again, generation=2))
    assert places(late.dead) == [("R", 12, 13, 1, True)]
    assert late.slot.dead_waiting == ()


def test_of_a_topic_that_is_to_come_all_waits() -> None:
    """It was created anew, and the definition that says so comes later."""
    slot, entries = applied(CHAIN, died(letter(12), letter(0, topic_id="R2")))
    assert (entries, len(slot.dead_waiting)) == ([], 1)
    source = replace(ENRICH.inputs[0], topic_id="R2", retired=("R",))
    again = make_definition(replace(ENRICH, inputs=(source,)), *CHAIN.stages[1:])
    late = apply_fact(slot, make_fact(again, generation=2))
    assert places(late.dead) == [("R", 12, 13, 1, True), ("R2", 0, 1, 1, True)]


def test_of_a_stage_that_nobody_has_heard_of_and_never_will_nothing_waits() -> None:
    """It came and went between two definitions that were heard."""
    slot = apply_fact(EMPTY, make_fact(CHAIN, generation=3)).slot
    slot, entries = applied(replace(died(letter(12), stage="gone"), since=2), slot=slot)
    assert (entries, slot.dead_waiting, slot.dead_sequences) == ([], (), {"gone@2": 1})


def test_what_waits_has_a_limit_and_what_comes_then_is_missing() -> None:
    """So nothing is said to have arrived, as if it had never been told."""
    many = tuple(letter(at) for at in range(11, 11 + WAITING_LETTERS_MAX))
    slot, _ = applied(CHAIN, died(*many, sequence=2))
    slot, _ = applied(died(letter(5_000), sequence=3), past(enriched(6_000, 3), 3), slot=slot)
    assert [each.sequence for each in slot.dead_waiting] == [2]
    slot, _ = applied(died(letter(10), sequence=1), slot=slot)
    assert (slot.dead_sequences, reached(slot, "enrich/out@1")) == ({"enrich@1": 2}, 10)


def test_readers_are_told_that_something_waits_and_no_letters() -> None:
    slot, _ = applied(
        CHAIN, died(letter(20), sequence=3), died(letter(1, topic_id="A"), stage="load")
    )
    told = for_readers(slot)
    assert [(each.sequence, each.letters) for each in told.dead_waiting] == [(3, ())]
    assert told.dead_unplaced == ()
    assert slot_from_json(slot_to_json(slot)) == slot
