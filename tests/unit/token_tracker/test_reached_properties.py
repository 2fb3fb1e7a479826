"""How far a root has reached a sink, against the data itself and against a naive calculation."""

from collections.abc import Iterable
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import TENANT, UID, make_fact
from strategies import patiently
from unit.token_tracker.flow import BASES, LAKE, ROOTS, SHAPES, Flow, Take
from unit.token_tracker.flow_events import takes
from waybill_shared.contract.events import Commit, Definition, Fact, StageDefinition
from waybill_shared.contract.slots import SinkState, Slot
from waybill_shared.contract.vectors import Vector, covers, join
from waybill_token_tracker.core import hops
from waybill_token_tracker.core.facts import apply_fact

LAKE_KEY = f"load/{LAKE}@1"
EMPTY = Slot(tenant=TENANT, pipeline_uid=UID)


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    flow = Flow(SHAPES[draw(st.sampled_from(sorted(SHAPES)))])
    for take in draw(st.lists(takes(2), min_size=1, max_size=12)):
        flow.run(take)
    return flow


def apply_all(facts: Iterable[Fact], slot: Slot = EMPTY) -> Slot:
    return reduce(lambda before, fact: apply_fact(before, fact).slot, facts, slot)


def state_of(slot: Slot) -> SinkState:
    return slot.sinks.get(LAKE_KEY, SinkState())


def where(slot: Slot) -> dict[str, tuple[Vector, Vector]]:
    return {k: (s.frontier, s.reached) for k, s in slot.sinks.items()}


def naive_reached(definition: Definition, commits: list[Commit]) -> Vector:
    """From all commits at once: no order, no pruning, nothing kept."""
    load = next(stage for stage in definition.stages if stage.name == "load")
    taken = [c.frontier for c in commits if c.sink == LAKE]
    return naive_roots(definition, commits, load, reduce(join, taken, bases_of(load)))


def naive_roots(
    definition: Definition, commits: list[Commit], stage: StageDefinition, at: Vector
) -> Vector:
    paths: list[Vector] = [
        {place: end for place, end in at.items() if place[0] == source.topic_id}
        for source in stage.inputs
        if source.root
    ]
    for writer in definition.stages:
        for sink in writer.sinks:
            if sink.topic_id in {source.topic_id for source in stage.inputs}:
                passed = [
                    c.frontier
                    for c in commits
                    if (c.stage, c.sink) == (writer.name, sink.name)
                    and all(at.get((o.topic_id, o.partition), 0) >= o.end for o in c.outputs)
                ]
                begun = reduce(join, passed, bases_of(writer))
                paths.append(naive_roots(definition, commits, writer, begun))
    return {
        place: min(path[place] for path in paths if place in path)
        for path in paths
        for place in path
    }


def bases_of(stage: StageDefinition) -> Vector:
    return stage.bases


def assert_sound(flow: Flow, slot: Slot) -> None:
    lake = state_of(slot).frontier
    for (topic, partition), end in state_of(slot).reached.items():
        assert topic in ROOTS
        for offset in range(BASES[partition], end):
            assert flow.arrived((topic, partition, offset), lake)


@patiently
@given(flows())
def test_reached_never_passes_a_record_whose_rows_have_not_arrived(flow: Flow) -> None:
    slot = EMPTY
    for fact in flow.facts:
        slot = apply_fact(slot, fact).slot
        assert_sound(flow, slot)


@patiently
@given(flows(), st.data())
def test_facts_in_any_order_and_repeated_give_one_state(flow: Flow, data: st.DataObject) -> None:
    facts = flow.facts
    shuffled = data.draw(st.permutations(facts + data.draw(st.lists(st.sampled_from(facts)))))
    slot = EMPTY
    for fact in shuffled:
        slot = apply_fact(slot, fact).slot
        assert_sound(flow, slot)
    assert where(slot) == where(apply_all(facts))


@patiently
@given(flows())
def test_reached_is_what_a_naive_calculation_gives(flow: Flow) -> None:
    slot = apply_all(flow.facts)
    assert state_of(slot).reached == naive_reached(flow.definition(), flow.commits)


@patiently
@given(flows(), st.data())
def test_lost_facts_only_make_a_token_wait(flow: Flow, data: st.DataObject) -> None:
    facts = flow.facts
    thinned = [fact for fact in facts if data.draw(st.booleans())]
    slot = apply_all(thinned)
    assert_sound(flow, slot)
    assert covers(state_of(apply_all(facts)).reached, state_of(slot).reached)


@patiently
@given(flows(), st.data())
def test_newest_facts_make_up_for_all_lost_ones(flow: Flow, data: st.DataObject) -> None:
    """What the idle repetition of the last commit relies on, once all stages are through."""
    for _ in flow.stages:
        for number in range(len(flow.stages)):
            flow.run(Take(number, (99,) * 4, ((1, 0), (0, 0), (2, 1))))
    newest = {(c.stage, c.sink): c for c in flow.commits}
    thinned = [c for c in flow.commits if data.draw(st.booleans())]
    slot = apply_all([make_fact(flow.definition()), *map(make_fact, thinned)])
    slot = apply_all(map(make_fact, newest.values()), slot)
    whole = apply_all(flow.facts)
    assert where(slot)[LAKE_KEY] == where(whole)[LAKE_KEY]
    roots = {topic for stage in flow.stages for topic in stage.inputs if topic in ROOTS}
    assert state_of(slot).reached == {(t, p): 8 for t in roots for p in (0, 1)}


@patiently
@given(flows(), st.data())
def test_few_hops_never_make_reached_too_large(flow: Flow, data: st.DataObject) -> None:
    facts = data.draw(st.permutations(flow.facts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hops, "HOP_OFFSETS_MAX", 0)
        patch.setattr(hops, "PASSED_OFFSETS_MAX", 0)
        slot = apply_all(facts)
    assert_sound(flow, slot)
    assert all(len(state.hops) <= hops.HOPS_MIN + 1 for state in slot.sinks.values())
