"""What of the root inputs is lost, once stages have set records aside."""

from dataclasses import replace

import pytest

from builders import make_definition, make_input, make_sink, make_stage
from unit.token_tracker.chains import (
    CHAIN,
    EMPTY,
    LONG,
    apply,
    enriched,
    inner,
    loaded,
    loading,
    lost,
    reached,
    root,
    without,
    writing,
    wrote,
)
from waybill_shared.contract.vectors import ENDLESS

BATCHES = [enriched(11 + n, 1 + 2 * n, sequence=n) for n in range(9)]
"""A row from each record; behind it stands the marker."""
LATE = make_stage(
    "load",
    inputs=(make_input("A", topic_id="A", bases=(5,), root=False),),
    sinks=(replace(make_sink("lake"), since=2),),
)
WITH_READER = make_definition(*CHAIN.stages[:1], LATE)
"""A reader that came when its topic had lost what stood below 5."""


def test_what_is_set_aside_of_a_root_is_lost_in_every_sink_behind_it() -> None:
    slot = apply(CHAIN, enriched(12, 3), without(enriched(20, 3, sequence=1), [("R", 12, 20)]))
    expected = {"retention_passed": [("R", 12, 20)]}
    assert lost(slot, "enrich/out@1") == expected
    assert lost(slot) == expected, "it never comes there, though the lake has not come so far"
    slot = apply(loaded(3), slot=slot)
    assert reached(slot) == {("R", 0): 20}
    assert lost(slot) == expected


def test_what_is_set_aside_between_stages_is_lost_with_the_batches_that_wrote_it() -> None:
    hops = [enriched(12, 3), enriched(15, 6, sequence=1), enriched(19, 9, sequence=2)]
    slot = apply(CHAIN, *hops, without(loaded(9), [("A", 4, 5)]))
    assert lost(slot) == {"retention_passed": [("R", 12, 15)]}
    assert lost(slot, "enrich/out@1") == {}


def test_hop_that_comes_after_the_reader_is_asked_too() -> None:
    slot = apply(CHAIN, without(loaded(6), [("A", 3, 6)]))
    slot = apply(enriched(15, 3), slot=slot)
    assert (reached(slot), lost(slot)) == ({("R", 0): 15}, {})
    slot = apply(enriched(19, 6, sequence=1), slot=slot)
    assert (reached(slot), lost(slot)) == ({("R", 0): 19}, {"retention_passed": [("R", 15, 19)]})


def test_hops_of_two_stages_may_both_come_after_the_reader() -> None:
    """The upper hop comes when the lower one was passed long ago."""
    facts = [
        without(loaded({("B", 0): 6}), [("B", 3, 6)]),
        wrote("join", {("A", 0): 5}, {("B", 0): 3}),
        wrote("join", {("A", 0): 9}, {("B", 0): 6}, sequence=1),
        enriched(15, 5),
        enriched(19, 9, sequence=1),
    ]
    assert lost(apply(LONG, *facts)) == {"retention_passed": [("R", 15, 19)]}


def test_facts_before_their_definition_count_when_it_comes() -> None:
    early = apply(enriched(15, 3), enriched(19, 6, sequence=1))
    early = apply(without(loaded(6), [("A", 3, 6)]), slot=early)
    slot = apply(CHAIN, slot=early)
    assert (reached(slot), lost(slot)) == ({("R", 0): 19}, {"retention_passed": [("R", 15, 19)]})


def test_hop_that_is_lost_makes_its_neighbour_lost() -> None:
    """Of the two batches nobody can tell which rows were whose."""
    slot = apply(CHAIN, enriched(12, 3), enriched(19, 9, sequence=2))
    slot = apply(without(loaded(9), [("A", 4, 5)]), slot=slot)
    assert lost(slot) == {"retention_passed": [("R", 12, 19)]}


REPORTS_LOST = [0, 1, 2]
"""So many batches between the two were never heard of."""


@pytest.mark.parametrize("between", REPORTS_LOST)
def test_marker_between_two_batches_is_no_row_of_the_second(between: int) -> None:
    slot = apply(CHAIN, enriched(12, 3), enriched(15, 9, sequence=1 + between))
    slot = apply(without(loaded(4), [("A", 3, 4)]), slot=slot)
    assert lost(slot) == {}
    slot = apply(without(loaded(5), [("A", 3, 5)]), slot=slot)
    assert lost(slot) == {"retention_passed": [("R", 12, 15)]}


@pytest.mark.parametrize("between", REPORTS_LOST)
@pytest.mark.parametrize("removed", [("A", 3, 5), ("A", 6, 8)])
def test_what_others_wrote_between_batches_is_no_row_of_theirs(
    between: int, removed: tuple[str, int, int]
) -> None:
    gaps = [("A", 4, 5), ("A", 6, 8)]
    behind = wrote("enrich", {("R", 0): 15}, {("A", 0): 9}, sequence=1 + between, gaps=gaps)
    slot = apply(CHAIN, enriched(12, 3), behind)
    assert lost(apply(without(loaded(8), [removed]), slot=slot)) == {}
    more = ("A", removed[1], removed[2] + 1)
    slot = apply(without(loaded(9), [more]), slot=slot)
    assert lost(slot) == {"retention_passed": [("R", 12, 15)]}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_gaps_are_those_of_the_batch_before_which_they_stand(order: tuple[int, ...]) -> None:
    gaps = [("A", 4, 5), ("A", 8, 9)]
    batches = [
        wrote("enrich", {("R", 0): 12 + n}, {("A", 0): 3 + 4 * n}, sequence=n, gaps=gaps[:n])
        for n in range(3)
    ]
    slot = apply(CHAIN, *(batches[n] for n in order))
    hops = slot.sinks["enrich/out@1"].hops
    assert [[(gap.start, gap.end) for gap in hop.gaps] for hop in hops] == [[], [(4, 5)], [(8, 9)]]


def test_batches_that_wrote_nothing_are_not_lost_with_the_one_before_them() -> None:
    hops = [enriched(12, 3), *(enriched(13 + n, 6, sequence=1 + n) for n in range(5))]
    slot = apply(CHAIN, *hops)
    assert [hop.inputs["R", 0] for hop in slot.sinks["enrich/out@1"].hops] == [12, 13, 17]
    slot = apply(without(loaded(6), [("A", 3, 6)]), slot=slot)
    assert (reached(slot), lost(slot)) == ({("R", 0): 17}, {"retention_passed": [("R", 12, 13)]})


GONE = replace(
    CHAIN, stages=(writing("enrich", "A2", root()), loading(inner("A2", retired=("A",))))
)


def test_hops_behind_a_topic_that_is_gone_count_once_the_new_one_is_covered() -> None:
    slot = apply(CHAIN, enriched(12, 3), enriched(15, 7, sequence=1), loaded(3))
    closed = without(loaded(ENDLESS, sequence=1), [("A", 3, ENDLESS)], reason="topic_recreated")
    slot = apply(GONE, closed, slot=slot, generation=2)
    assert reached(slot) == {("R", 0): 15}
    later = [wrote("enrich", {("R", 0): 16 + n}, {("A", 0): 7, ("A", 1): 2, ("A2", 0): 3 + n},
                   sequence=2 + n) for n in range(2)]  # fmt: skip
    slot = apply(*later, slot=slot)
    assert reached(slot) == {("R", 0): 15}
    slot = apply(loaded({("A", 0): ENDLESS, ("A2", 0): 4}, sequence=2), slot=slot)
    assert reached(slot) == {("R", 0): 17}


def test_rows_in_a_topic_that_is_gone_are_lost_and_those_after_them_are_not() -> None:
    slot = apply(CHAIN, enriched(12, 3), enriched(15, 7, sequence=1))
    closed = without(
        loaded({("A", 0): ENDLESS, ("A2", 0): 3}), [("A", 3, ENDLESS)], reason="topic_deleted"
    )
    later = wrote("enrich", {("R", 0): 18}, {("A", 0): 7, ("A2", 0): 3}, sequence=2)
    slot = apply(GONE, later, closed, slot=slot, generation=2)
    assert reached(slot) == {("R", 0): 18}
    assert lost(slot) == {"topic_deleted": [("R", 12, 15)]}


RECREATED = replace(
    CHAIN, stages=(writing("enrich", "A", root("R2", retired=("R",), base=0)), loading(inner("A")))
)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_what_stands_before_the_first_batch_of_a_new_root_is_no_row_of_it(
    order: tuple[int, ...],
) -> None:
    """The fence was moved to where the stage begins there, which is no batch."""
    moves = [
        wrote("enrich", {("R", 0): ENDLESS}, {("A", 0): 3}, sequence=1),
        wrote("enrich", {("R", 0): ENDLESS, ("R2", 0): 0}, {("A", 0): 3}, sequence=2),
        wrote("enrich", {("R", 0): ENDLESS, ("R2", 0): 2}, {("A", 0): 7}, sequence=3,
              gaps=[("A", 4, 5)]),
    ]  # fmt: skip
    closed = [without(m, [("R", 12, ENDLESS)], reason="topic_recreated") for m in moves]
    slot = apply(CHAIN, enriched(12, 3))
    slot = apply(RECREATED, *(closed[n] for n in order), slot=slot, generation=2)
    slot = apply(without(loaded(5), [("A", 3, 5)]), slot=slot, generation=2)
    assert lost(slot) == {"topic_recreated": [("R", 12, ENDLESS)]}


def test_old_and_new_incarnation_of_a_root_are_both_followed() -> None:
    slot = apply(CHAIN, enriched(12, 3), loaded(3))
    closed = without(
        wrote("enrich", {("R", 0): ENDLESS, ("R2", 0): 4}, {("A", 0): 5}, sequence=1),
        [("R", 12, ENDLESS)],
        reason="topic_recreated",
    )
    slot = apply(RECREATED, closed, slot=slot, generation=2)
    assert reached(slot) == {("R", 0): 12, ("R2", 0): 0}
    assert lost(slot) == {"topic_recreated": [("R", 12, ENDLESS)]}
    slot = apply(loaded(5, sequence=1), slot=slot)
    assert reached(slot) == {("R", 0): ENDLESS, ("R2", 0): 4}


@pytest.mark.parametrize("in_order", [True, False])
def test_where_stages_began_in_retired_topics_is_remembered(*, in_order: bool) -> None:
    order = [(CHAIN, 1), (RECREATED, 2)] if in_order else [(RECREATED, 2), (CHAIN, 1)]
    slot = EMPTY
    for definition, generation in order:
        slot = apply(definition, slot=slot, generation=generation)
    assert slot.former == {"enrich@1": {("R", 0): 10}}


def test_definitions_in_any_order_reach_as_far_in_retired_topics() -> None:
    swapped = apply(CHAIN, slot=apply(RECREATED, generation=2), generation=1)
    in_order = apply(RECREATED, slot=apply(CHAIN), generation=2)
    assert reached(swapped) == reached(in_order) == {("R", 0): 10, ("R2", 0): 0}


def test_stage_that_began_in_a_topic_nobody_knows_where_holds_the_others_back() -> None:
    """The definition with the old topic was never seen, and one side has said nothing of it."""
    anew = root("R2", retired=("R",), base=0)
    sides = [writing("left", "A", anew), writing("right", "B", anew)]
    left = wrote("left", {("R", 0): 15}, {("A", 0): 3})
    taken = loaded(3)
    slot = apply(make_definition(*sides, loading(inner("A"), inner("B"))), left, taken)
    assert ("R", 0) not in reached(slot)


def test_older_commit_takes_back_nothing_that_is_set_aside() -> None:
    newer = without(enriched(20, 3, sequence=1), [("R", 12, 20)])
    early = apply(newer, enriched(12, 3))
    assert lost(apply(CHAIN, slot=early)) == {"retention_passed": [("R", 12, 20)]}


def test_partition_that_another_stage_knows_is_lost_with_its_topic() -> None:
    definition = make_definition(writing("enrich", "A", root()), loading(root()))
    taken = wrote("enrich", {("R", 0): 12, ("R", 1): 5}, {})
    closed = without(loaded({("R", 0): ENDLESS}), [("R", 10, ENDLESS)])
    for facts in ((taken, closed), (closed, taken)):
        found = apply(definition, *facts).sinks["load/lake@1"].lost["retention_passed"]
        assert [(span.partition, span.start) for span in found] == [(0, 10), (1, 0)]


def test_side_that_is_ahead_is_not_asked_about_old_losses_again() -> None:
    sides = [writing("left", "A", root()), writing("right", "B", root())]
    definition = make_definition(*sides, loading(inner("A"), inner("B")))
    left = [wrote("left", {("R", 0): 11 + n}, {("A", 0): 1 + n}, sequence=n) for n in range(9)]
    taken = without(loaded(9), [("A", 0, 1)])
    right = wrote("right", {("R", 0): 11}, {})
    slot = apply(definition, *left, taken, right)
    assert reached(slot) == {("R", 0): 11}
    assert lost(slot) == {"retention_passed": [("R", 10, 11)]}


def test_what_has_been_reached_stays_so_when_another_way_comes_to_it() -> None:
    slot = apply(CHAIN, enriched(15, 3), loaded(3))
    other = writing("other", "B", root())
    wider = make_definition(other, *CHAIN.stages[:1], loading(inner("A"), inner("B")))
    gap = without(wrote("other", {("R", 0): 19}, {}), [("R", 10, 19)])
    slot = apply(wider, gap, slot=slot, generation=2)
    assert lost(slot, "other/out@1") == {"retention_passed": [("R", 10, 19)]}
    assert lost(slot) == {"retention_passed": [("R", 15, 19)]}


def test_first_reason_stays() -> None:
    first = without(enriched(ENDLESS, 3), [("R", 12, ENDLESS)], reason="topic_deleted")
    second = without(loaded({("R", 0): ENDLESS}), [("R", 10, ENDLESS)], reason="topic_recreated")
    definition = make_definition(writing("enrich", "A", root()), loading(inner("A"), root()))
    assert lost(apply(definition, first, second)) == {
        "topic_deleted": [("R", 12, ENDLESS)],
        "topic_recreated": [("R", 10, 12)],
    }


def test_reader_that_comes_later_lacks_what_its_topic_had_lost_and_no_more() -> None:
    slot = apply(make_definition(*CHAIN.stages[:1]), *BATCHES)
    slot = apply(WITH_READER, slot=slot, generation=2)
    slot = apply(loaded(17, since=2), slot=slot, generation=2)
    assert reached(slot, "load/lake@2") == {("R", 0): 19}
    assert lost(slot, "load/lake@2") == {"before_start": [("R", 10, 13)]}


def test_reader_that_comes_later_loses_what_retention_takes_and_no_more() -> None:
    slot = apply(CHAIN, *BATCHES, loaded(17))
    slot = apply(WITH_READER, slot=slot, generation=2)
    removed = without(loaded(17, since=2), [("A", 9, 12)])
    assert lost(apply(removed, slot=slot, generation=2), "load/lake@2") == {
        "before_start": [("R", 10, 13)],
        "retention_passed": [("R", 15, 16)],
    }


def test_what_a_sink_held_and_lost_with_its_topic_is_not_lost_to_who_has_read_it() -> None:
    slot = apply(CHAIN, enriched(12, 3), loaded(2))
    went = without(enriched(12, 3, sequence=1), [("R", 10, 12)], reason="sink_topic_recreated")
    slot = apply(went, slot=slot)
    assert lost(slot, "enrich/out@1") == {}, "of that it has told before, and told it is"
    slot = apply(CHAIN, went, loaded(2))
    assert lost(slot, "enrich/out@1") == {"sink_topic_recreated": [("R", 10, 12)]}
    assert lost(slot) == {}
    closed = without(loaded(ENDLESS, sequence=1), [("A", 2, ENDLESS)])
    assert lost(apply(closed, slot=slot)) == {"retention_passed": [("R", 10, 12)]}


def test_what_went_with_a_topic_hides_nothing_that_never_came_there() -> None:
    joined = wrote("join", {("A", 0): 2}, {("B", 0): 2})
    went = without(joined, [("A", 0, 2)], reason="sink_topic_recreated")
    slot = apply(LONG, enriched(12, 3), went)
    assert lost(slot) == {}
    removed = without(wrote("join", {("A", 0): 3}, {("B", 0): 2}, sequence=1), [("A", 2, 3)])
    assert lost(apply(removed, slot=slot)) == {"retention_passed": [("R", 10, 12)]}
