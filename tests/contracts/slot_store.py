"""The `SlotStore` of status: what the tracker wrote, who wrote it, and how long ago."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol, TypeVar

import pytest

from builders import make_batch
from message_builders import make_entry
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.slots import (
    NON_FINAL_AGE_MS_MAX,
    DeadEntry,
    Progress,
    SinkState,
    Slot,
    entry_of,
)
from waybill_status.app.ports import SlotStore
from waybill_status.core.outcomes.dead_letters import DeadRun
from waybill_status.core.outcomes.views import PipelineKey, SlotReading, SlotStamp, usable_slot
from waybill_token_tracker.app.ports import SlotWrite, Store, WriteResult

T = TypeVar("T")
TENANT: Final = "default"
ONE, OTHER = (TENANT, "uid-1"), (TENANT, "uid-2")
SINK: Final = "enrich/lake@1"
WAKE_TIMEOUT_S: Final = 10.0
SLOT: Final = Slot(
    tenant=TENANT, pipeline_uid="uid-1", generation=3, sinks={SINK: SinkState(batch=make_batch(7))}
)
Ask = Callable[[SlotStore], Awaitable[T]]


class Bench(Protocol):
    """A server that is empty at first, and a tracker that writes there."""

    def ask(self, question: Ask[T]) -> T: ...

    def write(
        self,
        slot: Slot,
        *,
        mark: str,
        history: Sequence[Progress] = (),
        dead: Sequence[DeadEntry] = (),
    ) -> None:
        """The histories of its sinks are what they were, and `history` behind it; so are its
        entries of dead letters."""

    def confirm(self, slot: Slot, *, mark: str) -> None: ...

    def grow_old(self, slot: Slot, by_ms: int) -> None:
        """So much time goes by without a word of the tracker."""

    def forget(self) -> None: ...

    def move(self) -> None:
        """Another server answers, with what this one held."""

    def cut_off(self) -> None: ...


class WritesSlots:
    """A tracker that writes to `store`."""

    store: Store

    def write(
        self,
        slot: Slot,
        *,
        mark: str,
        history: Sequence[Progress] = (),
        dead: Sequence[DeadEntry] = (),
    ) -> None:
        tell(self.store, slot, slot=slot, mark=mark, history=history, dead=dead)

    def confirm(self, slot: Slot, *, mark: str) -> None:
        tell(self.store, slot, slot=None, mark=mark)


class SlotStoreContract:
    """A subclass gives the `bench`, as a fixture."""

    def test_of_what_nobody_wrote_there_is_no_slot(self, bench: Bench) -> None:
        found = read(bench)
        assert (found.slot, usable_slot(found)) == (None, None)
        assert (found.stamp.run_id, found.stamp.version, found.stamp.age_ms) == (None, 0, None)
        assert not found.stamp.fresh

    def test_what_was_written_is_read_with_its_mark(self, bench: Bench) -> None:
        bench.write(SLOT, mark="a")
        found = read(bench)
        assert usable_slot(found) == SLOT
        assert (found.stamp.mark, found.stamp.fresh) == ("a", True)

    def test_each_write_is_another_version_and_a_confirmation_is_none(self, bench: Bench) -> None:
        bench.write(SLOT, mark="a")
        first = read(bench).stamp
        bench.confirm(SLOT, mark="a")
        assert read(bench).stamp.version == first.version
        bench.write(replace(SLOT, generation=4), mark="b")
        found = read(bench)
        assert found.stamp.version > first.version
        assert (found.stamp.mark, usable_slot(found)) == ("b", replace(SLOT, generation=4))

    def test_a_slot_is_fresh_since_the_last_word_of_the_tracker(self, bench: Bench) -> None:
        bench.write(SLOT, mark="a")
        bench.grow_old(SLOT, NON_FINAL_AGE_MS_MAX + 1)
        found = read(bench)
        assert not found.stamp.fresh
        assert usable_slot(found) == SLOT
        bench.confirm(SLOT, mark="a")
        assert read(bench).stamp.fresh

    def test_what_was_forgotten_is_no_slot(self, bench: Bench) -> None:
        bench.write(SLOT, mark="a", history=[batch(1)])
        bench.forget()
        assert usable_slot(read(bench)) is None
        assert bench.ask(lambda store: store.count(ONE, SINK)) == 0

    def test_what_another_server_held_is_no_slot(self, bench: Bench) -> None:
        bench.write(SLOT, mark="a")
        bench.move()
        found = read(bench)
        assert found.stamp.run_id not in (None, found.stamp.server_run_id)
        assert usable_slot(found) is None

    def test_pipelines_are_told_apart(self, bench: Bench) -> None:
        other = replace(SLOT, pipeline_uid=OTHER[1], generation=9)
        bench.write(SLOT, mark="a", history=[batch(1)])
        bench.write(other, mark="b", history=[batch(1), batch(2)])
        found = bench.ask(lambda store: store.read([ONE, OTHER]))
        assert [usable_slot(found[key]) for key in (ONE, OTHER)] == [SLOT, other]
        assert bench.ask(lambda store: store.count(ONE, SINK)) == 1
        assert bench.ask(lambda store: store.count(OTHER, SINK)) == 2
        assert bench.ask(lambda store: store.read([])) == {}

    def test_stamps_are_those_of_the_readings(self, bench: Bench) -> None:
        bench.write(SLOT, mark="a")
        stamps = bench.ask(lambda store: store.stamps([ONE, OTHER]))
        found = bench.ask(lambda store: store.read([ONE, OTHER]))
        assert [*map(ageless, stamps.values())] == [ageless(r.stamp) for r in found.values()]

    def test_a_history_is_read_from_both_ends(self, bench: Bench) -> None:
        bench.write(SLOT, mark="a", history=[batch(1), batch(2)])
        bench.write(SLOT, mark="b", history=[batch(3)])
        assert bench.ask(lambda store: store.count(ONE, SINK)) == 3
        assert bench.ask(lambda store: store.newest(ONE, SINK, 2)) == [batch(2), batch(3)]
        assert bench.ask(lambda store: store.newest(ONE, SINK, 9)) == [batch(n) for n in (1, 2, 3)]
        for rank, found in enumerate([batch(1), batch(2), batch(3), None]):
            assert bench.ask(lambda store, at=rank: store.at_rank(ONE, SINK, at)) == found  # type: ignore[misc]

    def test_of_another_sink_nothing_is_remembered(self, bench: Bench) -> None:
        bench.write(SLOT, mark="a", history=[batch(1)])
        assert bench.ask(lambda store: store.newest(ONE, "enrich/copy@1", 2)) == []
        assert bench.ask(lambda store: store.count(ONE, "enrich/copy@1")) == 0
        assert bench.ask(lambda store: store.at_rank(ONE, "enrich/copy@1", 0)) is None

    def test_entries_are_found_by_what_they_reach_into(self, bench: Bench) -> None:
        bench.write(SLOT, mark="a", dead=[entry(3), entry(7), entry(2, 20), entry(5, partition=1)])
        bench.write(SLOT, mark="b", dead=[entry(9)])
        for start, end, found in (
            (0, 3, {2}),
            (3, 4, {2, 3}),
            (4, 9, {2, 7}),
            (8, 10, {2, 9}),
            (20, 99, set()),
        ):
            read = letters(bench, run(start, end))
            assert {each.start for each in read if each.start < end and start < each.end} == found
        two = letters(bench, run(3, 4), run(6, 8), run(0, 9, partition=1))
        assert {entry(3), entry(7), entry(5, partition=1)} <= set(two)
        assert len(set(two)) == len(two)

    def test_entries_are_counted_with_the_stamp_that_they_stand_by(self, bench: Bench) -> None:
        bench.write(SLOT, mark="a", dead=[entry(3), entry(7), entry(5, partition=1)])
        runs = [run(0, 1), run(9, 10, partition=1), run(0, 9, partition=2)]
        found = bench.ask(lambda store: store.dead(ONE, runs, 9))
        assert found.counts == {("T", 0): 2, ("T", 1): 1, ("T", 2): 0}
        assert ageless(found.stamp) == ageless(read(bench).stamp)
        other = bench.ask(lambda store: store.dead(OTHER, runs, 9))
        assert (set(other.counts.values()), other.stamp.run_id) == ({0}, None)

    def test_no_more_entries_are_read_than_are_asked_for(self, bench: Bench) -> None:
        bench.write(SLOT, mark="a", dead=[*map(entry, range(9)), entry(0, partition=1)])
        for count in (1, 5, 10):
            runs = [run(0, 4), run(5, 9), run(0, 1, partition=1)]
            found = bench.ask(lambda store, n=count, runs=runs: store.dead(ONE, runs, n))  # type: ignore[misc]
            assert len(found.entries) == min(count, 9)

    def test_who_listens_is_woken_by_each_write_and_by_no_confirmation(self, bench: Bench) -> None:
        other = replace(SLOT, pipeline_uid=OTHER[1])

        async def listen(store: SlotStore) -> list[PipelineKey | None]:
            wakes = store.wakes()
            heard = [await asyncio.wait_for(anext(wakes), WAKE_TIMEOUT_S)]
            bench.write(SLOT, mark="a")
            bench.confirm(SLOT, mark="a")
            bench.write(other, mark="b")
            return [*heard, *[await asyncio.wait_for(anext(wakes), WAKE_TIMEOUT_S) for _ in "ab"]]

        assert bench.ask(listen) == [None, ONE, OTHER]

    def test_a_store_that_is_away_says_so(self, bench: Bench) -> None:
        bench.write(SLOT, mark="a")
        bench.cut_off()
        questions: list[Ask[object]] = [
            lambda store: store.read([ONE]),
            lambda store: store.stamps([ONE]),
            lambda store: store.newest(ONE, SINK, 1),
            lambda store: store.count(ONE, SINK),
            lambda store: store.at_rank(ONE, SINK, 0),
            lambda store: store.dead(ONE, [run(0, 1)], 1),
            lambda store: anext(store.wakes()),
        ]
        for question in questions:
            with pytest.raises(Retryable):
                bench.ask(question)


def read(bench: Bench) -> SlotReading:
    return bench.ask(lambda store: store.read([ONE]))[ONE]


def letters(bench: Bench, *runs: DeadRun) -> tuple[DeadEntry, ...]:
    return bench.ask(lambda store: store.dead(ONE, runs, 99)).entries


def run(start: int, end: int, partition: int = 0) -> DeadRun:
    return DeadRun(topic_id="T", partition=partition, start=start, end=end, longest=18)


def entry(start: int, end: int | None = None, *, partition: int = 0) -> DeadEntry:
    return make_entry(start, end, id=f"{partition}/{start}", topic_id="T", partition=partition)


def ageless(stamp: SlotStamp) -> SlotStamp:
    return replace(stamp, age_ms=None)


def batch(number: int) -> Progress:
    return Progress(
        sink=SINK,
        reached={},
        batch=make_batch(number, committed_at=number),
    )


def tell(
    store: Store,
    told: Slot,
    *,
    slot: Slot | None,
    mark: str,
    history: Sequence[Progress] = (),
    dead: Sequence[DeadEntry] = (),
) -> None:
    """As a tracker writes or, with `slot` None, confirms; it finds out first what is missing."""
    write = SlotWrite(
        tenant=told.tenant,
        pipeline_uid=told.pipeline_uid,
        topic_id="C",
        partition=0,
        position=1,
        at=1,
        slot=slot,
        writer="me",
        mark=mark,
        history=tuple(map(entry_of, history)),
        dead=tuple(dead),
    )
    (result,) = store.write([write])
    if result == WriteResult.LOST:
        (result,) = store.write([replace(write, rebuilt=True)])
    assert result == WriteResult.WRITTEN
