"""A part of a token's way may be asked for: it is final by itself, and says nothing of the rest."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from builders import make_sink, make_stage
from unit.status.coroutines import inside
from unit.status.slots import (
    ENRICH,
    INNER,
    KEY,
    burying,
    claim,
    dead,
    losing,
    reading,
    record,
    sealed,
    slot,
    span,
    stages,
    stages_of,
    token,
    view,
    with_stages,
)
from unit.status.watching import Scene, scene, watch
from unit.status.worlds import World, world
from waybill_shared.contract.slots import Slot
from waybill_shared.contract.token_views import WHOLE, TokenView, WantedView
from waybill_shared.contract.vectors import Span
from waybill_shared.contract.words import LossReason, OutcomeKind, TokenLevel, UnknownReason
from waybill_status.core.outcomes.claims import Claim
from waybill_status.core.outcomes.judge import judge
from waybill_status.core.outcomes.judgements import FINAL, Judgement
from waybill_status.core.outcomes.outcome import Outcome

ENDS = st.integers(0, 8)
ACCEPTED = TokenView(level=TokenLevel.ACCEPTED)


def only(*sinks: str) -> TokenView:
    return TokenView(sinks=sinks)


def judged(content: Slot | None, asked: TokenView, *, generation: int = 1) -> Judgement:
    return judge(replace(claim(span(0, 5), generation=generation), asked=asked), view(content))


@pytest.mark.parametrize(
    ("sinks", "kind"),
    [
        (("lake",), OutcomeKind.COMPLETE),
        (("enriched",), OutcomeKind.COMPLETE),
        (("enriched", "lake"), OutcomeKind.COMPLETE),
        (("copy",), OutcomeKind.IN_PROGRESS),
        (("copy", "lake"), OutcomeKind.IN_PROGRESS),
        ((), OutcomeKind.IN_PROGRESS),
    ],
)
def test_only_the_sinks_that_are_named_are_waited_for(
    sinks: tuple[str, ...], kind: OutcomeKind
) -> None:
    content = slot(enriched=(5,), copy=(4,), lake=(5,))
    assert judged(content, only(*sinks)).kind == kind


def test_what_is_on_the_way_is_shown() -> None:
    content = slot(enriched=(5,), copy=(4,), lake=(5,))
    for asked, names in (
        (only("lake"), ["enriched", "copy", "lake"]),
        (only("copy"), ["enriched", "copy"]),
    ):
        shown = judged(content, asked).stages
        assert [sink.name for stage in shown for sink in stage.sinks] == names


@pytest.mark.parametrize("level", [TokenLevel.PROCESSED, TokenLevel.VISIBLE])
def test_what_is_processed_can_be_seen(level: TokenLevel) -> None:
    for content in (slot(copy=(5,), lake=(5,)), slot(copy=(4,), lake=(5,))):
        assert judged(content, TokenView(level=level)) == judged(content, WHOLE)


def test_what_is_accepted_is_so_at_once_whatever_is_known() -> None:
    for content in (None, slot(), slot(bases=(3, 0))):
        judgement = judged(content, ACCEPTED)
        assert (judgement.kind, judgement.stages) == (OutcomeKind.COMPLETE, ())


@pytest.mark.parametrize("sinks", [(), ("lake",)])
def test_missing_knowledge_is_unknown_whatever_is_asked(sinks: tuple[str, ...]) -> None:
    assert judged(None, only(*sinks)).kind == OutcomeKind.UNKNOWN
    behind = judged(slot(copy=(9,), lake=(9,)), only(*sinks), generation=2)
    assert behind.reason == UnknownReason.GENERATION_BEHIND


def test_a_sink_that_there_never_was_is_not_waited_for() -> None:
    judgement = judged(slot(copy=(5,), lake=(5,)), only("other"))
    assert judgement.reason == UnknownReason.NOTHING_REQUIRED


def test_who_read_a_topic_that_was_created_anew_since_is_still_on_the_way() -> None:
    enrich, load = stages(0, 0)
    inner, copy = enrich.sinks
    anew = replace(enrich, sinks=(replace(inner, topic_id="anew", retired=(INNER,)), copy))
    removed = with_stages(slot(enriched=(5,), copy=(5,), lake=(4,)), anew, gone={2: (load,)})
    lost = judged(removed, only("lake"))
    assert {each.reason for each in lost.lost} == {LossReason.SINK_REMOVED}


def test_a_loss_counts_where_it_is_on_the_way() -> None:
    """`aside` reads the same input, and began later."""
    enrich, load = stages(0, 0)
    late = stages(3, 0)[0]
    aside = make_stage("aside", inputs=late.inputs, sinks=(make_sink("late", topic_id="l"),))
    content = with_stages(slot(enriched=(5,), copy=(5,), lake=(5,)), enrich, load, aside)
    assert judged(content, only("late")).kind == OutcomeKind.LOST
    assert judged(content, only("lake")).kind == OutcomeKind.COMPLETE
    assert judged(content, only("lake", "late")).kind == OutcomeKind.LOST


def test_a_sink_that_was_removed_is_told_to_be_so() -> None:
    enrich, load = stages(0, 0)
    removed = with_stages(slot(enriched=(5,), copy=(5,), lake=(4,)), enrich, gone={2: (load,)})
    lost = judged(removed, only("lake"))
    assert lost.kind == OutcomeKind.LOST
    assert {each.reason for each in lost.lost} == {LossReason.SINK_REMOVED}
    assert judged(removed, only("copy")).kind == OutcomeKind.COMPLETE
    both = judged(removed, only("copy", "lake"))
    assert both.kind == OutcomeKind.LOST, "whoever names a sink waits for it"


def test_what_is_final_stays_so_through_all_removals() -> None:
    enrich, load = stages(0, 0)
    other = replace(enrich, name="other", sinks=(replace(enrich.sinks[1], name="o", topic_id="o"),))
    content = slot(enriched=(5,), copy=(5,), lake=(5,))
    assert judged(content, only("lake")).kind == OutcomeKind.COMPLETE
    once = with_stages(content, enrich, gone={2: (load,)})
    assert judged(once, only("lake")).kind == OutcomeKind.COMPLETE
    twice = with_stages(content, other, gone={2: (load,), 3: (enrich,)})
    assert judged(twice, only("lake")).kind == OutcomeKind.COMPLETE
    assert judged(twice, only("copy")).kind == OutcomeKind.COMPLETE


def test_what_a_named_sink_lost_stays_lost_when_who_read_it_is_removed() -> None:
    enrich, load = stages(0, 0)
    content = losing(
        slot(enriched=(5,), copy=(5,), lake=(5,)),
        ENRICH,
        LossReason.SINK_TOPIC_RECREATED,
        span(3, 5),
    )
    assert judged(content, only("enriched")).kind == OutcomeKind.LOST
    removed = with_stages(content, enrich, gone={2: (load,)})
    assert judged(removed, only("enriched")).kind == OutcomeKind.LOST


def test_what_died_on_other_ways_is_not_told_also_when_these_are_removed() -> None:
    enrich, load = stages(0, 0)
    content = burying(slot(enriched=(5,), copy=(5,), lake=(5,)), dead(2, stage="load@1"))
    removed = with_stages(content, enrich, gone={2: (load,)})
    for held in (content, removed):
        (asked,) = judged(held, only("copy")).dead_asked
        assert not any(key.startswith("load") for key in asked.limits)
        (asked,) = judged(held, only("lake")).dead_asked
        assert "load@1" in asked.limits


def test_letters_that_are_missing_on_other_ways_are_not_waited_for() -> None:
    known = view(slot(enriched=(5,), copy=(4,), lake=(4,)))
    held = replace(known, dead_missing=frozenset({"load@1"}))
    part = replace(claim(span(0, 5)), asked=only("copy"))
    assert judge(part, held).kind == OutcomeKind.IN_PROGRESS
    lake = replace(part, asked=only("lake"))
    assert judge(lake, held).reason == UnknownReason.DEAD_LETTERS_MISSING


def test_a_name_that_returns_in_another_stage_is_another_sink() -> None:
    enrich, load = stages(0, 0)
    late = stages(3, 0)[0]
    kept = make_sink("kept", topic_id="k")
    aside = make_stage("aside", inputs=late.inputs, sinks=(kept,))
    content = slot(enriched=(5,), copy=(5,), lake=(5,))
    began = with_stages(content, enrich, load, aside)
    assert judged(began, only("copy")).kind == OutcomeKind.COMPLETE
    returned = replace(late.sinks[1], since=2, topic_id="c2")
    moved = with_stages(
        content,
        replace(enrich, sinks=enrich.sinks[:1]),
        load,
        replace(aside, sinks=(kept, returned)),
        gone={2: (replace(enrich, sinks=enrich.sinks[1:]),)},
    )
    assert judged(moved, only("copy")).kind == OutcomeKind.COMPLETE


@given(ENDS, ENDS, ENDS, ENDS, st.sampled_from([("lake",), ("copy",), ("enriched", "copy")]))
def test_what_is_final_stays_so(
    copy: int, lake: int, more_copy: int, more_lake: int, sinks: tuple[str, ...]
) -> None:
    enriched = max(copy, lake)
    before = judged(slot(enriched=(enriched,), copy=(copy,), lake=(lake,)), only(*sinks))
    later = slot(
        enriched=(enriched + more_copy + more_lake,),
        copy=(copy + more_copy,),
        lake=(lake + more_lake,),
    )
    if before.kind in FINAL:
        assert judged(later, only(*sinks)).kind == before.kind


@inside(world)
async def test_each_part_must_wait_for_one_of_the_names_and_each_name_be_waited_for(
    w: World,
) -> None:
    first, second = stages(0, 0)
    pond = replace(second, sinks=(replace(second.sinks[0], name="pond"),))
    w.owners.directory.accept(replace(record("others", "uid-2"), stages=(first, pond)))
    w.store.put(slot(enriched=(5,), copy=(5,), lake=(5,)), version=1)
    content = slot(enriched=(5,), copy=(1,), lake=(4,))
    assert content.definition is not None
    definition = replace(content.definition, name="others", stages=(first, pond))
    w.store.readings[KEY[0], "uid-2"] = reading(replace(content, definition=definition))
    one, two = token(span(0, 5)), token(span(0, 5), uid="uid-2")
    both = replace(one, parts=(*one.parts, *two.parts))
    found = {}
    for sinks in (("lake",), ("lake", "pond"), ("lake", "enriched", "none"), ("enriched",)):
        (outcome,) = await w.tokens.now([both], only(*sinks))
        assert isinstance(outcome, Outcome)
        found[sinks] = outcome.reason or outcome.outcome
    assert found == {
        ("lake",): UnknownReason.NOTHING_REQUIRED,
        ("lake", "pond"): OutcomeKind.IN_PROGRESS,
        ("lake", "enriched", "none"): UnknownReason.NOTHING_REQUIRED,
        ("enriched",): OutcomeKind.COMPLETE,
    }
    assert w.tokens.sinks_of(both) == {"enriched", "copy", "lake", "pond"}


@inside(world)
async def test_nobody_waits_for_sinks_that_the_token_does_not_wait_for(w: World) -> None:
    w.store.put(slot(), version=1)
    outcome = await w.tokens.wait(token(span(0, 5)), 10, only("lak"))
    assert outcome.reason == UnknownReason.NOTHING_REQUIRED
    told = [change async for change in w.tokens.follow(token(span(0, 5)), only("lak"))]
    assert len(told) == 1


def test_a_part_of_an_input_that_does_not_come_there_is_not_left_out() -> None:
    """Two inputs; `lake` is behind the first only."""
    content = slot(enriched=(5,), copy=(5,), lake=(5,))
    root = stages_of(content)[0].inputs[0]
    second = replace(root, name="second", topic="second.in", topic_id="SECOND")
    aside = make_stage("aside", inputs=(second,), sinks=(make_sink("late", topic_id="l"),))
    (part,) = token(span(0, 5), Span(topic_id="SECOND", partition=0, start=0, end=1)).parts
    asked = Claim(pipeline=KEY, name="orders", parts=(part,), asked=only("lake"))
    judgement = judge(asked, view(with_stages(content, *stages_of(content), aside)))
    assert judgement.reason == UnknownReason.NOTHING_REQUIRED


def test_a_view_has_each_name_once_and_not_too_many() -> None:
    read = TypeAdapter(WantedView).validate_python
    assert read({"sinks": ["b", "a", "b"]}).sinks == ("a", "b")
    for wrong in (["a" * 101], [""], [str(number) for number in range(101)]):
        with pytest.raises(ValidationError):
            read({"sinks": wrong})


@inside(world)
async def test_who_asks_for_parts_shares_no_question_with_who_asks_for_all(w: World) -> None:
    w.store.put(slot(enriched=(5,), copy=(4,), lake=(4,)), version=1)
    asked = token(span(0, 5))
    whole = asyncio.create_task(w.tokens.wait(asked, 10))
    part = asyncio.create_task(w.tokens.wait(asked, 10, only("lake")))
    while len(w.hub._questions) < 2:
        await asyncio.sleep(0.005)
    w.store.put(slot(enriched=(5,), copy=(4,), lake=(5,)), version=2)
    assert (await part).outcome == OutcomeKind.COMPLETE
    assert not whole.done()
    w.store.put(slot(enriched=(5,), copy=(5,), lake=(5,)), version=3)
    assert (await whole).outcome == OutcomeKind.COMPLETE


@inside(scene)
async def test_a_watch_is_told_when_its_part_is_final(s: Scene) -> None:
    s.store.put(slot(enriched=(5,), copy=(4,), lake=(4,)), version=1)
    await s.process()
    text = sealed(token(span(0, 5)))
    s.log.write(watch("whole", text), replace(watch("part", text), view=only("lake")))
    s.log.write(replace(watch("accepted", text), view=ACCEPTED))
    assert [each.subject for each in await s.reports(1)] == ["accepted"]
    s.store.put(slot(enriched=(5,), copy=(4,), lake=(5,)), version=2)
    assert [each.subject for each in await s.reports(2)] == ["accepted", "part"]
    s.store.put(slot(enriched=(5,), copy=(5,), lake=(5,)), version=3)
    assert [each.subject for each in await s.reports(3)] == ["accepted", "part", "whole"]
