"""What is told of dead records, against the data itself, in any order of facts."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import patiently
from unit.token_tracker.dying import Dying, tells
from unit.token_tracker.flow import BASES, ROOTS, SHAPES, StageShape
from unit.token_tracker.flow_events import takes
from unit.token_tracker.test_reached_properties import EMPTY, state_of, where
from waybill_shared.contract.events import Fact
from waybill_shared.contract.slots import DeadEntry, Slot
from waybill_token_tracker.core import hops
from waybill_token_tracker.core.facts import apply_fact

ALL = SHAPES | {
    "a root beside a topic between stages": (
        StageShape("enrich", ("R",), ("A",)),
        StageShape("join", ("A", "S"), ("B",)),
        StageShape("load", ("B",)),
    ),
    "diamond and one more": (
        StageShape("left", ("R",), ("A",)),
        StageShape("right", ("R",), ("B",)),
        StageShape("join", ("A", "B"), ("C",)),
        StageShape("load", ("C",)),
    ),
}
ONE_WRITER = sorted({*ALL} - {"two writers of one topic"})

DYING = takes(3, dead=st.frozensets(st.integers(0, 5), max_size=3))


@st.composite
def dying(draw: st.DrawFn, shapes: Iterable[str] = ALL) -> Dying:
    flow = Dying(ALL[draw(st.sampled_from(sorted(shapes)))])
    for take in draw(st.lists(DYING, min_size=1, max_size=12)):
        flow.run(take)
    return flow


class Told:
    """A slot, and every entry that came of its facts."""

    def __init__(self) -> None:
        self.slot: Slot = EMPTY
        self.entries: list[DeadEntry] = []

    def hear(self, fact: Fact) -> None:
        """What was complete stays so."""
        complete = state_of(self.slot).reached
        applied = apply_fact(self.slot, fact)
        for entry in applied.dead:
            assert entry.start >= complete.get((entry.topic_id, entry.partition), 0)
        self.slot = applied.slot
        self.entries += applied.dead

    def assert_nobody_is_called_complete_who_died(self, flow: Dying) -> None:
        for (topic_id, partition), end in state_of(self.slot).reached.items():
            for offset in range(BASES[partition], end):
                root = (topic_id, partition, offset)
                for stage, row in flow.dead_below(root):
                    found = [entry for entry in self.entries if tells(entry, stage, root)]
                    assert any(entry.exact for entry in found) if row == root else found, root

    def numbers(self) -> dict[str, int]:
        """By id: how many records an entry, or one to be, stands for."""
        waiting = [unplaced.entry for unplaced in self.slot.dead_unplaced]
        return {entry.id: entry.up_to for entry in (*self.entries, *waiting)}


def told(facts: Iterable[Fact]) -> Told:
    found = Told()
    for fact in facts:
        found.hear(fact)
    return found


@patiently
@given(dying())
def test_whose_record_died_is_never_complete_without_a_word(flow: Dying) -> None:
    found = Told()
    for fact in flow.facts:
        found.hear(fact)
        found.assert_nobody_is_called_complete_who_died(flow)


@patiently
@given(dying(), st.data())
def test_facts_in_any_order_and_repeated_tell_the_same(flow: Dying, data: st.DataObject) -> None:
    again = data.draw(st.lists(st.sampled_from(flow.facts)))
    found, wanted = Told(), told(flow.facts)
    for fact in data.draw(st.permutations(flow.facts + again)):
        found.hear(fact)
        found.assert_nobody_is_called_complete_who_died(flow)
    assert where(found.slot) == where(wanted.slot)
    assert found.slot.dead_sequences == wanted.slot.dead_sequences
    assert found.slot.dead_waiting == wanted.slot.dead_waiting == ()
    assert exact(found) == exact(wanted)
    assert sum(found.numbers().values()) == sum(wanted.numbers().values()) == len(flow.dead)


@patiently
@given(dying(ONE_WRITER))
def test_in_the_order_of_the_log_the_batch_is_the_unit(flow: Dying) -> None:
    """No record is told but those that were in a batch with one that it came of."""
    found = told(flow.facts)
    assert found.slot.dead_unplaced == ()
    for stage, row in flow.dead:
        mine = {root for root in flow.roots() if any(tells(e, stage, root) for e in found.entries)}
        assert flow.beside(row) <= mine
    for entry in found.entries:
        beside = [flow.beside(row) for stage, row in flow.dead if entry.stage == f"{stage}@1"]
        roots = {root for root in flow.roots() if tells(entry, entry.stage[:-2], root)}
        assert any(roots <= each for each in beside)


@patiently
@given(dying(), st.data())
def test_who_did_not_hear_of_the_dead_calls_nobody_complete(
    flow: Dying, data: st.DataObject
) -> None:
    """Whatever else is lost, too."""
    thinned = [fact for fact in flow.facts if data.draw(st.booleans())]
    told(thinned).assert_nobody_is_called_complete_who_died(flow)


@patiently
@given(dying(), st.data())
def test_few_hops_forget_nobody(flow: Dying, data: st.DataObject) -> None:
    found = Told()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hops, "HOP_OFFSETS_MAX", 0)
        patch.setattr(hops, "PASSED_OFFSETS_MAX", 0)
        for fact in data.draw(st.permutations(flow.facts)):
            found.hear(fact)
            found.assert_nobody_is_called_complete_who_died(flow)
    most = hops.HOPS_MIN + 1  # ahead of readers, and the last one that all are past
    assert all(len(state.hops) <= most for state in found.slot.sinks.values())


@patiently
@given(dying())
def test_the_slot_counts_every_entry_of_a_partition(flow: Dying) -> None:
    found = told(flow.facts)
    for count in found.slot.dead:
        mine = [
            e
            for e in found.entries
            if (e.topic_id, e.partition) == (count.topic_id, count.partition)
        ]
        assert count.entries == len(mine) == len({*mine})
        assert count.longest == max(entry.end - entry.start for entry in mine)
    assert sum(count.entries for count in found.slot.dead) == len(found.entries)
    assert all(count.topic_id in ROOTS for count in found.slot.dead)


def exact(found: Told) -> set[DeadEntry]:
    return {entry for entry in found.entries if entry.exact}
