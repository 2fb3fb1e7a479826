"""How far replays are: `waybill.replays` is a root of every stage, and of each another one."""

from dataclasses import replace

from builders import make_definition, make_range, make_sink, make_stage
from unit.token_tracker.chains import CHAIN, ENRICH, LONG, apply, enriched, inner, loaded, wrote
from unit.token_tracker.dead_facts import applied, died, letter, past, places
from waybill_shared.contract.dead_letter_facts import DeadLetter
from waybill_shared.contract.events import Commit, SetAside
from waybill_shared.contract.replays import ReplayPosition
from waybill_shared.contract.slots import DeadSource, Slot
from waybill_shared.contract.vectors import ENDLESS

P = ("P", 3)
"""The partition of the pipeline in `waybill.replays`."""
OUT, LAKE = "enrich/out@1", "load/lake@1"
AT_ENRICH, AT_LOAD = "P/enrich@1", "P/load@1"


def past_replays(commit: Commit, end: int) -> Commit:
    return replace(commit, replayed={P: end})


def reached(slot: Slot, key: str = LAKE, *, of: str = AT_ENRICH) -> int:
    return slot.sinks[key].reached.get((of, 3), 0)


def test_a_stage_that_reads_roots_is_as_far_as_it_says() -> None:
    slot = apply(CHAIN, past_replays(enriched(20, 5), 7))
    assert reached(slot, OUT) == 7
    assert slot.sinks[OUT].reached[("R", 0)] == 20


def test_a_letter_of_an_earlier_stage_arrives_with_the_rows_that_it_gave() -> None:
    """It gave what is in A from 5 to 8. The sink of the second stage passes its own replays."""
    facts = [enriched(20, 5), past_replays(enriched(20, 8, sequence=1), 7)]
    slot = apply(CHAIN, *facts, past_replays(loaded(5), 9))
    assert reached(slot) == 0
    assert reached(apply(past_replays(loaded(8, sequence=1), 9), slot=slot)) == 7


def test_a_letter_of_the_last_stage_waits_for_that_one() -> None:
    slot = apply(CHAIN, past_replays(enriched(20, 5), 9), past_replays(loaded(5), 6))
    assert reached(slot, of=AT_LOAD) == 6
    later = apply(past_replays(loaded(5, sequence=1), 7), slot=slot)
    assert reached(later, of=AT_LOAD) == 7


def test_it_does_not_wait_for_the_stage_before() -> None:
    """One that is stopped passes no replays. Letters that enter there do wait for it."""
    for before, end in ((enriched(20, 5), 0), (past_replays(enriched(20, 5), 3), 3)):
        slot = apply(CHAIN, before, past_replays(loaded(5), 9))
        assert reached(slot, of=AT_LOAD) == 9
        assert reached(slot) == end


def test_what_comes_after_waits_for_it_and_for_none_before() -> None:
    middle = past_replays(wrote("join", {("A", 0): 5}, {("B", 0): 4}), 7)
    last = past_replays(loaded({("B", 0): 4}), 9)
    slot = apply(LONG, enriched(20, 5), middle, last)
    assert reached(slot, of="P/join@1") == 7
    assert reached(slot, of=AT_LOAD) == 9
    assert reached(slot) == 0


def test_passing_alone_needs_no_hop_and_no_new_fence() -> None:
    slot = apply(CHAIN, enriched(20, 5), past_replays(loaded(5), 9))
    hops = len(slot.sinks[OUT].hops)
    slot = apply(past_replays(enriched(20, 5), 9), slot=slot)
    assert reached(slot) == 9
    assert len(slot.sinks[OUT].hops) == hops


def test_a_driver_that_starts_takes_nothing_back() -> None:
    """It does not know yet that no more letters name the sink."""
    slot = apply(CHAIN, past_replays(enriched(20, 5), 9))
    later = apply(past_replays(enriched(30, 8, sequence=1), 4), slot=slot)
    assert reached(later, OUT) == 9
    assert reached(apply(past_replays(loaded(8), 9), slot=later)) == 9


def test_facts_may_come_in_any_order() -> None:
    facts = [
        past_replays(enriched(20, 5), 2),
        past_replays(enriched(20, 8, sequence=1), 7),
        past_replays(enriched(30, 9, sequence=2), 8),
        past_replays(loaded(8), 9),
    ]
    for order in ([3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]):
        slot = apply(CHAIN, *(facts[at] for at in order))
        assert reached(slot) == 7, order
        assert reached(slot, OUT) == 8


def test_a_stage_after_two_waits_for_each_alone() -> None:
    other = replace(ENRICH, name="other", sinks=(make_sink("out", topic_id="B"),))
    both = make_definition(ENRICH, other, make_stage("load", inputs=(inner("A"), inner("B"))))
    facts = [
        past_replays(enriched(20, 5), 7),
        past_replays(replace(enriched(20, None), stage="other"), 4),
    ]
    slot = apply(both, *facts, past_replays(loaded({("A", 0): 5, ("B", 0): 0}), 9))
    assert [reached(slot, of=f"P/{name}@1") for name in ("enrich", "other", "load")] == [7, 4, 9]


def dead_in_replay(offset: int, at: int, sink: str | None = None) -> DeadLetter:
    position = ReplayPosition(topic_id="P", partition=3, offset=at)
    return replace(letter(offset, sink=sink), replayed=position)


def test_who_dies_again_is_dead_at_its_message() -> None:
    facts = died(dead_in_replay(12, 6), stage="enrich")
    slot, found = applied(CHAIN, enriched(20, 5), facts)
    assert places(found) == [(AT_ENRICH, 6, 7, 1, True)]
    assert found[0].source == DeadSource(topic="orders.in", topic_id="R", partition=0, offset=12)
    assert slot.dead_sequences == {"enrich@1": 1}
    assert reached(apply(past_replays(enriched(20, 5, sequence=1), 7), slot=slot), OUT) == 7


def test_no_sink_moves_before_its_dead_letters_are_known() -> None:
    slot, _ = applied(CHAIN, past_replays(past(enriched(20, 5), 1), 7))
    assert reached(slot, OUT) == 0


def test_what_dies_after_a_replay_is_dead_for_its_message() -> None:
    """The rows of the replay are in A from 5 to 8; one of them dies in the second stage."""
    facts = [past_replays(enriched(20, 5), 4), past_replays(enriched(20, 8, sequence=1), 7)]
    _, found = applied(CHAIN, *facts, died(letter(6, topic_id="A"), stage="load"))
    assert places(found) == [(AT_ENRICH, 4, 7, 1, False)]


def test_what_was_set_aside_has_no_part_in_it() -> None:
    run = replace(make_range(6, ENDLESS, topic_id="P"), partition=3)
    aside = (SetAside(reason="topic_recreated", ranges=(run,)),)
    over = replace(past_replays(enriched(20, 8, sequence=1), ENDLESS), set_aside=aside)
    facts = [past_replays(enriched(20, 5), 4), over]
    _, found = applied(CHAIN, *facts, died(letter(6, topic_id="A"), stage="load"))
    assert places(found) == [(AT_ENRICH, 4, 6, 1, False)]


def test_a_letter_that_is_gone_is_lost_for_its_token() -> None:
    run = replace(make_range(6, 7, topic_id="P"), partition=3)
    aside = SetAside(reason="retention_passed", ranges=(run,))
    slot = apply(CHAIN, replace(past_replays(enriched(20, 5), 7), set_aside=(aside,)))
    (span,) = slot.sinks[OUT].lost["retention_passed"]
    assert (span.topic_id, span.partition, span.start, span.end) == (AT_ENRICH, 3, 6, 7)
    (later,) = slot.sinks[LAKE].lost["retention_passed"] if LAKE in slot.sinks else (span,)
    assert later == span


def test_what_is_lost_after_a_replay_is_lost_for_its_message() -> None:
    """Retention removed A from 6 to 8 before the second stage read it."""
    facts = [past_replays(enriched(20, 5), 4), past_replays(enriched(20, 8, sequence=1), 7)]
    aside = SetAside(reason="retention_passed", ranges=(make_range(6, 8, topic_id="A"),))
    slot = apply(CHAIN, *facts, replace(past_replays(loaded(8), 9), set_aside=(aside,)))
    found = {(s.topic_id, s.start, s.end) for s in slot.sinks[LAKE].lost["retention_passed"]}
    assert (AT_ENRICH, 4, 7) in found


def test_a_commit_at_0_says_nothing_of_replays() -> None:
    slot = apply(CHAIN, past_replays(enriched(20, 5), 0))
    assert slot.sinks[OUT].replayed == {}
    assert slot.sinks[OUT].reached == {("R", 0): 20}


def test_what_is_left_of_an_earlier_topic_is_lost() -> None:
    run = replace(make_range(7, ENDLESS, topic_id="P"), partition=3)
    aside = SetAside(reason="topic_recreated", ranges=(run,))
    over = replace(past_replays(enriched(20, 5, sequence=1), ENDLESS), set_aside=(aside,))
    slot = apply(CHAIN, past_replays(enriched(20, 5), 7), over)
    for key in (OUT, LAKE) if LAKE in slot.sinks else (OUT,):
        (span,) = slot.sinks[key].lost["topic_recreated"]
        assert (span.topic_id, span.start, span.end) == (AT_ENRICH, 7, ENDLESS)
    slot = apply(replace(over, replayed={**over.replayed, ("P2", 3): 4}), slot=slot)
    assert slot.sinks[OUT].reached[("P2/enrich@1", 3)] == 4
