"""A `Sink`: rows and fence take effect together and once, whoever else is at work."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol, cast

import pyarrow as pa
import pytest

from builders import make_fence, make_range
from waybill_shared.contract.batches import planned
from waybill_shared.contract.events import Fence
from waybill_shared.process.clock import SystemClock
from waybill_spark.tracking.batch import Batch
from waybill_spark.tracking.commits import Identity
from waybill_spark.tracking.fencing import (
    AlreadyDone,
    BatchDecision,
    Diverged,
    StageInput,
    Write,
    bases_of,
    decide,
)
from waybill_spark.tracking.ledger import Ledger
from waybill_spark.tracking.sink import Sink, SinkSuperseded, Written

FIRST: Final = make_fence(sequence=0)
LOOKS: Final = 15
INPUT: Final = StageInput(name="orders", topic="orders.in", topic_id="R", bases={0: 0})


class Place(Protocol):
    """A table or topic of its own, which is empty at first."""

    def sink(self, since: int = 1) -> Sink:
        """One more driver's hand on it, or on a later life of the sink; not claimed yet."""

    def rows(self, *numbers: int) -> Iterable[pa.RecordBatch]: ...

    def read(self) -> list[int]:
        """The numbers of all rows that a reader finds now, in their order."""


class SinkContract:
    """A subclass, or its module, gives the `place`, as a fixture."""

    def test_where_nothing_was_written_there_is_no_fence(self, place: Place) -> None:
        assert opened(place).last() is None
        assert place.read() == []

    def test_the_next_driver_finds_rows_and_fence(self, place: Place) -> None:
        written = wrote(opened(place), FIRST, place.rows(1, 2))
        assert place.read() == [1, 2]
        assert found(place) == written.fence
        assert as_asked(written.fence) == FIRST

    def test_fence_moves_without_rows_too(self, place: Place) -> None:
        sink = opened(place)
        first = wrote(sink, FIRST, place.rows(1))
        second = wrote(sink, after(first), None)
        assert place.read() == [1]
        assert found(place) == second.fence
        assert second.fence.batch.sequence == 1

    def test_next_driver_goes_on_behind_the_one_before(self, place: Place) -> None:
        wrote(opened(place), FIRST, place.rows(1))
        sink = opened(place)
        last = sink.last()
        assert last is not None
        wrote(sink, after(last), place.rows(2))
        assert place.read() == [1, 2]

    @pytest.mark.parametrize("numbers", [(2,), None], ids=["rows", "no rows"])
    def test_driver_that_was_paused_is_refused(
        self, place: Place, numbers: tuple[int, ...] | None
    ) -> None:
        paused = opened(place)
        first = wrote(paused, FIRST, place.rows(1))
        newer = opened(place)
        wrote(newer, after(first), None if numbers is None else place.rows(*numbers))
        with pytest.raises(SinkSuperseded):
            paused.write(None if numbers is None else place.rows(*numbers), after(first))
        assert place.read() == [1, *(numbers or ())]

    def test_driver_that_was_paused_before_its_first_batch_is_refused(self, place: Place) -> None:
        paused, newer = opened(place), opened(place)
        wrote(newer, FIRST, place.rows(1))
        with pytest.raises(SinkSuperseded):
            paused.write(place.rows(1), FIRST)
        assert place.read() == [1]

    def test_who_claims_again_goes_on_behind_what_stands_there(self, place: Place) -> None:
        sink, other = opened(place), opened(place)
        first = wrote(other, FIRST, place.rows(1))
        sink.claim()
        last = sink.last()
        assert last is not None
        assert last.fence == first.fence
        wrote(sink, after(first), place.rows(2))
        with pytest.raises(SinkSuperseded):
            other.write(place.rows(2), after(first))
        assert place.read() == [1, 2]

    def test_another_life_of_the_name_has_a_fence_of_its_own(self, place: Place) -> None:
        earlier = opened(place)
        first = wrote(earlier, FIRST, place.rows(1))
        later = place.sink(since=2)
        later.claim()
        assert (later.since, later.last()) == (2, None)
        wrote(later, FIRST, place.rows(2))
        wrote(earlier, after(first), place.rows(3))
        assert place.read() == [1, 2, 3]

    def test_a_batch_that_comes_again_is_done_already(self, place: Place) -> None:
        write(ledger_of(place), batch(0, 5), place.rows(1, 2))
        assert isinstance(decision(ledger_of(place), batch(0, 5)), AlreadyDone)
        assert isinstance(decision(ledger_of(place), batch(5, 9)), Write)
        assert place.read() == [1, 2]

    @pytest.mark.parametrize(("start", "end"), [(0, 4), (3, 9), (6, 9)])
    def test_a_batch_that_neither_repeats_nor_follows_is_not_written(
        self, place: Place, start: int, end: int
    ) -> None:
        write(ledger_of(place), batch(0, 5), place.rows(1))
        assert isinstance(decision(ledger_of(place), batch(start, end)), Diverged)

    @pytest.mark.parametrize("written", [True, False], ids=["written before", "empty"])
    def test_a_batch_of_an_earlier_claim_is_refused_when_the_claim_has_moved(
        self, place: Place, written: bool
    ) -> None:
        first, second = batch(0, 5), batch(5, 9)
        if written:
            write(ledger_of(place), first, place.rows(1))
        earlier, later = ledger_of(place), ledger_of(place, claim=2)
        later.move_claim()
        mine = second if written else first
        with pytest.raises(SinkSuperseded):
            write(earlier, mine, place.rows(2))
        assert place.read() == [1] * written
        write(later, mine, place.rows(3))
        assert place.read() == [*[1] * written, 3]

    def test_rows_that_could_go_in_are_not_refused_and_leave_nothing(self, place: Place) -> None:
        sink = opened(place)
        assert sink.find_refusal(place.rows(1, 2)) is None
        assert (place.read(), found(place)) == ([], None)

    def test_closed_sink_is_done_with(self, place: Place) -> None:
        sink = opened(place)
        written = wrote(sink, FIRST, place.rows(1))
        sink.close()
        assert found(place) == written.fence


@dataclass(frozen=True, slots=True)
class AsTable:
    """Of rows of any kind what a ledger asks for."""

    rows: Iterable[pa.RecordBatch]
    num_rows: int = 1

    def to_batches(self) -> Iterable[pa.RecordBatch]:
        return self.rows


def ledger_of(place: Place, claim: int = 1) -> Ledger:
    """As the next driver has it: the sink of a stage that began at offset 0 of one partition."""
    ledger = Ledger(
        place.sink(),
        stage="enrich",
        inputs=(INPUT,),
        identity=Identity(tenant="default", pipeline_uid="uid", generation=1, epoch=claim),
        emit=lambda commit: None,
        clock=SystemClock(),
    )
    ledger.claim()
    ledger.read()
    return ledger


def batch(start: int, end: int) -> Batch:
    run = make_range(topic=INPUT.topic, topic_id=INPUT.topic_id, start=start, end=end)
    return Batch(report=planned(0, "7f1a", 0), runs=(run,))


def decision(ledger: Ledger, planned: Batch) -> BatchDecision:
    return decide({ledger.sink.name: ledger.fence}, planned.runs, bases_of((INPUT,)))


def write(ledger: Ledger, taken: Batch, rows: Iterable[pa.RecordBatch]) -> None:
    assert isinstance(decision(ledger, taken), Write)
    ledger.write(cast(pa.Table, AsTable(rows)), taken)
    for _ in range(LOOKS):
        if not ledger.hidden:
            return
        ledger.report()
    raise AssertionError("readers never saw it")


def found(place: Place) -> Fence | None:
    """The fence that the next driver finds; where it stands in the sink, each kind says itself."""
    sink = place.sink()
    sink.claim()
    last = sink.last()
    return None if last is None else last.fence


def opened(place: Place) -> Sink:
    sink = place.sink()
    sink.claim()
    sink.last()
    return sink


def wrote(sink: Sink, fence: Fence, rows: Iterable[pa.RecordBatch] | None) -> Written:
    """And every reader can see it: each look waits for a second."""
    written = sink.write(rows, fence)
    assert any(sink.await_visible(written.fence) for _ in range(LOOKS))
    return written


def after(written: Written) -> Fence:
    """The next fence, as a stage makes it before the sink writes."""
    return make_fence(sequence=written.fence.batch.sequence + 1, outputs=written.fence.outputs)


def as_asked(fence: Fence) -> Fence:
    """Without what only the sink knows."""
    return replace(fence, outputs=())
