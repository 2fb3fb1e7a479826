"""The tracker's `Store`: who may write a slot, and when it counts as lost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import pytest

from builders import make_batch
from message_builders import make_entry
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.slots import HISTORY_LENGTH_MAX, DeadEntry, Progress, Slot, entry_of
from waybill_token_tracker.app.ports import SlotWrite, Store, WriteResult
from waybill_token_tracker.core.dead_letter_entries import ENTRIES_MAX, add_counts

TENANT: Final = "default"
UID: Final = "uid-1"
SINK: Final = "enrich/lake@1"
WRITTEN, NEWER, LOST, STALE = (
    WriteResult.WRITTEN, WriteResult.NEWER, WriteResult.LOST, WriteResult.STALE,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Held:
    generation: int
    position: int
    history: int
    dead: tuple[DeadEntry, ...] = ()


class Bench(Protocol):
    """A store that is empty at first, and what can happen to its server."""

    @property
    def store(self) -> Store: ...

    def held(self) -> Held | None: ...

    def copy(self) -> object: ...

    def put_back(self, copied: object) -> None:
        """The server is the same one as before, its content is of another moment."""

    def forget(self) -> None: ...

    def move(self) -> None:
        """Another server answers, with what this one held."""

    def cut_off(self) -> None: ...


def write(
    bench: Bench,
    position: int,
    *,
    mark: str = "m",
    rebuilt: bool = False,
    batches: int = 0,
    topic_id: str = "C",
    writer: str = "me",
    dead: Sequence[DeadEntry] = (),
    known: Sequence[DeadEntry] = (),
    anew: bool = False,
) -> WriteResult:
    """A slot whose generation is its position, so that it can be told. It counts the `dead` that
    are told, and those that are `known`."""
    slot = Slot(tenant=TENANT, pipeline_uid=UID, generation=position)
    slot = replace(slot, dead=add_counts((), (*known, *dead)))
    place = replace(_place(position, slot, mark, topic_id), writer=writer)
    place = replace(place, dead=tuple(dead), replaces_dead=anew or rebuilt)
    return _one(bench, place, rebuilt, batches)


def rebuild(
    bench: Bench,
    position: int,
    *,
    mark: str = "m",
    batches: int = 0,
    dead: Sequence[DeadEntry] = (),
) -> WriteResult:
    """As a tracker does it: it finds that the slot is missing, and writes it whole."""
    if (found := write(bench, position, mark=mark)) != LOST:
        return found
    return write(bench, position, mark=mark, rebuilt=True, batches=batches, dead=dead)


def confirm(bench: Bench, position: int, *, mark: str = "m", topic_id: str = "C") -> WriteResult:
    return _one(bench, _place(position, None, mark, topic_id), False, 0)


class StoreContract:
    """A subclass gives the `bench`, as a fixture."""

    def test_new_slot_is_only_written_whole(self, bench: Bench) -> None:
        assert write(bench, 5) == LOST
        assert confirm(bench, 5) == LOST
        assert bench.held() is None
        assert write(bench, 5, rebuilt=True, batches=2) == WRITTEN
        assert bench.held() == Held(generation=5, position=5, history=2)

    def test_whoever_is_behind_writes_nothing(self, bench: Bench) -> None:
        rebuild(bench, 5)
        assert write(bench, 4) == NEWER
        assert write(bench, 4, rebuilt=True) == NEWER
        assert confirm(bench, 4) == NEWER
        assert bench.held() == Held(generation=5, position=5, history=0)

    def test_whoever_is_as_far_writes(self, bench: Bench) -> None:
        rebuild(bench, 5)
        assert write(bench, 5, mark="n") == WRITTEN
        assert write(bench, 6, mark="o") == WRITTEN
        assert bench.held() == Held(generation=6, position=6, history=0)

    def test_a_slot_of_another_topic_is_lost(self, bench: Bench) -> None:
        """The commits topic was created anew: its offsets begin again."""
        rebuild(bench, 900, mark="old")
        assert confirm(bench, 3, mark="old", topic_id="D") == LOST
        assert write(bench, 3, mark="new", topic_id="D") == LOST
        assert write(bench, 3, mark="new", topic_id="D", rebuilt=True) == WRITTEN
        assert bench.held() == Held(generation=3, position=3, history=0)
        assert confirm(bench, 4, mark="new", topic_id="D") == WRITTEN
        assert write(bench, 3, mark="late", topic_id="D") == NEWER

    def test_who_knows_the_old_topic_does_not_write_over_the_new_one(self, bench: Bench) -> None:
        """It stood still with a slot to be written whole, or with one that had changed."""
        assert write(bench, 900) == LOST
        assert write(bench, 3, topic_id="D", writer="next") == LOST
        assert write(bench, 3, topic_id="D", writer="next", rebuilt=True) == WRITTEN
        assert write(bench, 900, rebuilt=True) == LOST
        assert write(bench, 901) == LOST
        assert bench.held() == Held(generation=3, position=3, history=0)
        assert write(bench, 4, topic_id="D", writer="next") == WRITTEN
        assert write(bench, 902, rebuilt=True) == LOST

    def test_confirming_moves_the_position_only(self, bench: Bench) -> None:
        rebuild(bench, 5, batches=1)
        assert confirm(bench, 8) == WRITTEN
        assert bench.held() == Held(generation=5, position=8, history=1)
        assert write(bench, 7) == NEWER

    def test_a_slot_with_another_mark_is_not_confirmed(self, bench: Bench) -> None:
        rebuild(bench, 5, mark="mine")
        assert confirm(bench, 5, mark="other") == STALE
        assert confirm(bench, 9, mark="other") == STALE
        assert bench.held() == Held(generation=5, position=5, history=0)

    def test_an_older_copy_is_not_confirmed_and_written_over(self, bench: Bench) -> None:
        rebuild(bench, 5, mark="first")
        copied = bench.copy()
        write(bench, 6, mark="second")
        bench.put_back(copied)
        assert bench.held() == Held(generation=5, position=5, history=0)
        assert confirm(bench, 6, mark="second") == STALE
        assert write(bench, 6, mark="third", rebuilt=True) == WRITTEN
        assert confirm(bench, 6, mark="third") == WRITTEN

    def test_what_was_forgotten_is_lost(self, bench: Bench) -> None:
        rebuild(bench, 5, batches=2)
        bench.forget()
        assert confirm(bench, 5) == LOST
        assert write(bench, 6) == LOST
        assert write(bench, 6, rebuilt=True, batches=1) == WRITTEN
        assert bench.held() == Held(generation=6, position=6, history=1)

    def test_what_another_server_held_is_lost(self, bench: Bench) -> None:
        """However far it had come there, and whatever mark it bears."""
        rebuild(bench, 9)
        bench.move()
        assert confirm(bench, 9) == LOST
        assert write(bench, 9) == LOST
        assert write(bench, 7, rebuilt=True) == WRITTEN
        assert confirm(bench, 7) == WRITTEN

    def test_who_has_not_found_it_missing_does_not_replace_it(self, bench: Bench) -> None:
        assert write(bench, 5, rebuilt=True) == LOST
        assert write(bench, 5, rebuilt=True, writer="other") == LOST
        assert write(bench, 5, rebuilt=True) == LOST
        assert write(bench, 5, rebuilt=True) == WRITTEN

    def test_who_stood_still_while_it_was_lost_again_does_not_replace_it(
        self, bench: Bench
    ) -> None:
        """Others have written it meanwhile, with more than the one who stood still knows."""
        assert write(bench, 5) == LOST
        assert write(bench, 9, writer="other") == LOST
        assert write(bench, 9, rebuilt=True, writer="other") == WRITTEN
        bench.forget()
        assert write(bench, 5, rebuilt=True) == LOST

    def test_who_found_it_missing_on_another_server_does_not_replace_it(self, bench: Bench) -> None:
        assert write(bench, 5) == LOST
        bench.move()
        assert write(bench, 5, rebuilt=True) == LOST

    def test_writing_whole_replaces_the_history(self, bench: Bench) -> None:
        rebuild(bench, 5, batches=3)
        assert write(bench, 6, batches=2) == WRITTEN
        assert bench.held() == Held(generation=6, position=6, history=5)
        assert write(bench, 7, rebuilt=True, batches=1) == WRITTEN
        assert bench.held() == Held(generation=7, position=7, history=1)

    def test_what_is_written_again_stands_in_the_history_once(self, bench: Bench) -> None:
        """Nobody heard whether it was written."""
        rebuild(bench, 5, batches=2)
        assert write(bench, 6, batches=2) == WRITTEN
        assert write(bench, 6, batches=2) == WRITTEN
        assert bench.held() == Held(generation=6, position=6, history=4)

    def test_dead_records_come_to_those_that_are_there(self, bench: Bench) -> None:
        rebuild(bench, 5, dead=DEAD[:2])
        assert write(bench, 6, dead=DEAD[2:4], known=DEAD[:2]) == WRITTEN
        assert bench.held() == Held(generation=6, position=6, history=0, dead=DEAD[:4])
        assert confirm(bench, 7) == WRITTEN
        assert write(bench, 8, mark="n", known=DEAD[:4]) == WRITTEN
        assert bench.held() == Held(generation=8, position=8, history=0, dead=DEAD[:4])

    def test_dead_records_that_are_written_again_stand_there_once(self, bench: Bench) -> None:
        """Nobody heard whether they were written."""
        rebuild(bench, 5, dead=DEAD[:2])
        for _ in range(2):
            assert write(bench, 6, dead=DEAD[2:4], known=DEAD[:2]) == WRITTEN
        assert bench.held() == Held(generation=6, position=6, history=0, dead=DEAD[:4])

    def test_dead_records_that_became_fewer_take_the_place_of_all(self, bench: Bench) -> None:
        rebuild(bench, 5, dead=DEAD[:3])
        run = replace(
            DEAD[0], id="run", end=DEAD[1].end, up_to=2, exact=False, runs=((0, 1), (2, 3))
        )
        assert write(bench, 6, dead=(run, DEAD[2]), anew=True) == WRITTEN
        assert bench.held() == Held(generation=6, position=6, history=0, dead=(run, DEAD[2]))

    def test_writing_whole_replaces_the_dead_records(self, bench: Bench) -> None:
        rebuild(bench, 5, dead=DEAD[:3])
        assert write(bench, 6, rebuilt=True, dead=DEAD[1:3]) == WRITTEN
        assert bench.held() == Held(generation=6, position=6, history=0, dead=DEAD[1:3])

    def test_what_lies_there_uncounted_is_not_taken_for_dead(self, bench: Bench) -> None:
        """A slot that was lost had dead records in a partition where the one after it has none;
        then it has one."""
        rebuild(bench, 5, dead=DEAD)
        bench.move()
        assert rebuild(bench, 6, dead=DEAD[:4]) == WRITTEN
        other = replace(DEAD[4], id="other", message="another one")
        assert write(bench, 7, dead=[other], known=DEAD[:4]) == WRITTEN
        assert bench.held() == Held(generation=7, position=7, history=0, dead=(*DEAD[:4], other))

    def test_as_many_dead_records_as_there_may_be_are_written_at_once(self, bench: Bench) -> None:
        many = tuple(letter(at, partition=at % 8) for at in range(ENTRIES_MAX))
        assert rebuild(bench, 5, dead=many) == WRITTEN
        held = bench.held()
        assert held is not None
        assert {*held.dead} == {*many}

    def test_each_of_several_is_judged_alone(self, bench: Bench) -> None:
        rebuild(bench, 5)
        slot = Slot(tenant=TENANT, pipeline_uid="uid-2")
        unknown = replace(_place(6, slot, "m", "C"), pipeline_uid="uid-2")
        older = _place(4, Slot(tenant=TENANT, pipeline_uid=UID), "m", "C")
        assert bench.store.write([older, unknown]) == [NEWER, LOST]
        assert bench.store.write([]) == []

    def test_a_store_that_is_away_says_so(self, bench: Bench) -> None:
        bench.cut_off()
        with pytest.raises(Retryable):
            write(bench, 5)

    def test_a_history_has_a_limit(self, bench: Bench) -> None:
        rebuild(bench, 5, batches=HISTORY_LENGTH_MAX)
        write(bench, 6, batches=3)
        held = bench.held()
        assert held is not None
        assert held.history == HISTORY_LENGTH_MAX


def letter(offset: int, *, partition: int = 0) -> DeadEntry:
    name, message = f"enrich@1:T:{partition}:{offset}", "keine Zahl: \u00fc"
    return make_entry(offset, id=name, topic_id="T", partition=partition, message=message)


DEAD: Final = (*map(letter, (0, 2, 7, 9)), letter(1, partition=1))


def _place(position: int, slot: Slot | None, mark: str, topic_id: str) -> SlotWrite:
    return SlotWrite(
        tenant=TENANT,
        pipeline_uid=UID,
        topic_id=topic_id,
        partition=0,
        position=position,
        at=position,
        slot=slot,
        writer="me",
        mark=mark,
    )


def _one(bench: Bench, wanted: SlotWrite, rebuilt: bool, batches: int) -> WriteResult:
    history = tuple(
        entry_of(
            Progress(
                sink=SINK,
                reached={},
                batch=make_batch(wanted.position * 1_000 + number),
            )
        )
        for number in range(batches)
    )
    (result,) = bench.store.write([replace(wanted, history=history, rebuilt=rebuilt)])
    return result
