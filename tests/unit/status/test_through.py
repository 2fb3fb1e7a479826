"""Asking on, into a pipeline that reads what the token's own writes: where its rows are."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from unit.status.coroutines import WAIT_S, inside
from unit.status.following import (
    AFTER,
    BATCHES,
    COPIES,
    FIRST,
    MINE,
    OF_IT,
    VAULT,
    Legs,
    content,
    keep,
    key,
    other,
    step,
)
from unit.status.slots import (
    COPY,
    ENRICH,
    INNER,
    KEY,
    LOAD,
    losing,
    offsets,
    record,
    slot,
    span,
    stages,
    token,
    with_stages,
)
from unit.status.worlds import World, world
from waybill_shared.contract.slots import Progress
from waybill_shared.contract.vectors import Span
from waybill_shared.contract.words import LossReason, OutcomeKind, UnknownReason
from waybill_status.core.outcomes.views import PipelineKey


@pytest.mark.parametrize(("end", "kind"), [(0, "in_progress"), (8, "in_progress"), (9, "complete")])
@inside(world)
async def test_its_rows_are_waited_for_and_no_others(w: World, end: int, kind: str) -> None:
    legs = Legs(w)
    legs.audit(end)
    outcome = await legs.ask()
    assert outcome.outcome == kind
    assert outcome.parts is not None
    assert [(part.pipeline, part.outcome) for part in outcome.parts] == [
        ("orders", "complete"),
        ("audit", kind),
    ]


@inside(world)
async def test_the_first_pipeline_is_waited_for_where_it_leads_on(w: World) -> None:
    legs = Legs(w)
    legs.audit(100)
    legs.put(KEY, slot(enriched=(20,), copy=(9,), lake=(20,)), version=2)
    assert await legs.kind() == OutcomeKind.IN_PROGRESS


@pytest.mark.parametrize(
    ("start", "end", "kind"),
    [(0, 3, "complete"), (9, 12, "complete"), (2, 4, "lost"), (8, 9, "lost")],
)
@inside(world)
async def test_a_loss_of_its_batches_is_its_own(w: World, start: int, end: int, kind: str) -> None:
    legs = Legs(w)
    legs.audit(100)
    gone = Span(topic_id=COPIES, partition=0, start=start, end=end)
    state = losing(content("audit", 100), VAULT, LossReason.RETENTION_PASSED, gone)
    legs.put(key("audit"), state, version=2)
    assert await legs.kind() == kind


@inside(world)
async def test_what_others_wrote_before_the_sink_began_is_not_asked_for(w: World) -> None:
    legs = Legs(w)
    began = offsets(3, topic_id=COPIES)
    legs.batches(replace(step(0, 10, 9), began=began))
    gone = Span(topic_id=COPIES, partition=0, start=0, end=3)
    state = losing(content("audit", 100), VAULT, LossReason.RETENTION_PASSED, gone)
    legs.audit(100)
    legs.put(key("audit"), state, version=2)
    assert await legs.kind() == OutcomeKind.COMPLETE


@pytest.mark.parametrize(
    "batches",
    [
        (),
        (AFTER,),
        (OF_IT[1], AFTER),
        (*OF_IT, AFTER),
        (step(0, 5, None), *OF_IT, AFTER),
        (FIRST, OF_IT[0], step(2, 10, None, before=8), AFTER),
        (FIRST, OF_IT[0], step(2, 10, 4, before=8, topic_id="anew"), AFTER),
    ],
    ids=["all", "both", "the first", "before", "old", "old too", "another topic"],
)
@inside(world)
async def test_where_its_batches_are_forgotten_nobody_knows(
    w: World, batches: tuple[Progress, ...]
) -> None:
    legs = Legs(w)
    legs.audit(100)
    legs.batches(*batches)
    assert await legs.kind() == UnknownReason.BATCH_FORGOTTEN


@inside(world)
async def test_of_what_was_written_for_none_nothing_is_awaited(w: World) -> None:
    legs = Legs(w)
    legs.audit(0)
    legs.batches(step(0, 5, 3), step(1, 20, 3, before=5))
    assert await legs.kind() == OutcomeKind.COMPLETE
    assert await legs.kind(await legs.view(sinks=["vault"])) == OutcomeKind.COMPLETE
    assert (await legs.ask(of=token(span(7, 7)))).outcome == OutcomeKind.COMPLETE


@inside(world)
async def test_what_is_not_known_of_either_is_unknown(w: World) -> None:
    legs = Legs(w)
    assert await legs.kind() == UnknownReason.SLOT_MISSING
    legs.audit(100)
    asked = await legs.view()
    later = replace(asked.through[0], generation=2)
    assert await legs.kind(replace(asked, through=(later,))) == UnknownReason.GENERATION_BEHIND
    w.store.histories_away = True
    assert await legs.kind() == UnknownReason.REDIS_AWAY


@inside(world)
async def test_who_waits_is_told_of_every_pipeline_on_the_way(w: World) -> None:
    legs = Legs(w)
    legs.put(KEY, slot(enriched=(20,), copy=(7,), lake=(0,)), version=1)
    legs.audit(2)
    waiting = asyncio.create_task(w.tokens.wait(MINE, WAIT_S, await legs.view()))
    while not w.hub._questions:
        await asyncio.sleep(0.005)
    w.store.histories_away = True
    legs.put(KEY, slot(enriched=(20,), copy=(20,), lake=(0,)), version=2)
    await asyncio.sleep(0.05)
    w.store.histories_away = False
    while not next(iter(w.hub._questions.values())).written:
        await asyncio.sleep(0.005)
    assert not waiting.done()
    legs.batches(AFTER)  # what was found once is not looked for again
    legs.audit(9, version=2)
    w.store.histories[KEY, COPY] = [*OF_IT]  # for what is told of the batches
    assert (await waiting).outcome == OutcomeKind.COMPLETE


@inside(world)
async def test_several_pipelines_are_passed_in_turn(w: World) -> None:
    legs = Legs(w, other("audit", keep()), other("last", keep(read="v", written="w")))
    asked = await legs.view("audit", "last")
    legs.audit(8)
    legs.put(key("last"), content("last", 100, read="v"), version=1)
    outcome = await legs.ask(asked)
    assert outcome.parts is not None
    assert [part.outcome for part in outcome.parts] == ["complete", "in_progress", "in_progress"]
    legs.audit(100, version=2)
    first, second = (
        step(0, 3, 2, sink=VAULT, topic_id="v"),
        step(1, 100, 6, before=3, sink=VAULT, topic_id="v"),
    )
    w.store.histories[key("audit"), VAULT] = [
        replace(first, reached=offsets(3, topic_id=COPIES)),
        replace(second, before=offsets(3, topic_id=COPIES), reached=offsets(100, topic_id=COPIES)),
    ]
    legs.put(key("last"), content("last", 5, read="v"), version=2)
    assert await legs.kind(asked) == OutcomeKind.IN_PROGRESS
    legs.put(key("last"), content("last", 6, read="v"), version=3)
    assert await legs.kind(asked) == OutcomeKind.COMPLETE


@inside(world)
async def test_what_a_stage_behind_another_wrote_is_found_by_what_it_took(w: World) -> None:
    """`load` writes a topic, too: its first step had taken more than it could be told to have."""
    legs = Legs(w, other("feed", keep(read="l")))
    enrich, load = stages(0, 0)
    (lake,) = load.sinks
    load = replace(load, sinks=(replace(lake, kind="kafka", topic_id="l"),))
    content_ = slot(enriched=(20,), copy=(20,), lake=(20,))
    legs.put(KEY, with_stages(content_, enrich, load), version=1)
    w.owners.directory.accept(replace(record(), stages=(enrich, load)))
    inner = partial(offsets, topic_id=INNER)
    w.store.histories[KEY, ENRICH] = [
        step(0, 5, 3, sink=ENRICH, topic_id=INNER),
        step(1, 20, 7, before=5, sink=ENRICH, topic_id=INNER),
    ]
    w.store.histories[KEY, LOAD] = [
        replace(step(0, 3, 1, sink=LOAD, topic_id="l"), taken=inner(2)),
        replace(step(1, 5, 14, sink=LOAD, before=3, topic_id="l"), taken=inner(7)),
        replace(step(2, 20, 14, sink=LOAD, before=5, topic_id="l"), taken=inner(7)),
    ]
    asked = await legs.view("feed")
    legs.put(key("feed"), content("feed", 13, read="l"), version=1)
    assert await legs.kind(asked) == OutcomeKind.IN_PROGRESS
    gone = Span(topic_id="l", partition=0, start=0, end=1)
    state = losing(content("feed", 14, read="l"), VAULT, LossReason.RETENTION_PASSED, gone)
    legs.put(key("feed"), state, version=2)
    assert await legs.kind(asked) == OutcomeKind.COMPLETE


@inside(world)
async def test_as_long_as_its_step_is_not_heard_of_it_is_under_way(w: World) -> None:
    legs = Legs(w)
    legs.audit(100)
    legs.batches(FIRST, OF_IT[0])
    assert await legs.kind() == OutcomeKind.IN_PROGRESS
    waiting = asyncio.create_task(w.tokens.wait(MINE, WAIT_S, await legs.view()))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    legs.batches(*BATCHES)
    legs.put(KEY, slot(enriched=(20,), copy=(20,), lake=(0,)), version=2)
    assert (await waiting).outcome == OutcomeKind.COMPLETE


@inside(world)
async def test_rows_of_strangers_between_its_batches_are_not_its_own(w: World) -> None:
    legs = Legs(w)
    hole = Span(topic_id=COPIES, partition=0, start=3, end=6)
    legs.batches(FIRST, replace(OF_IT[0], gaps=(hole,)), OF_IT[1], AFTER)
    for end, kind in ((6, OutcomeKind.COMPLETE), (7, OutcomeKind.LOST)):
        gone = Span(topic_id=COPIES, partition=0, start=3, end=end)
        state = losing(content("audit", 100), VAULT, LossReason.RETENTION_PASSED, gone)
        legs.put(key("audit"), state, version=end)
        assert await legs.kind() == kind


@inside(world)
async def test_while_it_is_looked_for_the_view_may_go(w: World) -> None:
    legs = Legs(w, other("audit", replace(keep(), inputs=(*keep().inputs, *keep(INNER).inputs))))
    legs.put(key("audit"), content("audit", 100), version=1)
    w.store.histories[KEY, ENRICH] = [step(0, 20, 0, sink=ENRICH, topic_id=INNER)]
    asked = await legs.view()
    newest = w.store.newest

    async def lose(pipeline: PipelineKey, sink: str, count: int) -> list[Progress]:
        found = await newest(pipeline, sink, count)
        w.hub._feeds._show(w.hub._feeds._feeds[KEY], None)
        return found

    w.store.newest = lose  # type: ignore[method-assign]
    waiting = asyncio.create_task(w.tokens.wait(MINE, 0.2, asked))
    assert (await waiting).outcome in {OutcomeKind.COMPLETE, OutcomeKind.UNKNOWN}


@inside(world)
async def test_what_lies_between_the_tokens_of_a_merged_one_is_not_its_own(w: World) -> None:
    legs = Legs(w)
    gone = Span(topic_id=COPIES, partition=0, start=3, end=7)
    state = losing(content("audit", 100), VAULT, LossReason.RETENTION_PASSED, gone)
    legs.put(key("audit"), state, version=1)
    distant = token(span(0, 5), span(8, 10))
    assert (await legs.ask(of=distant)).outcome == OutcomeKind.COMPLETE
    assert (await legs.ask(of=token(span(0, 6)))).outcome == OutcomeKind.LOST


@inside(world)
async def test_inner_sinks_lead_on_too(w: World) -> None:
    """`feed` reads what stages of `orders` hand to one another."""
    inner = stages(0, 0)[0].sinks[0].topic_id
    assert inner is not None
    legs = Legs(w, other("feed", keep(read=inner)))
    legs.put(key("feed"), content("feed", 4, read=inner), version=1)
    w.store.histories[KEY, ENRICH] = [
        step(0, 5, 2, sink=ENRICH, topic_id=inner),
        step(1, 20, 4, before=5, sink=ENRICH, topic_id=inner),
    ]
    asked = await legs.view("feed")
    assert await legs.kind(asked) == OutcomeKind.COMPLETE
    legs.put(KEY, slot(enriched=(20,), copy=(0,), lake=(0,)), version=2)
    assert await legs.kind(asked) == OutcomeKind.COMPLETE
