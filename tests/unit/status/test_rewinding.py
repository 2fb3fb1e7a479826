"""Which sinks show older rows again because their stage was rewound, and that answers say so."""

import asyncio
from dataclasses import replace

import pytest

from builders import applied
from unit.status.coroutines import WAIT_S, inside
from unit.status.slots import LOAD, offsets, record, slot, span, token
from unit.status.worlds import World, world
from waybill_shared.contract.events import PipelineRecord
from waybill_shared.contract.rewinds import StageRewind
from waybill_shared.contract.slots import Slot
from waybill_shared.contract.token_views import WHOLE
from waybill_shared.contract.words import OutcomeKind
from waybill_status.core.outcomes.outcome import Outcome

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
    w.owners.directory.accept(rewound(1))
    outcome = await _complete(w)
    w.store.away = True
    marked = await w.tokens.mark(token(span(0, 5)), WHOLE, outcome)
    assert marked.stages[-1].sinks[0].rewinding is None


@inside(world)
async def test_waits_and_streams_say_it_too(w: World) -> None:
    w.store.put(DONE, version=1)
    w.owners.directory.accept(rewound(1))
    waited = await w.tokens.wait(token(span(0, 5)), WAIT_S)
    assert waited.stages[-1].sinks[0].rewinding is True
    async for change in w.tokens.follow(token(span(0, 5))):
        assert change is not None
        assert change.outcome.stages[-1].sinks[0].rewinding is True


async def _complete(w: World) -> Outcome:
    w.store.put(DONE, version=1)
    (outcome,) = await w.tokens.now([token(span(0, 5))])
    assert isinstance(outcome, Outcome)
    return outcome
