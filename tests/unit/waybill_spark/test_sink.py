"""Sinks that tests have do what real ones must do: the fake of stages, and a kind of its own."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from contracts.sink import SinkContract
from memory_sink.loader import SHELVES, MemorySink
from unit.waybill_spark.bench import ListSink, ListWriter
from waybill_spark.tracking.sink import Sink, SinkLife


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


class Shelves:
    def sink(self, since: int = 1) -> Sink:
        life = SinkLife(name="kept", since=since, fence_key=f"kept@{since}")
        return MemorySink(life, SHELVES["top"])

    def rows(self, *numbers: int) -> Iterator[pa.RecordBatch]:
        yield from pa.table({"n": [*numbers]}).to_batches()

    def read(self) -> list[int]:
        return sorted(n for batch in SHELVES["top"].rows for n in batch.column("n").to_pylist())


class TestMemorySink(SinkContract):
    @pytest.fixture
    def place(self) -> Iterator[Shelves]:
        yield Shelves()
        SHELVES.clear()
