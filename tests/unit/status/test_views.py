"""A part of a token's way may be asked for: it is final by itself, and says nothing of the rest."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.status.fakes import (
    KEY,
    claim,
    reading,
    record,
    sealed,
    slot,
    span,
    stages,
    token,
    view,
)
from unit.status.test_tokens import World, in_a_world
from unit.status.watching import Scene, run, watch
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.slots import Removal, Slot
from waybill_shared.contract.token_views import WHOLE, TokenView
from waybill_shared.contract.words import LossReason, OutcomeKind, TokenLevel, UnknownReason
from waybill_status.core.judge import judge
from waybill_status.core.judgements import FINAL, Judgement
from waybill_status.core.outcomes import Outcome

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
        (("lake", "none"), OutcomeKind.COMPLETE),
        ((), OutcomeKind.IN_PROGRESS),
    ],
)
def test_only_the_sinks_that_are_named_are_waited_for(
    sinks: tuple[str, ...], kind: OutcomeKind
) -> None:
    content = slot(enriched=(5,), copy=(4,), lake=(5,))
    assert judged(content, only(*sinks)).kind == kind


def test_all_sinks_are_shown_whatever_is_asked() -> None:
    content = slot(enriched=(5,), copy=(4,), lake=(5,))
    names = [sink.name for stage in judged(content, only("lake")).stages for sink in stage.sinks]
    assert names == ["enriched", "copy", "lake"]


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


def test_a_loss_counts_where_it_is_on_the_way() -> None:
    """`aside` reads the same input, and began later."""
    enrich, load = stages(0, 0)
    late = stages(3, 0)[0]
    aside = StageDefinition(
        name="aside",
        since=1,
        inputs=late.inputs,
        sinks=(replace(late.sinks[1], name="late", topic_id="l"),),
    )
    content = slot(enriched=(5,), copy=(5,), lake=(5,))
    assert content.definition is not None
    definition = replace(content.definition, stages=(enrich, load, aside))
    content = replace(content, definition=definition)
    assert judged(content, only("late")).kind == OutcomeKind.LOST
    assert judged(content, only("lake")).kind == OutcomeKind.COMPLETE
    assert judged(content, only("lake", "late")).kind == OutcomeKind.LOST


def test_a_sink_that_was_removed_is_told_to_be_so() -> None:
    enrich, load = stages(0, 0)
    content = slot(enriched=(5,), copy=(5,), lake=(4,), generation=2)
    assert content.definition is not None
    without = replace(
        content,
        definition=replace(content.definition, stages=(enrich,)),
        removals=(Removal(generation=2, stages=(load,)),),
    )
    lost = judged(without, only("lake"))
    assert lost.kind == OutcomeKind.LOST
    assert {each.reason for each in lost.lost} == {LossReason.SINK_REMOVED}
    assert judged(without, only("copy")).kind == OutcomeKind.COMPLETE


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


def test_of_several_pipelines_those_with_such_a_sink_are_asked() -> None:
    async def test(w: World) -> None:
        other = (KEY[0], "uid-2")
        first, second = stages(0, 0)
        lake = replace(second.sinks[0], name="pond")
        w.owners.directory.accept(
            replace(record("others", "uid-2"), stages=(first, replace(second, sinks=(lake,))))
        )
        w.store.put(slot(enriched=(5,), copy=(5,), lake=(5,)), version=1)
        one, two = token(span(0, 5)), token(span(0, 5), uid="uid-2")
        both = replace(one, parts=(*one.parts, *two.parts))
        asked = only("lake")
        (outcome,) = await w.tokens.now([both], asked)
        assert isinstance(outcome, Outcome)
        assert outcome.outcome == OutcomeKind.UNKNOWN, "of the other nothing is known"
        content = slot(enriched=(5,), copy=(1,))
        assert content.definition is not None
        stages_there = (first, replace(second, sinks=(lake,)))
        definition = replace(content.definition, name="others", stages=stages_there)
        w.store.readings[other] = reading(replace(content, definition=definition))
        (outcome,) = await w.tokens.now([both], asked)
        assert isinstance(outcome, Outcome)
        assert (outcome.outcome, outcome.pipeline) == (OutcomeKind.COMPLETE, "orders")
        (whole,) = await w.tokens.now([both])
        assert isinstance(whole, Outcome)
        assert whole.outcome == OutcomeKind.IN_PROGRESS

    in_a_world(test)


def test_sinks_that_the_token_waits_for_are_named_to_who_misspells_one() -> None:
    async def test(w: World) -> None:
        w.tokens.check([token(span(0, 5))], only("lake", "enriched"))
        w.tokens.check([token(span(0, 5))], WHOLE)
        with pytest.raises(Refusal, match="the token waits for no sink 'lak'") as refused:
            w.tokens.check([token(span(0, 5))], only("lak"))
        assert "copy, enriched, lake" in str(refused.value.members["errors"])

    in_a_world(test)


def test_who_asks_for_parts_shares_no_question_with_who_asks_for_all() -> None:
    async def test(w: World) -> None:
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

    in_a_world(test)


def test_a_watch_is_told_when_its_part_is_final() -> None:
    async def scene(s: Scene) -> None:
        s.store.put(slot(enriched=(5,), copy=(4,), lake=(4,)), version=1)
        await s.process()
        text = sealed(token(span(0, 5)))
        s.log.write(watch("whole", text), replace(watch("part", text), view=only("lake")))
        s.log.write(replace(watch("accepted", text), view=ACCEPTED))
        assert [each.subject for each in await s.told(1)] == ["accepted"]
        s.store.put(slot(enriched=(5,), copy=(4,), lake=(5,)), version=2)
        assert [each.subject for each in await s.told(2)] == ["accepted", "part"]
        s.store.put(slot(enriched=(5,), copy=(5,), lake=(5,)), version=3)
        assert [each.subject for each in await s.told(3)] == ["accepted", "part", "whole"]

    run(scene)
