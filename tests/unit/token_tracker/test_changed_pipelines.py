"""Stages that come later or go: what they have no part in, and what is kept of them."""

from dataclasses import replace

from builders import make_commit, make_definition, make_sink, make_stage
from unit.token_tracker.chains import (
    CHAIN,
    apply,
    enriched,
    inner,
    loaded,
    lost,
    reached,
    root,
    without,
    writing,
    wrote,
)
from unit.token_tracker.test_losses import RECREATED
from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.vectors import ENDLESS

ENRICH, LOAD = CHAIN.stages


def late(topic_id: str, *, base: int = 0) -> StageDefinition:
    """A stage of generation 2 that reads what `enrich` wrote before it came."""
    source = inner(topic_id)
    begun = dict.fromkeys(source.bases, base)
    late = replace(source, bases=begun)
    return make_stage("late", since=2, inputs=(late,), sinks=(make_sink(since=2),))


def test_what_was_removed_between_stages_before_a_stage_came_is_before_its_start() -> None:
    slot = apply(CHAIN, enriched(12, 3), enriched(15, 6, sequence=1), enriched(18, 9, sequence=2))
    slot = apply(make_definition(ENRICH, LOAD, late("A", base=5)), slot=slot, generation=2)
    assert lost(slot, "late/lake@2") == {"before_start": [("R", 10, 15)]}
    assert lost(slot) == {}


def test_what_stands_in_a_topic_that_was_gone_before_a_stage_came_is_before_its_start() -> None:
    slot = apply(CHAIN, enriched(12, 3), enriched(15, 7, sequence=1))
    anew = replace(writing("enrich", "A2", root()).sinks[0], retired=("A",))
    definition = make_definition(replace(ENRICH, sinks=(anew,)), late("A2"))
    later = wrote("enrich", {("R", 0): 18}, {("A", 0): 7, ("A2", 0): 3}, sequence=2)
    slot = apply(definition, later, slot=slot, generation=2)
    assert lost(slot, "late/lake@2") == {"before_start": [("R", 10, 15)]}
    taken = make_commit({("A2", 0): 3}, stage="late", since=2)
    assert reached(apply(taken, slot=slot), "late/lake@2") == {("R", 0): 18}


def test_id_that_no_definition_knows_yet_is_never_passed() -> None:
    """Its definition is on its way, and until then nobody knows who reads it."""
    ahead = wrote("enrich", {("R", 0): 18}, {("A", 0): 3, ("A2", 0): 3})
    assert reached(apply(CHAIN, ahead, loaded(3))) == {("R", 0): 10}


def test_stage_that_is_removed_stays_known_with_what_it_reached_and_lost() -> None:
    gap = without(enriched(15, 3), [("R", 12, 15)])
    slot = apply(CHAIN, gap, loaded(3))
    slot = apply(make_definition(ENRICH), slot=slot, generation=2)
    (removal,) = slot.removals
    assert (removal.generation, removal.stages) == (2, (LOAD,))
    assert reached(slot) == {("R", 0): 15}
    assert lost(slot) == {"retention_passed": [("R", 12, 15)]}


def test_removal_is_never_undone_by_a_stage_that_comes_under_its_name() -> None:
    slot = apply(make_definition(ENRICH), slot=apply(CHAIN), generation=2)
    again = replace(LOAD, since=3, sinks=(replace(LOAD.sinks[0], since=3),))
    slot = apply(make_definition(ENRICH, again), slot=slot, generation=3)
    assert [(removal.generation, removal.stages) for removal in slot.removals] == [(2, (LOAD,))]
    assert {"load/lake@1", "load/lake@3"} <= slot.sinks.keys()


def test_what_comes_behind_a_deletion_was_told_too_late() -> None:
    deleted = replace(CHAIN, deleted=True)
    slot = apply(CHAIN, enriched(12, 3), deleted)
    assert apply(enriched(15, 6, sequence=1), loaded(6), slot=slot) == slot


def test_where_a_removed_stage_began_in_a_retired_topic_is_kept() -> None:
    slot = apply(RECREATED, slot=apply(CHAIN), generation=2)
    slot = apply(make_definition(LOAD), slot=slot, generation=3)
    assert slot.former["enrich@1"] == {("R", 0): 10}


def test_old_id_of_a_topic_between_stages_is_no_root() -> None:
    slot = apply(CHAIN, enriched(12, 3))
    anew = replace(ENRICH.sinks[0], topic_id="A2", retired=("A",))
    definition = make_definition(replace(ENRICH, sinks=(anew,)), late("A2"))
    slot = apply(definition, slot=slot, generation=2)
    assert slot.sinks["late/lake@2"].set_aside["before_start"][0].end == ENDLESS
    assert lost(slot, "late/lake@2") == {"before_start": [("R", 10, 12)]}
