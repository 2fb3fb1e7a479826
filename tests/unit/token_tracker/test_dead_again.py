"""A record that dies when its stage reads it again: a token that was complete stays so, and none
becomes complete while a sink lacks its row.
"""

from dataclasses import replace

import pytest

from builders import ORDERS_ID, make_commit, make_definition, make_sink, make_stage
from unit.token_tracker.chains import ENRICH, apply, enriched, inner, loaded
from unit.token_tracker.dead_facts import LAKE, applied, died, letter, past, reached
from waybill_shared.contract.dead_letter_facts import DeadLetter, DeadLetters
from waybill_shared.contract.events import Commit
from waybill_shared.contract.slots import DeadEntry, Slot

PLACE = (ORDERS_ID, 0)
BOTH = make_definition(make_stage(sinks=(make_sink("lake"), make_sink("copy"))))


def letters(*offsets: int, sink: str | None = None) -> DeadLetters:
    return DeadLetters(
        stage="enrich",
        since=1,
        sequence=1,
        letters=tuple(
            DeadLetter(
                topic="orders.in",
                topic_id=ORDERS_ID,
                partition=0,
                offset=offset,
                sink=sink,
                reason="malformed",
                rule=None,
                message="",
                dead_topic="orders.in.dlq",
                dead_partition=0,
                dead_offset=0,
            )
            for offset in offsets
        ),
    )


def entries(slot: Slot) -> int:
    return sum(each.entries for each in slot.dead)


def test_a_record_that_every_sink_has_is_no_dead_one_of_a_token() -> None:
    has = [make_commit({PLACE: 9}), make_commit({PLACE: 9}, sink="copy")]
    slot = apply(BOTH, *has, letters(3))
    assert slot.dead_sequences == {"enrich@1": 1}
    assert entries(slot) == 0


def test_it_is_dead_for_the_sink_that_lacks_it() -> None:
    slot = apply(BOTH, make_commit({PLACE: 9}), letters(3))
    assert entries(slot) == 1


def test_what_no_sink_has_is_dead_as_ever() -> None:
    slot = apply(BOTH, make_commit({PLACE: 2}), letters(3, 4))
    assert entries(slot) == 2


def test_a_sink_that_began_later_never_had_it() -> None:
    later = make_definition(
        make_stage(sinks=(make_sink("lake"), replace(make_sink("copy"), bases={PLACE: 5})))
    )
    has = [make_commit({PLACE: 9}), make_commit({PLACE: 9}, sink="copy")]
    assert entries(apply(later, *has, letters(3))) == 1


def load(**sinks: int) -> tuple[Slot, list[DeadEntry]]:
    """Return what is known when the sinks have read A below these offsets. Stage enrich has written
    A below 5 from R below 15, and A below 9 from R below 20.
    """
    stage = make_stage("load", inputs=(inner("A"),), sinks=tuple(map(make_sink, sinks)))
    wrote = (enriched(15, 5), enriched(20, 9, sequence=1))
    has = [replace(loaded(end), sink=sink) for sink, end in sinks.items()]
    return applied(make_definition(ENRICH, stage), *wrote, *has)


def again(sink: str, end: int) -> Commit:
    """Return the commit of a sink that is past the first fact."""
    return past(replace(loaded(end, sequence=1), sink=sink), 1)


def of_sinks(entries: list[DeadEntry]) -> list[tuple[str | None, int, int]]:
    return [(each.sink, each.start, each.end) for each in entries]


@pytest.mark.parametrize("early", [(), (again("lake", 9),)], ids=["in order", "commit first"])
def test_an_inner_record_is_dead_for_the_sink_that_lacks_it(early: tuple[Commit, ...]) -> None:
    """The driver was killed when only sink lake had the last batch, and the stage is rewound."""
    slot, _ = load(lake=9, copy=5)
    slot, dead = applied(*early, died(letter(7, topic_id="A"), stage="load"), slot=slot)
    assert of_sinks(dead) == [("load/copy@1", 15, 20)]
    slot, dead = applied(again("copy", 9), slot=slot)
    assert (reached(slot, "load/copy@1"), dead, entries(slot)) == (20, [], 1)


def test_an_inner_record_that_every_sink_has_is_no_dead_one_of_a_token() -> None:
    slot, _ = load(lake=9, copy=9)
    slot, dead = applied(died(letter(7, topic_id="A"), stage="load"), slot=slot)
    assert (dead, slot.dead_unplaced) == ([], ())


@pytest.mark.parametrize("sink", [None, LAKE])
def test_a_sink_in_the_middle_of_a_hop_has_what_is_below_its_frontier(sink: str | None) -> None:
    slot, _ = load(lake=8)
    slot, dead = applied(died(letter(7, topic_id="A", sink=sink), stage="load"), slot=slot)
    assert (dead, slot.dead_unplaced) == ([], ())
    beyond = letter(8, topic_id="A", sink=sink)
    _, dead = applied(died(beyond, stage="load", sequence=2), slot=slot)
    assert of_sinks(dead) == [(sink, 15, 20)]


def test_of_two_sinks_in_the_middle_of_a_hop_one_has_it() -> None:
    slot, _ = load(lake=8, copy=6)
    _, dead = applied(died(letter(7, topic_id="A"), stage="load"), slot=slot)
    assert of_sinks(dead) == [("load/copy@1", 15, 20)]


def test_a_sink_that_went_past_a_dead_record_does_not_have_it() -> None:
    """Its commit is received first: the frontier does not say whether the record is there."""
    slot, _ = load(lake=5)
    slot, _ = applied(again("lake", 8), slot=slot)
    slot, dead = applied(died(letter(7, topic_id="A"), stage="load"), slot=slot)
    assert of_sinks(dead) == [(None, 15, 20)]


def test_a_sink_that_has_an_inner_record_has_it_before_its_hop_is_known() -> None:
    stage = make_stage("load", inputs=(inner("A"),), sinks=(make_sink("lake"), make_sink("copy")))
    has = (loaded(9), replace(loaded(5), sink="copy"))
    dies = died(letter(7, topic_id="A"), stage="load")
    slot, dead = applied(make_definition(ENRICH, stage), *has, dies, enriched(15, 5))
    assert (dead, [each.entry.sink for each in slot.dead_unplaced]) == ([], ["load/copy@1"])
    slot, dead = applied(enriched(20, 9, sequence=1), slot=slot)
    assert (of_sinks(dead), slot.dead_unplaced) == ([("load/copy@1", 15, 20)], ())
