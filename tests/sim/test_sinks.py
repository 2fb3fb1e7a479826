"""The sinks of the simulation do what the real ones must do."""

from collections.abc import Iterable
from random import Random
from typing import cast

import pyarrow as pa
import pytest

from contracts.sink import SinkContract
from sim.graves import Grave
from sim.log import Cluster, Row
from sim.sinks import Batch, KafkaSink, Storage, TableSink
from waybill_shared.contract.events import Fence
from waybill_spark.tracking.sink import Sink, SinkLife


class Nobody:
    def moved(self, key: str, before: Fence | None, after: Fence, batch: Batch | None) -> None:
        pass

    def buried(self, grave: Grave) -> None:
        pass


def edge(name: str) -> None:
    """Nobody is interrupted."""


def life(since: int) -> SinkLife:
    return SinkLife(name="out", since=since, fence_key=f"uid/stage/out@{since}")


def batch(numbers: tuple[int, ...]) -> Iterable[pa.RecordBatch]:
    """What the simulation has in the place of a record batch."""
    rows = tuple(Row(number, ("stage",)) for number in numbers)
    return cast(Iterable[pa.RecordBatch], iter([Batch(rows, ())]))


class TopicPlace:
    def __init__(self) -> None:
        self._cluster = Cluster()
        self._cluster.create("out", "T", partitions=2)
        self._storage = Storage(self._cluster, Nobody(), Random(0))

    def sink(self, since: int = 1) -> Sink:
        return cast(Sink, KafkaSink(life(since), self._storage, "out", "T", edge))

    def rows(self, *numbers: int) -> Iterable[pa.RecordBatch]:
        return batch(numbers)

    def read(self) -> list[int]:
        return sorted(row.number for _, row in self._cluster.topics["out"].rows())


class TablePlace:
    def __init__(self) -> None:
        self._storage = Storage(Cluster(), Nobody(), Random(0))

    def sink(self, since: int = 1) -> Sink:
        return cast(Sink, TableSink(life(since), self._storage, "lake", edge))

    def rows(self, *numbers: int) -> Iterable[pa.RecordBatch]:
        return batch(numbers)

    def read(self) -> list[int]:
        found = self._storage.table("lake").rows.values()
        return sorted(row.number for rows in found for row in rows)


class TestSinks(SinkContract):
    @pytest.fixture(params=[TopicPlace, TablePlace])
    def place(self, request: pytest.FixtureRequest) -> TopicPlace | TablePlace:
        made: TopicPlace | TablePlace = request.param()
        return made
