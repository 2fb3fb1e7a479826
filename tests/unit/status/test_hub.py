"""Many who wait: each hears of its own changes, none sleeps on, and they cost little."""

import asyncio
import gc
import random
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, cast

import pytest

from clocks import FixedClock
from unit.status.coroutines import WAIT_S, in_a_loop, inside
from unit.status.fakes import FakeOwners, FakeStore
from unit.status.slots import KEY, LOAD, RING, progress, record, slot, span, token
from unit.status.worlds import DONE, SHORT, World, settled, world
from waybill_shared.contract.slots import Progress, Slot
from waybill_shared.contract.tokens import Token
from waybill_shared.contract.words import OutcomeKind
from waybill_status.app.outcomes.feeds import Feed
from waybill_status.app.outcomes.hub import Hub
from waybill_status.app.outcomes.question import Change, SharedQuestion
from waybill_status.app.outcomes.tokens import Tokens
from waybill_status.core.outcomes.views import PipelineKey

SEEDS = range(30)
COMMITS = 60
WAITERS = 500
OTHERS = 60  # commits that concern nobody
BYTES_OF_A_WAITER_MAX = 10_000  # most of it are Python's: a task, two generators, a timer


class Growing(FakeStore):
    """Keeps every batch, as the tracker does."""

    def commit(self, content: Slot, *, version: int) -> None:
        kept = self.histories
        for key, state in content.sinks.items():
            batches, ends = kept.setdefault((KEY, key), []), [*state.reached.values()]
            if not batches or ends != [*batches[-1].reached.values()]:
                batches.append(progress(version, *ends, sink=key))
        self.histories = {}
        self.put(content, version=version)
        self.histories = kept


class Held(FakeStore):
    """Says nothing of batches until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()

    async def newest(self, pipeline: PipelineKey, sink: str, count: int) -> list[Progress]:
        await self.let.wait()
        return await super().newest(pipeline, sink, count)


class Reader:
    """Follows a token and keeps what it was told."""

    def __init__(self, tokens: Tokens, asked: Token) -> None:
        self.asked = asked
        self.told: list[Change] = []
        self.task = asyncio.create_task(self._read(tokens))

    async def _read(self, tokens: Tokens) -> None:
        changes = cast(AsyncGenerator[Change | None, None], tokens.follow(self.asked))
        async with aclosing(changes):
            async for change in changes:
                if change is not None:
                    self.told.append(change)

    async def leave(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


async def quiet() -> None:
    for _ in range(100):
        await settled()


def remembered() -> int:
    """What is left in this process of tokens and pipelines that were awaited."""
    gc.collect()
    return sum(type(each) in (SharedQuestion, Feed) for each in gc.get_objects())


@pytest.mark.parametrize("seed", SEEDS)
def test_whoever_waits_is_told_what_has_become_of_its_token(seed: int) -> None:
    """Among commits at any moment and readers that come and go. No look at the stamps helps out."""
    dice = random.Random(seed)

    @in_a_loop
    async def scene() -> None:
        store, clock = Growing(), FixedClock()
        hub = Hub(store, waiters_max=WAITERS, tick_s=10 * WAIT_S)
        owners = FakeOwners(record())
        tokens = Tokens(owners, owners, store=store, hub=hub, ring=RING, clock=clock)
        feeding = asyncio.create_task(hub.run())
        readers: list[Reader] = []
        ends = {"copy": [0, 0], "lake": [0, 0]}
        for version in range(1, COMMITS):
            for _ in range(dice.randrange(4)):
                start, partition = dice.randrange(40), dice.randrange(2)
                asked = token(span(start, start + dice.randrange(1, 9), partition))
                readers.append(Reader(tokens, asked))
            if dice.random() < 0.3 and readers:
                await readers.pop(dice.randrange(len(readers))).leave()
            ends[dice.choice(["copy", "lake"])][dice.randrange(2)] += dice.randrange(4)
            copy, lake = ((first, second) for first, second in ends.values())
            store.commit(slot(copy=copy, lake=lake), version=version)
            for _ in range(dice.randrange(12)):
                await asyncio.sleep(0)
        await quiet()
        for reader, now in zip(
            readers, await tokens.now([reader.asked for reader in readers]), strict=True
        ):
            assert reader.told[-1].outcome == now
        store.commit(slot(copy=(60, 60), lake=(60, 60)), version=COMMITS)
        await asyncio.gather(*(reader.task for reader in readers))
        assert {reader.told[-1].outcome.outcome for reader in readers} == {OutcomeKind.COMPLETE}
        feeding.cancel()

    scene()
    assert remembered() == 0


@inside(world)
async def test_equal_tokens_share_one_answer(w: World) -> None:
    w.store.put(SHORT, version=1)
    readers = [Reader(w.tokens, token(span(0, 5))) for _ in range(100)]
    await quiet()
    w.store.put(DONE, version=2)
    await asyncio.gather(*(reader.task for reader in readers))
    assert {tuple(reader.told) for reader in readers} == {tuple(readers[0].told)}
    assert w.store.history_reads == 3, "copy once, then copy and lake"


@inside(world)
async def test_a_commit_asks_only_those_whose_records_it_brings(w: World) -> None:
    w.store.put(slot(copy=(99,), lake=(0,)), version=1)
    readers = [Reader(w.tokens, token(span(at, at + 2))) for at in range(20)]
    await quiet()
    assert w.store.history_reads == 1
    asked: list[int] = []
    for version, end in enumerate([0, 1, 1, 2, 10], start=2):
        before = sum(len(reader.told) for reader in readers)
        w.store.put(slot(copy=(99,), lake=(end,)), version=version)
        await quiet()
        asked.append(sum(len(reader.told) for reader in readers) - before)
    assert asked == [0, 1, 0, 2, 9]
    assert w.store.history_reads == 1 + 1 + 2 + 2, "none of a commit that brings nothing"
    for reader in readers:
        await reader.leave()


@inside(world)
async def test_a_fault_of_ours_is_told_to_all_who_wait_for_that_token(w: World) -> None:
    w.store.put(slot(copy=(5,), lake=(0,)), version=1)
    readers = [Reader(w.tokens, token(span(0, 5))) for _ in range(3)]
    await quiet()
    w.store.put(DONE, version=2)
    w.store.histories[KEY, LOAD] = [cast(Progress, None)]
    found = await asyncio.gather(*(r.task for r in readers), return_exceptions=True)
    assert [type(each) for each in found] == [AttributeError] * 3
    w.store.put(DONE, version=3)
    assert (await w.tokens.wait(token(span(0, 5)), WAIT_S)).outcome == OutcomeKind.COMPLETE


@in_a_loop
async def test_a_failure_that_nobody_waits_for_any_more_is_forgotten() -> None:
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    store = Held()
    feed = Feed(KEY, store)
    asking = asyncio.create_task(feed.newest(LOAD))
    await settled()
    asking.cancel()
    store.histories_away = True
    store.let.set()
    await settled()
    store.put(DONE, version=1)
    store.histories_away = False
    assert await feed.newest(LOAD) == store.histories[KEY, LOAD]
    gc.collect()
    assert faults == []


def test_many_waiters_cost_little_and_leave_nothing() -> None:
    @inside(partial(world, waiters_max=WAITERS))
    async def scene(w: World) -> None:
        w.store.put(slot(copy=(99,), lake=(0,)), version=1)
        gc.collect()
        tracemalloc.start()
        readers = [Reader(w.tokens, token(span(n % 50, n % 50 + 9))) for n in range(WAITERS)]
        await quiet()
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        for version in range(2, 2 + OTHERS):
            w.store.put(slot(copy=(99,), lake=(0, version)), version=version)
            await settled()
        gc.collect()
        later, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < WAITERS * BYTES_OF_A_WAITER_MAX
        assert later < held * 1.1, "commits that concern nobody leave nothing"
        while readers:
            await readers.pop().leave()
        assert remembered() <= 2, "the last one of each may stand in a local variable"
        before = w.store.reads
        w.store.put(DONE, version=2 + OTHERS)
        await quiet()
        assert w.store.reads == before, "nobody waits"

    scene()
    assert remembered() == 0
