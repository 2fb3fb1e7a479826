"""The console sink: rows in a log, and a fence in Kafka."""

import logging
import re
import uuid
from collections.abc import Iterable

import pyarrow as pa
import pytest

from builders import make_fence
from contracts.sink import Place, SinkContract, batch, ledger_of, opened, write
from integration.conftest import Surroundings
from waybill_shared.kafka.admin import make_admin
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.sinks.console.sink import ConsoleSink
from waybill_spark.tracking.sink import Sink, SinkLife, SinkSuperseded

LOGGER = "waybill_spark.sinks.console.sink"
NUMBER = re.compile(r"^(\d+)$", re.MULTILINE)


class LogPlace:
    def __init__(self, surroundings: Surroundings, log: pytest.LogCaptureFixture) -> None:
        self._fences = Fences(make_admin(surroundings.kafka), surroundings.prefix)
        self._key = f"default/{uuid.uuid4()}/look/seen"
        self._log = log

    def sink(self, since: int = 1) -> Sink:
        life = SinkLife(name="seen", since=since, fence_key=f"{self._key}@{since}")
        return ConsoleSink(life, self._fences, rows_max=20)

    def rows(self, *numbers: int) -> Iterable[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = pa.table({"n": list(numbers)}).to_batches()
        return batches

    def read(self) -> list[int]:
        """A row may be printed again: this kind promises no more."""
        return sorted(set(self.printed()))

    def printed(self) -> list[int]:
        messages = (each.getMessage() for each in self._log.records if each.name == LOGGER)
        return [int(number) for text in messages for number in NUMBER.findall(text)]


@pytest.fixture
def place(surroundings: Surroundings, caplog: pytest.LogCaptureFixture) -> LogPlace:
    caplog.set_level(logging.INFO, logger=LOGGER)
    return LogPlace(surroundings, caplog)


class TestConsoleSink(SinkContract):
    @pytest.fixture
    def place(self, place: LogPlace) -> Place:
        return place

    @pytest.mark.parametrize("written", [True, False], ids=["written before", "empty"])
    def test_a_batch_of_an_earlier_claim_is_refused_when_the_claim_has_moved(
        self, place: Place, written: bool
    ) -> None:
        """Its rows are printed by then, and the batch that counts is printed after them."""
        first, second = batch(0, 5), batch(5, 9)
        if written:
            write(ledger_of(place), first, place.rows(1))
        earlier, later = ledger_of(place), ledger_of(place, claim=2)
        later.move_claim()
        mine = second if written else first
        with pytest.raises(SinkSuperseded):
            write(earlier, mine, place.rows(2))
        write(later, mine, place.rows(3))
        assert place.read() == [*[1] * written, 2, 3]


def test_a_batch_is_printed_before_the_fence_moves(place: LogPlace) -> None:
    """So a batch that comes again is printed again, and none is passed over."""
    paused, newer = opened(place), opened(place)
    newer.write(place.rows(1), make_fence(sequence=0))
    with pytest.raises(SinkSuperseded):
        paused.write(place.rows(1), make_fence(sequence=0))
    assert place.printed() == [1, 1]


def test_nothing_is_printed_of_a_batch_without_rows(place: LogPlace) -> None:
    sink = opened(place)
    sink.write(place.rows(), make_fence(sequence=0))
    sink.write(None, make_fence(sequence=1))
    assert place.printed() == []
