"""Asking on, into other pipelines: what may be asked, and that no later change of them counts."""

from dataclasses import replace

import pytest

from unit.status.coroutines import inside
from unit.status.following import (
    AFTER,
    COPIES,
    FIRST,
    MINE,
    OF_IT,
    Legs,
    content,
    keep,
    key,
    other,
    step,
)
from unit.status.slots import COPY, ENRICH, INNER, KEY, offsets, span, token
from unit.status.worlds import World, world
from waybill_shared.access.authentication import ANYONE, BEARER
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.slots import Removal
from waybill_shared.contract.token_views import TokenView, WantedView
from waybill_shared.contract.words import OutcomeKind, UnknownReason
from waybill_status.app.outcomes.tokens import is_refused


@inside(world)
async def test_no_later_change_of_the_other_pipeline_counts(w: World) -> None:
    """It gets a sink, and loses the one it had."""
    legs = Legs(w)
    legs.audit(9)
    asked = await legs.view()
    assert await legs.kind(asked) == OutcomeKind.COMPLETE
    more = replace(keep(), sinks=(*keep().sinks, *keep(name="list", written="l", since=2).sinks))
    legs.put(key("audit"), content("audit", 9, more, generation=2), version=2)
    w.owners.directory.accept(other("audit", more, generation=2))
    assert await legs.kind(asked) == OutcomeKind.COMPLETE
    assert await legs.kind() == OutcomeKind.IN_PROGRESS, "who asks now asks for that, too"
    instead = keep(read="elsewhere", name="list", written="l", since=2)
    gone = content("audit", 9, instead, generation=3)
    removed = (Removal(generation=3, stages=(keep(),)),)
    legs.put(key("audit"), replace(gone, removals=removed), version=3)
    assert await legs.kind(asked) == OutcomeKind.COMPLETE


@inside(world)
async def test_a_sink_that_came_after_the_rows_has_no_part_in_them(w: World) -> None:
    late = replace(keep(), sinks=(*keep().sinks, *keep(name="list", written="l", since=2).sinks))
    (source,) = late.inputs

    def from_(end: int) -> PipelineRecord:
        whole = replace(source, whole=offsets(end, topic_id=COPIES))
        return other("audit", replace(late, inputs=(whole,)), generation=2)

    legs = Legs(w, from_(4))
    legs.put(key("audit"), content("audit", 100, late, generation=2), version=1)
    assert await legs.kind() == UnknownReason.SINK_CAME_LATER
    w.owners.directory.accept(from_(3))
    assert await legs.kind() == OutcomeKind.IN_PROGRESS


@inside(world)
async def test_a_later_sink_counts_for_each_pipeline_that_a_token_comes_from(w: World) -> None:
    """`orders` and `lone` write to topics that `audit` reads, where it has a later sink."""
    late = keep(since=2)
    both = tuple(
        replace(source, whole=offsets(4, topic_id=source.topic))
        for source in (*late.inputs, *keep(read="d").inputs)
    )
    legs = Legs(
        w,
        other("lone", keep(read="elsewhere", written="d")),
        other("audit", replace(late, inputs=both), generation=2),
    )
    lone = token(replace(span(0, 1), topic_id="elsewhere"), uid="uid-lone")
    for parts in (MINE.parts + lone.parts, lone.parts + MINE.parts):
        (through,) = (await legs.view(of=replace(MINE, parts=parts))).through
        assert {each.topic_id for each in through.late} == {COPIES, "d"}


@inside(world)
async def test_what_the_other_pipeline_reads_later_counts_neither(w: World) -> None:
    """It begins to read another topic of the same pipeline, and then reads the first no more."""
    legs = Legs(w)
    legs.audit(9)
    asked = await legs.view()
    both = replace(keep(), inputs=(*keep().inputs, *keep(read=INNER).inputs))
    legs.put(key("audit"), content("audit", 9, both, generation=2), version=2)
    assert await legs.kind(asked) == OutcomeKind.COMPLETE
    neither = keep(read=INNER)
    legs.put(key("audit"), content("audit", 2, neither, generation=3), version=3)
    assert await legs.kind(asked) == UnknownReason.NOTHING_REQUIRED


@inside(world)
async def test_sinks_of_several_topics_may_be_named_though_one_got_nothing(w: World) -> None:
    more = replace(keep(INNER, "l", name="list"), name="more")
    legs = Legs(w, other("audit", keep(), more))
    legs.put(key("audit"), content("audit", 100, keep(), more), version=1)
    w.store.histories[KEY, ENRICH] = [step(0, 20, 0, sink=ENRICH, topic_id=INNER)]
    assert await legs.kind(await legs.view(sinks=["vault", "list"])) == OutcomeKind.COMPLETE


@inside(world)
async def test_a_stage_that_reads_something_else_now_says_nothing_of_what_it_read(w: World) -> None:
    legs = Legs(w)
    legs.audit(100)
    moved = {**offsets(10), **offsets(4, topic_id="dropped")}
    legs.batches(FIRST, OF_IT[0], replace(OF_IT[1], reached=moved), AFTER)
    assert await legs.kind() == UnknownReason.BATCH_FORGOTTEN


@pytest.mark.parametrize(
    ("through", "sinks", "path", "says"),
    [
        (("audti",), (), "through", "there is no pipeline 'audti'"),
        (("lone",), (), "through", "lone reads nothing that orders writes of the token"),
        (("audit", "lone"), (), "through", "lone reads nothing that audit writes of the token"),
        (("audit",), ("lake",), "sinks", "waits for none of lake"),
        (("audit",), ("lake", "vault"), "sinks", "waits for no sink 'lake'"),
    ],
)
@inside(world)
async def test_a_way_that_there_is_not_is_refused(
    w: World, through: tuple[str, ...], sinks: tuple[str, ...], path: str, says: str
) -> None:
    legs = Legs(w, other("audit", keep()), other("lone", keep(read="elsewhere")))
    with pytest.raises(Refusal) as refused:
        await legs.view(*through, sinks=sinks)
    assert refused.value.slug == Slug.INVALID
    assert says in str(refused.value)
    assert str(refused.value).startswith(f"{path}: ")


@inside(world)
async def test_sinks_are_those_of_the_last_pipeline(w: World) -> None:
    legs = Legs(w)
    legs.audit(9)
    asked = await legs.view(sinks=["vault"])
    outcome = await legs.ask(asked)
    assert outcome.outcome == OutcomeKind.COMPLETE
    assert not is_refused(outcome, asked)


@inside(world)
async def test_a_token_alone_says_nothing_of_other_pipelines(w: World) -> None:
    Legs(w)
    with pytest.raises(Refusal) as refused:
        await w.tokens.settle(BEARER, [MINE], WantedView(through=("audit",)))
    assert refused.value.slug == Slug.KEY_MISSING
    writer = replace(BEARER, key_id="k")
    with pytest.raises(Refusal) as refused:
        await w.tokens.settle(writer, [MINE], WantedView(through=("audit",)))
    assert refused.value.slug == Slug.SCOPE_MISSING


@inside(world)
async def test_whose_news_come_late_is_looked_for_again(w: World) -> None:
    w.owners.late = other("audit", keep())
    (view,) = await w.tokens.settle(ANYONE, [MINE], WantedView(through=("audit",)))
    assert isinstance(view, TokenView)
    assert [leg.pipeline for leg in view.through] == ["audit"]


@inside(world)
async def test_of_a_replay_those_sinks_may_be_asked_for_that_it_reaches(w: World) -> None:
    Legs(w)
    at = replace(span(5, 10), topic_id="replays")
    copy, enriched = (
        replace(MINE, parts=(replace(MINE.parts[0], spans=(at,), into=(into,)),))
        for into in (COPY, ENRICH)
    )
    assert w.tokens.sinks_of(copy) == {"copy"}
    assert w.tokens.sinks_of(enriched) == {"enriched", "lake"}
    (refused,) = await w.tokens.settle(ANYONE, [copy], WantedView(through=("audit",)))
    assert "the token of a replay is for one pipeline" in str(refused)


@inside(world)
async def test_a_pipeline_on_the_way_may_be_named_as_it_was(w: World) -> None:
    legs = Legs(w)
    legs.audit(9)
    asked = await legs.view()
    record = replace(other("audit", keep()), name="ledger", was=("audit",))
    w.owners.directory.accept(record)
    again = await legs.view()
    assert [each.pipeline for each in again.through] == ["ledger"]
    assert [each.uid for each in again.through] == [each.uid for each in asked.through]
