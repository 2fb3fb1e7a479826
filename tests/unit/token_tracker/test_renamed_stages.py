"""Facts of stages and sinks that are called otherwise from some generation on."""

from dataclasses import replace

from builders import make_commit, make_definition, make_fact
from unit.token_tracker.chains import CHAIN, EMPTY, apply, enriched, loaded, reached, wrote
from unit.token_tracker.dead_facts import letter
from waybill_shared.contract.dead_letter_facts import DeadLetters
from waybill_shared.contract.events import Commit
from waybill_shared.contract.slots import Slot
from waybill_token_tracker.core.announcements import id_of
from waybill_token_tracker.core.lag_positions import deleted_stages

ENRICH, LOAD = CHAIN.stages
POND = replace(LOAD.sinks[0], name="pond", was=("lake",))
RENAMED = make_definition(
    replace(ENRICH, name="polish", was=("enrich",)),
    replace(LOAD, name="store", was=("load",), sinks=(POND,)),
)
STORED = make_commit({("A", 0): 6}, stage="store", sink="pond", sequence=1, key="load/lake@1")


def polished(taken: int, written: int, sequence: int) -> Commit:
    commit = wrote("polish", {("R", 0): taken}, {("A", 0): written}, sequence=sequence)
    return replace(commit, key="enrich/out@1")


def test_slot_goes_on_under_other_names() -> None:
    before = apply(CHAIN, enriched(12, 3), loaded(3))
    slot = apply(RENAMED, polished(15, 6, 1), STORED, slot=before, generation=2)
    assert slot.sinks.keys() == before.sinks.keys()
    assert slot.removals == ()
    assert reached(slot) == {("R", 0): 15}


def test_commit_of_before_that_comes_late_counts() -> None:
    slot = apply(RENAMED, slot=apply(CHAIN, enriched(12, 3)), generation=2)
    assert reached(apply(loaded(3), slot=slot)) == {("R", 0): 12}


def test_dead_letters_of_both_names_are_counted_as_of_one_stage() -> None:
    first = DeadLetters(stage="enrich", since=1, sequence=1, letters=(letter(10),))
    second = DeadLetters(stage="polish", since=1, sequence=2, letters=(letter(11),), key="enrich@1")
    slot: Slot = apply(CHAIN, first)
    slot = apply(RENAMED, second, slot=slot, generation=2)
    assert slot.dead_sequences == {"enrich@1": 2}


def test_event_of_a_batch_that_is_reported_again_is_the_same_event() -> None:
    before = make_fact(make_commit(stage="load", sink="lake"))
    again = make_fact(make_commit(stage="store", sink="pond", key="load/lake@1"), generation=2)
    assert id_of(before) == id_of(again)


def test_groups_of_former_names_are_deleted() -> None:
    slot = apply(RENAMED, slot=apply(CHAIN, slot=EMPTY), generation=2)
    assert deleted_stages([slot]) == {("orders", "enrich"), ("orders", "load")}


def test_groups_of_a_former_name_of_the_pipeline_are_deleted() -> None:
    slot = apply(replace(CHAIN, name="sales", was=("orders",)), slot=apply(CHAIN), generation=2)
    assert deleted_stages([slot]) == {("orders", "enrich"), ("orders", "load")}
    again = apply(replace(CHAIN, was=("orders", "sales")), slot=slot, generation=3)
    assert deleted_stages([again]) == {("sales", "enrich"), ("sales", "load")}
