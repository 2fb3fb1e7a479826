"""The tracker's `Journal`: what a restart begins with, and how far the facts go."""

from dataclasses import replace
from typing import Final, Protocol

import pytest

from builders import TENANT, make_snapshot
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import Snapshot
from waybill_shared.contract.slots import Slot
from waybill_token_tracker.app.ports import Journal
from waybill_token_tracker.core.snapshots import pack

FACTS: Final = 3


class Bench(Protocol):
    """A tracker that has taken `partition` over, in which nothing was ever said."""

    partition: int
    uids: tuple[str, str]
    """Of pipelines in this partition."""

    @property
    def journal(self) -> Journal: ...

    def tell(self, count: int) -> None:
        """So many facts come, and the tracker has read them."""

    def saved(self) -> tuple[dict[str, str], int]:
        """What the next tracker would find: slots by uid, chunks by their keys behind it, and from
        where it would read."""

    def replace(self) -> None:
        """Another tracker takes over; this one goes on as if it had not."""

    def create_anew(self) -> None:
        """The commits topic, under its old name."""


class JournalContract:
    """A subclass gives the `bench`, as a fixture."""

    def test_end_is_behind_all_that_was_told(self, bench: Bench) -> None:
        assert bench.journal.end(bench.partition) == 0
        bench.tell(FACTS)
        assert bench.journal.end(bench.partition) == FACTS

    def test_next_one_begins_with_what_was_saved(self, bench: Bench) -> None:
        one, other = bench.uids
        bench.tell(FACTS)
        bench.journal.save(
            [snapshot(bench, one, 1), snapshot(bench, other, 1)], {bench.partition: 1}
        )
        assert bench.saved() == ({one: text(one, 1), other: text(other, 1)}, 1)
        bench.journal.save([snapshot(bench, one, 2)], {bench.partition: 2})
        assert bench.saved() == ({one: text(one, 2), other: text(other, 1)}, 2)
        bench.journal.save([], {bench.partition: FACTS})
        assert bench.saved() == ({one: text(one, 2), other: text(other, 1)}, FACTS)

    def test_chunks_of_dead_letters_stand_beside_the_slot(self, bench: Bench) -> None:
        """Each until it is another one, or is no more."""
        uid = bench.uids[0]
        bench.tell(FACTS)
        chunks = [chunk(bench, uid, 0, "a"), chunk(bench, uid, 1, "b"), chunk(bench, uid, 2, "c")]
        bench.journal.save([snapshot(bench, uid, 1), *chunks], {bench.partition: 1})
        all_three = {f"{uid}/dead/0": "a", f"{uid}/dead/1": "b", f"{uid}/dead/2": "c"}
        assert bench.saved() == ({uid: text(uid, 1), **all_three}, 1)
        fewer = [chunk(bench, uid, 1, "d"), chunk(bench, uid, 2, "")]
        bench.journal.save([snapshot(bench, uid, 2), *fewer], {bench.partition: 2})
        two = {f"{uid}/dead/0": "a", f"{uid}/dead/1": "d"}
        assert bench.saved() == ({uid: text(uid, 2), **two}, 2)

    def test_who_was_replaced_saves_nothing(self, bench: Bench) -> None:
        one, other = bench.uids
        bench.tell(FACTS)
        bench.journal.save([snapshot(bench, one, 1)], {bench.partition: 1})
        bench.replace()
        for _ in range(2):
            with pytest.raises(Retryable):
                bench.journal.save([snapshot(bench, other, 2)], {bench.partition: 2})
        assert bench.saved() == ({one: text(one, 1)}, 1)

    def test_end_of_another_topic_is_none(self, bench: Bench) -> None:
        """Positions in the old one say nothing there, and this tracker knows no other."""
        bench.tell(FACTS)
        known = bench.journal.topic_id
        bench.create_anew()
        assert bench.journal.topic_id == known
        with pytest.raises(Retryable):
            bench.journal.end(bench.partition)


def text(uid: str, generation: int) -> str:
    return pack(Slot(tenant=TENANT, pipeline_uid=uid, generation=generation), ())


def chunk(bench: Bench, uid: str, number: int, packed: str) -> Snapshot:
    return replace(make_snapshot(packed, partition=bench.partition, uid=uid), chunk=number)


def snapshot(bench: Bench, uid: str, generation: int) -> Snapshot:
    return make_snapshot(text(uid, generation), partition=bench.partition, uid=uid)
