"""Which sinks show older rows again because their stage was rewound, and that answers say so."""

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from builders import applied, make_sink
from unit.status.coroutines import WAIT_S, inside
from unit.status.slots import (
    ENRICH,
    INNER,
    LOAD,
    offsets,
    record,
    slot,
    span,
    stages_of,
    token,
    view,
    with_stages,
)
from unit.status.worlds import World, world
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.manifest.applied import EarlierManifest
from waybill_shared.contract.rewinds import StageRewind
from waybill_shared.contract.slots import Hop, SinkState, Slot
from waybill_shared.contract.token_views import WHOLE
from waybill_shared.contract.vectors import Vector
from waybill_shared.contract.words import OutcomeKind
from waybill_status.app.outcomes import tokens as module
from waybill_status.app.outcomes.rewinding import RewindingSinks
from waybill_status.app.ports import SlotViews
from waybill_status.core.outcomes.outcome import Outcome
from waybill_status.core.outcomes.rewinding import Rewinding, find_rewinding, unite
from waybill_status.core.outcomes.views import PipelineKey, View

MANIFEST = """\
version: 1
name: orders
inputs:
  - {name: orders, kafka: {topic: orders.in}, schema: "order_id BIGINT"}
stages:
  - name: enrich
    inputs: [orders]
    sinks:
      - {name: enriched, kafka: {topic: orders.enriched}}
      - {name: copy, kafka: {topic: orders.copy}}
  - name: load
    inputs: [enriched]
    sinks:
      - {name: lake, iceberg: {table: raw.orders, mode: upsert, keys: [order_id]}}
"""
SINK = ("load", "lake")
SHORT = slot(copy=(5,), lake=(4,))
DONE = slot(copy=(5,), lake=(5,))


def rewound(number: int = 0, *, mode: str = "mode: upsert, keys: [order_id]") -> PipelineRecord:
    manifest = applied(MANIFEST.replace("mode: upsert, keys: [order_id]", mode))
    rewind = StageRewind(stage="load", since=1, number=number, starts=offsets(0), by="ann", at=1)
    return replace(record(), manifest=manifest, rewinds=(rewind,) if number else ())


def with_lake(number: int, *starts: int) -> Slot:
    """The slot in which the lake has done that rewind, and is at these positions."""
    lake = replace(DONE.sinks[LOAD], rewind=number, rewound=offsets(*starts))
    return replace(DONE, sinks={**DONE.sinks, LOAD: lake})


async def lake_of(w: World) -> bool | None:
    (outcome,) = await w.tokens.now([token(span(0, 5))])
    assert isinstance(outcome, Outcome)
    assert outcome.outcome == OutcomeKind.COMPLETE
    marks = {sink.name: sink.rewinding for stage in outcome.stages for sink in stage.sinks}
    assert not marks["copy"] and not marks["enriched"], "rows are only added there"
    return marks["lake"]


@pytest.mark.parametrize(
    ("wanted", "done", "rewinding"),
    [
        (0, DONE, False),
        (1, DONE, True),
        (1, with_lake(1, 3), True),
        (1, with_lake(1), False),
        (2, with_lake(1), True),
        (2, with_lake(2, 4), True),
        (2, with_lake(2), False),
    ],
    ids=[
        "never",
        "wanted",
        "reads again",
        "done",
        "wanted again",
        "reads again twice",
        "done twice",
    ],
)
def test_a_sink_is_rewinding_until_it_is_where_it_was(
    wanted: int, done: Slot, rewinding: bool
) -> None:
    async def ask() -> bool | None:
        async with world() as w:
            w.store.put(done, version=1)
            w.owners.directory.accept(rewound(wanted))
            return await lake_of(w)

    assert asyncio.run(ask()) is rewinding


@inside(world)
async def test_rows_that_are_only_added_hide_nothing(w: World) -> None:
    w.store.put(DONE, version=1)
    w.owners.directory.accept(rewound(1, mode="mode: append"))
    assert await lake_of(w) is False
    assert (w.owners.asked, w.store.reads) == (0, 1), "such pipelines pay nothing for it"


@inside(world)
async def test_a_rewind_that_is_only_in_kafka_yet_counts(w: World) -> None:
    w.store.put(DONE, version=1)
    w.owners.directory.accept(rewound())
    w.owners.late = rewound(1)
    assert await lake_of(w) is True


@inside(world)
async def test_nobody_knows_while_kafka_is_away(w: World) -> None:
    w.store.put(DONE, version=1)
    w.owners.directory.accept(rewound())
    w.owners.known = False
    assert await lake_of(w) is None


@inside(world)
async def test_nobody_knows_while_redis_is_away(w: World) -> None:
    outcome = await _complete(w)
    w.owners.directory.accept(rewound(1))
    w.store.away = True
    marks = RewindingSinks(w.owners, w.owners, w.store)
    (marked,) = await marks.mark([token(span(0, 5))], WHOLE, [outcome], cast(SlotViews, Views(1)))
    assert marked.stages[-1].sinks[0].rewinding is None


@inside(world)
async def test_a_record_that_is_older_than_the_slot_says_nothing(w: World) -> None:
    """The pipeline may upsert since, and Kafka does not say so."""
    outcome = await _complete(w)
    marks = RewindingSinks(w.owners, w.owners, w.store)
    w.owners.known = False
    (marked,) = await marks.mark([token(span(0, 5))], WHOLE, [outcome], cast(SlotViews, Views(2)))
    assert {sink.rewinding for stage in marked.stages for sink in stage.sinks} == {None}
    assert w.owners.asked == 1


@inside(world)
async def test_many_tokens_cost_one_question_to_kafka(w: World) -> None:
    w.store.put(DONE, version=1)
    w.owners.directory.accept(rewound(1))
    await w.tokens.now([token(span(0, n)) for n in range(1, 6)])
    assert (w.owners.asked, w.store.reads) == (1, 2)


@pytest.mark.parametrize("mode", ["mode: append", "mode: overwrite"])
def test_a_sink_that_upserted_when_it_was_rewound_is_rewinding_in_another_mode(mode: str) -> None:
    earlier = EarlierManifest(generation=1, manifest=applied(MANIFEST), until=2)
    record = replace(rewound(1, mode=mode), earlier=(earlier,))
    assert find_rewinding(record, with_lake(1, 3)) == {("load", "lake"): True}
    long_ago = replace(earlier, until=0)
    assert find_rewinding(replace(record, earlier=(long_ago,)), with_lake(1, 3)) == {}


def fed(*, rewind: int = 1, rewound: int | None = None, read: int) -> Slot:
    """The slot in which `enrich` wrote again up to 7 of its topic, and `load` is at `read`."""
    writer = replace(
        DONE.sinks[ENRICH],
        rewind=rewind,
        rewound={} if rewound is None else offsets(rewound),
        rewritten=inner(7) if rewound is None and rewind else {},
    )
    sinks = {ENRICH: writer, LOAD: replace(DONE.sinks[LOAD], frontier=inner(read))}
    return replace(DONE, sinks={**DONE.sinks, **sinks})


def inner(*ends: int) -> Vector:
    return offsets(*ends, topic_id=INNER)


@pytest.mark.parametrize(
    ("content", "rewinding"),
    [
        (fed(rewind=0, read=9), True),
        (fed(rewound=2, read=9), True),
        (fed(read=6), True),
        (fed(read=7), None),
        (None, None),
    ],
    ids=["wanted", "written again", "not read yet", "read", "nobody knows"],
)
def test_a_sink_is_rewinding_until_it_has_read_what_the_stage_before_wrote_again(
    content: Slot | None, rewinding: bool | None
) -> None:
    first = rewound(1)
    record = replace(first, rewinds=(replace(first.rewinds[0], stage="enrich"),))
    marked = rewinding is not None or content is None
    assert find_rewinding(record, content) == ({SINK: rewinding} if marked else {})


def test_a_sink_two_stages_later_waits_for_the_batch_between() -> None:
    first = rewound(1)
    *_, load = first.stages
    source = replace(load.inputs[0], topic="between", topic_id="between")
    between = make_sink("between", topic_id="between", terminal=False)
    middle = replace(load, name="middle", sinks=(between,))
    stages = (first.stages[0], middle, replace(load, inputs=(source,)))
    record = replace(first, stages=stages, rewinds=(replace(first.rewinds[0], stage="enrich"),))
    hops = tuple(
        Hop(sequence=n, inputs=inner(read), outputs={("between", 0): written})
        for n, (read, written) in enumerate([(5, 10), (7, 12), (8, 14)])
    )
    content = fed(read=0)

    def marks(hops: tuple[Hop, ...], read: int) -> Rewinding:
        state = SinkState(frontier=hops[-1].inputs, hops=hops)
        lake = replace(content.sinks[LOAD], frontier={("between", 0): read})
        sinks = {**content.sinks, "middle/between@1": state, LOAD: lake}
        return find_rewinding(record, replace(content, sinks=sinks))

    assert marks(hops[:1], 12) == {SINK: True}
    assert marks(hops[:2], 11) == {SINK: True}
    assert marks(hops, 12) == {}


def test_a_sink_that_upserted_under_another_name_is_marked_under_its_present_one() -> None:
    record = rewound(1)
    load = replace(record.stages[-1], name="store", was=("load",))
    renamed = replace(record.rewinds[0], stage="store")
    record = replace(record, stages=(*record.stages[:-1], load), rewinds=(renamed,))
    assert find_rewinding(record, with_lake(1, 3)) == {("store", "lake"): True}


def test_a_sink_that_was_removed_while_it_was_rewound_stays_marked() -> None:
    content = with_lake(1, 3)
    *stages, load = stages_of(content)
    earlier = EarlierManifest(generation=1, manifest=applied(MANIFEST), until=2)
    record = replace(rewound(1), stages=tuple(stages), earlier=(earlier,))
    gone = with_stages(content, *stages, gone={2: (load,)})
    assert find_rewinding(record, gone) == {("load", "lake"): True}


def test_a_stage_that_is_called_as_a_removed_one_was_is_marked() -> None:
    """Both are as old."""
    first = rewound(1)
    enrich, load = first.stages
    removed = replace(load, name="pour", sinks=(make_sink("pool"),))
    pour = replace(load, name="pour", was=("load",))
    record = replace(
        first,
        manifest=applied(MANIFEST.replace("name: load", "name: pour")),
        stages=(enrich, pour),
        rewinds=(replace(first.rewinds[0], stage="pour"),),
    )
    for before in ((), (load,)):  # an older one of that name, too
        gone = {2: tuple(replace(each, name="pour", was=("old",)) for each in before)}
        content = with_stages(DONE, enrich, pour, gone={**gone, 3: (removed,)})
        assert find_rewinding(record, content) == {("pour", "lake"): True}


def test_of_pipelines_of_one_name_the_worst_counts() -> None:
    marks: tuple[bool | None, ...] = (False, None, True, None)
    known = [("orders", {SINK: mark}) for mark in marks]
    assert unite(known) == {"orders": {SINK: True}}
    assert unite(known[:2]) == {"orders": {SINK: None}}


@inside(world)
async def test_waits_and_streams_say_it_too(w: World) -> None:
    w.store.put(DONE, version=1)
    w.owners.directory.accept(rewound(1))
    waited = await w.tokens.wait(token(span(0, 5)), WAIT_S)
    assert waited.stages[-1].sinks[0].rewinding is True
    async for change in w.tokens.follow(token(span(0, 5))):
        assert change is not None
        assert change.outcome.stages[-1].sinks[0].rewinding is True


def test_a_stream_says_when_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PING_S", 0.02)
    asyncio.run(_follow())


async def _follow() -> None:
    async with world() as w:
        w.store.put(SHORT, version=1)
        w.owners.directory.accept(rewound())
        changes = w.tokens.follow(token(span(0, 5)))
        first = await anext(changes)
        assert first is not None
        assert first.outcome.stages[-1].sinks[0].rewinding is False
        w.owners.directory.accept(rewound(1))
        second = await anext(changes)
        assert second is not None
        assert second.outcome.stages[-1].sinks[0].rewinding is True


async def _complete(w: World) -> Outcome:
    w.store.put(DONE, version=1)
    (outcome,) = await w.tokens.now([token(span(0, 5))])
    assert isinstance(outcome, Outcome)
    return outcome


class Views:
    """What an outcome was judged by: slots of this generation."""

    def __init__(self, generation: int) -> None:
        self.generation = generation

    def view(self, pipeline: PipelineKey) -> View:
        return replace(view(slot()), generation=self.generation)
