"""The sink in memory does what a real one must do."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from contracts.sink import SinkContract
from unit.waybill_spark.bench import ListSink, ListWriter
from waybill_spark.sinks.contract import Sink


class Fake:
    def __init__(self) -> None:
        self._lives: dict[int, ListSink] = {}

    def sink(self, since: int = 1) -> Sink:
        return ListWriter(self._lives.setdefault(since, ListSink("list", since=since)))

    def rows(self, *numbers: int) -> Iterator[pa.RecordBatch]:
        yield from pa.table({"n": [*numbers]}).to_batches()

    def read(self) -> list[int]:
        return sorted(number for life in self._lives.values() for number in life.numbers)


class TestListSink(SinkContract):
    @pytest.fixture
    def place(self) -> Fake:
        return Fake()
