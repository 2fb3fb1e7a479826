"""The batch that brought a token to a sink, however far back it lies."""

import asyncio

import pytest

from unit.status.fakes import FakeStore
from unit.status.slots import KEY, LOAD, TOPIC, progress, slot, view
from waybill_shared.contract.slots import Progress
from waybill_shared.contract.vectors import ENDLESS, Span
from waybill_status.app.dead_letters.replays import KnownReplays
from waybill_status.app.outcomes.answering import NEWEST
from waybill_status.app.outcomes.history import last_of
from waybill_status.app.ports import SlotViews
from waybill_status.core.outcomes.through import SinkPath
from waybill_status.core.outcomes.views import PipelineKey, View


class OneLook:
    """A `SlotViews` of the store without a cache."""

    def __init__(self, store: FakeStore) -> None:
        self.store = store
        self.replays = KnownReplays()
        self.written: dict[tuple[PipelineKey, SinkPath], tuple[Span, ...]] = {}

    def again(self) -> None:
        raise AssertionError("all could be read")

    def view(self, pipeline: PipelineKey) -> View:
        return view(slot())

    async def newest(self, pipeline: PipelineKey, sink: str) -> list[Progress]:
        return await self.store.newest(pipeline, sink, NEWEST)


def found(store: FakeStore, end: int, *, partition: int = 0) -> int | None:
    slots: SlotViews = OneLook(store)
    batch = asyncio.run(last_of(slots, KEY, LOAD, {(TOPIC, partition): end}))
    return None if batch is None else batch.batch.batch_id


def store_of(first: int, last: int) -> FakeStore:
    """Batch n has brought the sink to offset 10 × (n + 1)."""
    batches = [
        progress(number, 10 * (number + 1), before=10 * number) for number in range(first, last + 1)
    ]
    return FakeStore(histories={(KEY, LOAD): batches})


@pytest.mark.parametrize("last", [0, 3, NEWEST - 1, NEWEST, NEWEST + 1, 500])
def test_every_remembered_batch_is_found(last: int) -> None:
    store = store_of(0, last)
    for number in {0, 1, last // 2, last - NEWEST, last - NEWEST + 1, last - 1, last}:
        if 0 <= number <= last:
            assert found(store, 10 * (number + 1)) == number
            assert found(store, 10 * number + 1) == number


def test_what_was_forgotten_is_not_guessed() -> None:
    store = store_of(100, 400)
    assert found(store, 1000) is None, "batch 99 or an older one brought it"
    assert found(store, 1001) == 100
    assert found(store, 1011) == 101
    assert found(store, 1020) == 101
    assert found(FakeStore(), 1) is None
    assert found(store_of(0, 3), 999) is None


@pytest.mark.parametrize("later", [0, 2 * NEWEST])
def test_the_batch_that_closed_a_topic_brought_what_nobody_named(later: int) -> None:
    store = store_of(0, 1)
    store.histories[KEY, LOAD] += [
        progress(number, ENDLESS, before=20 if number == 2 else ENDLESS)
        for number in range(2, later + 3)
    ]
    assert found(store, 9, partition=5) == 2


def test_old_batches_take_few_questions() -> None:
    store = store_of(0, 2_000)
    assert found(store, 5) == 0
    assert store.history_reads < 14
