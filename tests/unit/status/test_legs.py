"""Asking on, into a pipeline that reads what the token's own writes."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from unit.status.fakes import (
    COPY,
    ENRICH,
    INNER,
    KEY,
    LOAD,
    losing,
    offsets,
    progress,
    reading,
    record,
    slot,
    span,
    stages,
    token,
)
from unit.status.test_tokens import World, in_a_world
from waybill_shared.access.authentication import ANYONE, BEARER, DEFAULT_TENANT
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.events import (
    Definition,
    InputDefinition,
    PipelineRecord,
    SinkDefinition,
    StageDefinition,
)
from waybill_shared.contract.problems import Slug
from waybill_shared.contract.slots import Progress, Removal, SinkState, Slot
from waybill_shared.contract.token_views import TokenView, WantedView
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.vectors import Span
from waybill_shared.contract.words import LossReason, OutcomeKind, UnknownReason
from waybill_status.app.tokens import is_refused
from waybill_status.core.outcomes import Outcome
from waybill_status.core.views import PipelineKey

COPIES = "c"
"""The id of the topic of sink `copy`, which `audit` reads."""
VAULT, LIST = "keep/vault@1", "keep/list@1"
MINE = token(span(5, 10))
WAIT_S = 10


def keep(
    read: str = COPIES, written: str = "v", *, name: str = "vault", since: int = 1
) -> StageDefinition:
    source = InputDefinition(name="in", topic=read, topic_id=read, root=True, bases=())
    sink = SinkDefinition(
        name=name, kind="kafka", target=written, topic_id=written, terminal=True, since=since
    )
    return StageDefinition(name="keep", since=1, inputs=(source,), sinks=(sink,))


def other(name: str, *defined: StageDefinition, generation: int = 1) -> PipelineRecord:
    return replace(record(name, uid=f"uid-{name}"), stages=defined, generation=generation)


def key(name: str) -> PipelineKey:
    return (DEFAULT_TENANT, f"uid-{name}")


def content(
    name: str, end: int, *defined: StageDefinition, read: str = COPIES, generation: int = 1
) -> Slot:
    return Slot(
        tenant=DEFAULT_TENANT,
        pipeline_uid=f"uid-{name}",
        generation=generation,
        definition=Definition(name=name, deleted=False, stages=defined or (keep(read),)),
        sinks={VAULT: SinkState(reached=offsets(end, topic_id=read))},
    )


def step(
    number: int,
    end: int,
    written: int | None,
    *,
    before: int = 0,
    sink: str = COPY,
    topic_id: str = COPIES,
) -> Progress:
    """Batch `number`, up to whose end so much is written to the topic."""
    outputs = None if written is None else offsets(written, topic_id=topic_id)
    made = progress(number, end, before=before, sink=sink)
    return replace(made, outputs=outputs, number=number)


FIRST, *OF_IT, AFTER = (
    step(0, 5, 3),
    step(1, 8, 7, before=5),
    step(2, 10, 9, before=8),
    step(3, 20, 30, before=10),
)
BATCHES = (FIRST, *OF_IT, AFTER)
"""The rows of the token stand from 3 to 9."""


class Legs:
    def __init__(self, world: World, *others: PipelineRecord) -> None:
        self.world = world
        for each in others or (other("audit", keep()),):
            world.owners.directory.accept(each)
        self.put(KEY, slot(enriched=(20,), copy=(20,), lake=(0,)), version=1)
        self.batches(*BATCHES)

    def put(self, whose: PipelineKey, what: Slot, *, version: int) -> None:
        self.world.store.readings[whose] = reading(what, version=version)
        self.world.store.changes.put_nowait(whose)

    def audit(self, end: int, *, version: int = 1) -> None:
        self.put(key("audit"), content("audit", end), version=version)
        self.world.store.histories[key("audit"), VAULT] = [progress(1, end, sink=VAULT)]

    def batches(self, *batches: Progress) -> None:
        self.world.store.histories[KEY, COPY] = [*batches]

    async def view(self, *names: str, sinks: Sequence[str] = (), of: Token = MINE) -> TokenView:
        wanted = WantedView(through=names or ("audit",), sinks=tuple(sinks))
        (found,) = await self.world.tokens.settled(ANYONE, [of], wanted)
        if isinstance(found, Refusal):
            raise found
        return found

    async def ask(self, asked: TokenView | None = None, *, of: Token = MINE) -> Outcome:
        (outcome,) = await self.world.tokens.now([of], asked or await self.view())
        assert isinstance(outcome, Outcome)
        return outcome

    async def kind(self, asked: TokenView | None = None) -> str:
        outcome = await self.ask(asked)
        return outcome.reason or outcome.outcome


@pytest.mark.parametrize(("end", "kind"), [(0, "in_progress"), (8, "in_progress"), (9, "complete")])
def test_its_rows_are_waited_for_and_no_others(end: int, kind: str) -> None:
    async def test(w: World) -> None:
        legs = Legs(w)
        legs.audit(end)
        outcome = await legs.ask()
        assert outcome.outcome == kind
        assert outcome.parts is not None
        assert [(part.pipeline, part.outcome) for part in outcome.parts] == [
            ("orders", "complete"),
            ("audit", kind),
        ]

    in_a_world(test)


def test_the_first_pipeline_is_waited_for_where_it_leads_on() -> None:
    async def test(w: World) -> None:
        legs = Legs(w)
        legs.audit(100)
        legs.put(KEY, slot(enriched=(20,), copy=(9,), lake=(20,)), version=2)
        assert await legs.kind() == OutcomeKind.IN_PROGRESS

    in_a_world(test)


@pytest.mark.parametrize(
    ("start", "end", "kind"),
    [(0, 3, "complete"), (9, 12, "complete"), (2, 4, "lost"), (8, 9, "lost")],
)
def test_a_loss_of_its_batches_is_its_own(start: int, end: int, kind: str) -> None:
    async def test(w: World) -> None:
        legs = Legs(w)
        legs.audit(100)
        gone = Span(topic_id=COPIES, partition=0, start=start, end=end)
        state = losing(content("audit", 100), VAULT, LossReason.RETENTION_PASSED, gone)
        legs.put(key("audit"), state, version=2)
        assert await legs.kind() == kind

    in_a_world(test)


def test_what_others_wrote_before_the_sink_began_is_not_asked_for() -> None:
    async def test(w: World) -> None:
        legs = Legs(w)
        began = offsets(3, topic_id=COPIES)
        legs.batches(replace(step(0, 10, 9), began=began))
        gone = Span(topic_id=COPIES, partition=0, start=0, end=3)
        state = losing(content("audit", 100), VAULT, LossReason.RETENTION_PASSED, gone)
        legs.audit(100)
        legs.put(key("audit"), state, version=2)
        assert await legs.kind() == OutcomeKind.COMPLETE

    in_a_world(test)


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
def test_where_its_batches_are_forgotten_nobody_knows(batches: tuple[Progress, ...]) -> None:
    async def test(w: World) -> None:
        legs = Legs(w)
        legs.audit(100)
        legs.batches(*batches)
        assert await legs.kind() == UnknownReason.BATCH_FORGOTTEN

    in_a_world(test)


def test_of_what_was_written_for_none_nothing_is_awaited() -> None:
    async def test(w: World) -> None:
        legs = Legs(w)
        legs.audit(0)
        legs.batches(step(0, 5, 3), step(1, 20, 3, before=5))
        assert await legs.kind() == OutcomeKind.COMPLETE
        assert await legs.kind(await legs.view(sinks=["vault"])) == OutcomeKind.COMPLETE
        assert (await legs.ask(of=token(span(7, 7)))).outcome == OutcomeKind.COMPLETE

    in_a_world(test)


def test_what_is_not_known_of_either_is_unknown() -> None:
    async def test(w: World) -> None:
        legs = Legs(w)
        assert await legs.kind() == UnknownReason.SLOT_MISSING
        legs.audit(100)
        asked = await legs.view()
        later = replace(asked.through[0], generation=2)
        assert await legs.kind(replace(asked, through=(later,))) == UnknownReason.GENERATION_BEHIND
        w.store.histories_away = True
        assert await legs.kind() == UnknownReason.REDIS_AWAY

    in_a_world(test)


def test_who_waits_is_told_of_every_pipeline_on_the_way() -> None:
    async def test(w: World) -> None:
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

    in_a_world(test)


def test_no_later_change_of_the_other_pipeline_counts() -> None:
    """It gets a sink, and loses the one it had."""

    async def test(w: World) -> None:
        legs = Legs(w)
        legs.audit(9)
        asked = await legs.view()
        assert await legs.kind(asked) == OutcomeKind.COMPLETE
        more = replace(
            keep(), sinks=(*keep().sinks, *keep(name="list", written="l", since=2).sinks)
        )
        legs.put(key("audit"), content("audit", 9, more, generation=2), version=2)
        w.owners.directory.accept(other("audit", more, generation=2))
        assert await legs.kind(asked) == OutcomeKind.COMPLETE
        assert await legs.kind() == OutcomeKind.IN_PROGRESS, "who asks now asks for that, too"
        instead = keep(read="elsewhere", name="list", written="l", since=2)
        gone = content("audit", 9, instead, generation=3)
        removed = (Removal(generation=3, stages=(keep(),)),)
        legs.put(key("audit"), replace(gone, removals=removed), version=3)
        assert await legs.kind(asked) == OutcomeKind.COMPLETE

    in_a_world(test)


def test_several_pipelines_are_passed_in_turn() -> None:
    async def test(w: World) -> None:
        legs = Legs(w, other("audit", keep()), other("last", keep(read="v", written="w")))
        asked = await legs.view("audit", "last")
        legs.audit(8)
        legs.put(key("last"), content("last", 100, read="v"), version=1)
        outcome = await legs.ask(asked)
        assert outcome.parts is not None
        assert [part.outcome for part in outcome.parts] == [
            "complete",
            "in_progress",
            "in_progress",
        ]
        legs.audit(100, version=2)
        first, second = (
            step(0, 3, 2, sink=VAULT, topic_id="v"),
            step(1, 100, 6, before=3, sink=VAULT, topic_id="v"),
        )
        w.store.histories[key("audit"), VAULT] = [
            replace(first, reached=offsets(3, topic_id=COPIES)),
            replace(
                second,
                before=offsets(3, topic_id=COPIES),
                reached=offsets(100, topic_id=COPIES),
            ),
        ]
        legs.put(key("last"), content("last", 5, read="v"), version=2)
        assert await legs.kind(asked) == OutcomeKind.IN_PROGRESS
        legs.put(key("last"), content("last", 6, read="v"), version=3)
        assert await legs.kind(asked) == OutcomeKind.COMPLETE

    in_a_world(test)


def test_what_a_stage_behind_another_wrote_is_found_by_what_it_took() -> None:
    """`load` writes a topic, too: its first step had taken more than it could be told to have."""

    async def test(w: World) -> None:
        legs = Legs(w, other("feed", keep(read="l")))
        enrich, load = stages(0, 0)
        (lake,) = load.sinks
        load = replace(load, sinks=(replace(lake, kind="kafka", topic_id="l"),))
        content_ = slot(enriched=(20,), copy=(20,), lake=(20,))
        assert content_.definition is not None
        changed = replace(content_.definition, stages=(enrich, load))
        legs.put(KEY, replace(content_, definition=changed), version=1)
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

    in_a_world(test)


def test_as_long_as_its_step_is_not_heard_of_it_is_under_way() -> None:
    async def test(w: World) -> None:
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

    in_a_world(test)


def test_a_sink_that_came_after_the_rows_has_no_part_in_them() -> None:
    async def test(w: World) -> None:
        late = replace(
            keep(), sinks=(*keep().sinks, *keep(name="list", written="l", since=2).sinks)
        )
        (source,) = late.inputs

        def from_(end: int) -> PipelineRecord:
            whole = replace(source, whole=offsets(end, topic_id=COPIES))
            return other("audit", replace(late, inputs=(whole,)), generation=2)

        legs = Legs(w, from_(4))
        legs.put(key("audit"), content("audit", 100, late, generation=2), version=1)
        assert await legs.kind() == UnknownReason.SINK_CAME_LATER
        w.owners.directory.accept(from_(3))
        assert await legs.kind() == OutcomeKind.IN_PROGRESS

    in_a_world(test)


def test_what_the_other_pipeline_reads_later_counts_neither() -> None:
    """It begins to read another topic of the same pipeline, and then reads the first no more."""

    async def test(w: World) -> None:
        legs = Legs(w)
        legs.audit(9)
        asked = await legs.view()
        both = replace(keep(), inputs=(*keep().inputs, *keep(read=INNER).inputs))
        legs.put(key("audit"), content("audit", 9, both, generation=2), version=2)
        assert await legs.kind(asked) == OutcomeKind.COMPLETE
        neither = keep(read=INNER)
        legs.put(key("audit"), content("audit", 2, neither, generation=3), version=3)
        assert await legs.kind(asked) == UnknownReason.NOTHING_REQUIRED

    in_a_world(test)


def test_rows_of_strangers_between_its_batches_are_not_its_own() -> None:
    async def test(w: World) -> None:
        legs = Legs(w)
        hole = Span(topic_id=COPIES, partition=0, start=3, end=6)
        legs.batches(FIRST, replace(OF_IT[0], gaps=(hole,)), OF_IT[1], AFTER)
        for end, kind in ((6, OutcomeKind.COMPLETE), (7, OutcomeKind.LOST)):
            gone = Span(topic_id=COPIES, partition=0, start=3, end=end)
            state = losing(content("audit", 100), VAULT, LossReason.RETENTION_PASSED, gone)
            legs.put(key("audit"), state, version=end)
            assert await legs.kind() == kind

    in_a_world(test)


def test_while_it_is_looked_for_the_view_may_go() -> None:
    async def test(w: World) -> None:
        legs = Legs(
            w, other("audit", replace(keep(), inputs=(*keep().inputs, *keep(INNER).inputs)))
        )
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

    in_a_world(test)


def test_sinks_of_several_topics_may_be_named_though_one_got_nothing() -> None:
    async def test(w: World) -> None:
        more = replace(keep(INNER, "l", name="list"), name="more")
        legs = Legs(w, other("audit", keep(), more))
        legs.put(key("audit"), content("audit", 100, keep(), more), version=1)
        w.store.histories[KEY, ENRICH] = [step(0, 20, 0, sink=ENRICH, topic_id=INNER)]
        assert await legs.kind(await legs.view(sinks=["vault", "list"])) == OutcomeKind.COMPLETE

    in_a_world(test)


def test_what_lies_between_the_tokens_of_a_merged_one_is_not_its_own() -> None:
    async def test(w: World) -> None:
        legs = Legs(w)
        gone = Span(topic_id=COPIES, partition=0, start=3, end=7)
        state = losing(content("audit", 100), VAULT, LossReason.RETENTION_PASSED, gone)
        legs.put(key("audit"), state, version=1)
        distant = token(span(0, 5), span(8, 10))
        assert (await legs.ask(of=distant)).outcome == OutcomeKind.COMPLETE
        assert (await legs.ask(of=token(span(0, 6)))).outcome == OutcomeKind.LOST

    in_a_world(test)


def test_a_stage_that_reads_something_else_now_says_nothing_of_what_it_read() -> None:
    async def test(w: World) -> None:
        legs = Legs(w)
        legs.audit(100)
        moved = (*offsets(10), *offsets(4, topic_id="dropped"))
        legs.batches(FIRST, OF_IT[0], replace(OF_IT[1], reached=moved), AFTER)
        assert await legs.kind() == UnknownReason.BATCH_FORGOTTEN

    in_a_world(test)


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
def test_a_way_that_there_is_not_is_refused(
    through: tuple[str, ...], sinks: tuple[str, ...], path: str, says: str
) -> None:
    async def test(w: World) -> None:
        legs = Legs(w, other("audit", keep()), other("lone", keep(read="elsewhere")))
        with pytest.raises(Refusal) as refused:
            await legs.view(*through, sinks=sinks)
        assert refused.value.slug == Slug.INVALID
        assert says in str(refused.value)
        assert str(refused.value).startswith(f"{path}: ")

    in_a_world(test)


def test_sinks_are_those_of_the_last_pipeline() -> None:
    async def test(w: World) -> None:
        legs = Legs(w)
        legs.audit(9)
        asked = await legs.view(sinks=["vault"])
        outcome = await legs.ask(asked)
        assert outcome.outcome == OutcomeKind.COMPLETE
        assert not is_refused(outcome, asked)

    in_a_world(test)


def test_a_token_alone_says_nothing_of_other_pipelines() -> None:
    async def test(w: World) -> None:
        Legs(w)
        with pytest.raises(Refusal) as refused:
            await w.tokens.settled(BEARER, [MINE], WantedView(through=("audit",)))
        assert refused.value.slug == Slug.KEY_MISSING
        writer = replace(BEARER, key_id="k")
        with pytest.raises(Refusal) as refused:
            await w.tokens.settled(writer, [MINE], WantedView(through=("audit",)))
        assert refused.value.slug == Slug.SCOPE_MISSING

    in_a_world(test)


def test_whose_news_come_late_is_looked_for_again() -> None:
    async def test(w: World) -> None:
        w.owners.late = other("audit", keep())
        (view,) = await w.tokens.settled(ANYONE, [MINE], WantedView(through=("audit",)))
        assert isinstance(view, TokenView)
        assert [leg.pipeline for leg in view.through] == ["audit"]

    in_a_world(test)


def test_inner_sinks_lead_on_too() -> None:
    """`feed` reads what stages of `orders` hand to one another."""

    async def test(w: World) -> None:
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

    in_a_world(test)
