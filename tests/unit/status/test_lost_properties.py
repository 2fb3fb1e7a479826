"""What tokens are told while stages set records aside: the rules of the tracker and of the judge
together, against the data itself."""

from collections.abc import Iterable
from functools import reduce
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from builders import TENANT, UID
from strategies import patiently
from unit.token_tracker.flow import LAKE, ROOT_END, SHAPES, Flow, Place
from unit.token_tracker.flow_events import COUNTS, recreations, skips, takes
from waybill_shared.contract.events import Commit, Fact
from waybill_shared.contract.slots import SinkState, Slot, slot_from_json, slot_to_json
from waybill_shared.contract.tokens import Part
from waybill_shared.contract.vectors import Span
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.judgements import FINAL, Judgement
from waybill_status.core.outcomes.views import SlotStamp, View, make_reading, view_of
from waybill_token_tracker.core.facts import apply_fact

EMPTY = Slot(tenant=TENANT, pipeline_uid=UID)
NOW = 5
ALL = sorted(SHAPES)

ONE_AT_A_TIME = st.integers(0, 3).map(lambda index: (*[0] * index, 1))


@st.composite
def flows(draw: st.DrawFn, counts: st.SearchStrategy[tuple[int, ...]] = COUNTS) -> Flow:
    flow = Flow(SHAPES[draw(st.sampled_from(ALL))])
    taking = takes(2, counts=counts)
    events = st.one_of(taking, taking, taking, skips(2), recreations(3))
    for event in draw(st.lists(events, max_size=16)):
        flow.run(event)
    return flow


def told(view: View, row: Place) -> OutcomeKind:
    """Of a token for one record."""
    topic_id, partition, offset = row
    judgement = judged(view, topic_id, partition, offset, offset + 1)
    for lost in judgement.lost:
        assert (lost.partition, lost.start, lost.end) == (partition, offset, offset + 1)
    return judgement.kind


def judged(view: View, topic_id: str, partition: int, start: int, end: int) -> Judgement:
    span = Span(topic_id=topic_id, partition=partition, start=start, end=end)
    part = Part(pipeline_id="00" * 8, generation=1, spans=(span,))
    claim = Claim(pipeline=(TENANT, UID), name="orders", parts=(part,))
    return judge(claim, view)


def view_on(slot: Slot) -> View:
    stamp = SlotStamp(server_run_id="s", run_id="s", version=1, at=NOW, age_ms=0)
    return view_of(make_reading(stamp, slot))


def told_of_all(slot: Slot, flow: Flow) -> dict[Place, OutcomeKind]:
    view = view_on(slot)
    return {row: told(view, row) for row in flow.roots()}


def apply_all(facts: Iterable[Fact]) -> Slot:
    return reduce(lambda slot, fact: apply_fact(slot, fact).slot, facts, EMPTY)


def assert_honest(flow: Flow, facts: Iterable[Fact]) -> None:
    """After each fact: `complete` only of what has arrived, and nothing final turns back."""
    slot, before = EMPTY, dict.fromkeys(flow.roots(), OutcomeKind.UNKNOWN)
    for fact in facts:
        known, slot = slot, slot_from_json(slot_to_json(apply_fact(slot, fact).slot))
        state = slot.sinks.get(f"load/{LAKE}@1", SinkState())
        if slot.definition == known.definition and state == known.sinks.get(f"load/{LAKE}@1"):
            continue
        lake, after = state.frontier, told_of_all(slot, flow)
        for row, kind in after.items():
            assert kind != OutcomeKind.COMPLETE or flow.arrived(row, lake), row
            assert kind == before[row] or before[row] not in FINAL, row
        before = after


@patiently
@given(flows())
def test_no_token_is_told_a_lie(flow: Flow) -> None:
    assert_honest(flow, flow.facts)


@patiently
@given(flows(), st.randoms())
def test_no_token_is_told_a_lie_whatever_the_order_of_facts(flow: Flow, dice: Random) -> None:
    facts = flow.facts + dice.choices(flow.facts, k=3)
    dice.shuffle(facts)
    assert_honest(flow, facts)


@patiently
@given(flows(), st.randoms())
def test_no_token_is_told_a_lie_when_a_stage_is_heard_late(flow: Flow, dice: Random) -> None:
    """What each stage says comes in its order, but stages come at their own pace."""
    flow.drain(at_once=3)
    by_stage: dict[str, list[Fact]] = {}
    for fact in flow.facts:
        name = fact.body.stage if isinstance(fact.body, Commit) else ""
        by_stage.setdefault(name, []).append(fact)
    order = [name for name, mine in by_stage.items() for _ in mine]
    pace = {name: dice.random() for name in by_stage}
    order.sort(key=lambda name: pace[name] * dice.random())
    assert_honest(flow, [by_stage[name].pop(0) for name in order])


@patiently
@given(flows(), st.randoms())
def test_no_token_is_told_a_lie_when_facts_are_missing(flow: Flow, dice: Random) -> None:
    assert_honest(flow, [fact for fact in flow.facts if dice.random() < 0.7])


@patiently
@given(flows())
def test_every_token_comes_to_an_end(flow: Flow) -> None:
    flow.drain(at_once=ROOT_END)
    for row, kind in told_of_all(apply_all(flow.facts), flow).items():
        assert kind == OutcomeKind.LOST if flow.doomed(row) else kind in FINAL


@patiently
@given(flows(counts=ONE_AT_A_TIME))
def test_what_was_a_batch_of_its_own_is_lost_only_if_it_is(flow: Flow) -> None:
    flow.drain(at_once=1)
    for row, kind in told_of_all(apply_all(flow.facts), flow).items():
        assert kind == (OutcomeKind.LOST if flow.doomed(row) else OutcomeKind.COMPLETE), row


@patiently
@given(flows())
def test_partitions_that_nobody_named_are_lost_with_their_topic(flow: Flow) -> None:
    flow.drain(at_once=ROOT_END)
    view = view_on(apply_all(flow.facts))
    current = {i.topic_id for stage in flow.definition().stages for i in stage.inputs}
    for topic_id, _, _ in flow.roots():
        kind = told(view, (topic_id, 7, 0))
        assert kind == (OutcomeKind.IN_PROGRESS if topic_id in current else OutcomeKind.LOST)


@patiently
@given(flows(), st.sampled_from([0, 1, 7]), st.integers(0, ROOT_END))
def test_what_holds_nothing_ends_with_its_topic(flow: Flow, partition: int, end: int) -> None:
    flow.drain(at_once=ROOT_END)
    view = view_on(apply_all(flow.facts))
    current = {i.topic_id for stage in flow.definition().stages for i in stage.inputs}
    for topic_id in {topic_id for topic_id, _, _ in flow.roots()} - current:
        assert judged(view, topic_id, partition, end, end).kind == OutcomeKind.COMPLETE
