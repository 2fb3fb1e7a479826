"""Opens sinks that keep rows and fences in this process."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from waybill_shared.contract.events import Fence
from waybill_shared.contract.manifest.model import Sink as SinkManifest
from waybill_spark.sinks.contract import Fit, Loader, Opening, SelectedColumn, WantedSink
from waybill_spark.sinks.rows import all_columns
from waybill_spark.tracking.sink import Sink, SinkLife, SinkSuperseded, Written


@dataclass(slots=True)
class Shelf:
    rows: list[pa.RecordBatch] = field(default_factory=list)
    fences: dict[str, Fence] = field(default_factory=dict)


SHELVES: Final[defaultdict[str, Shelf]] = defaultdict(Shelf)


class MemorySink:
    def __init__(self, life: SinkLife, shelf: Shelf) -> None:
        self.name, self.since, self.moved = life.name, life.since, life.moved
        self.key = life.key
        self._key = life.fence_key
        self._shelf = shelf
        self._seen: Fence | None = None

    def claim(self) -> None:
        self._seen = self._shelf.fences.get(self._key)

    def last(self) -> Written | None:
        return None if self._seen is None else self._written(self._seen)

    def write(self, rows: Iterable[pa.RecordBatch] | None, fence: Fence) -> Written:
        if self._shelf.fences.get(self._key) != self._seen:
            raise SinkSuperseded(f"sink {self.name}: its fence was moved by another")
        self._shelf.rows += rows or ()
        self._seen = self._shelf.fences[self._key] = fence
        return self._written(fence)

    def find_refusal(self, rows: Iterable[pa.RecordBatch]) -> str | None:
        return None

    def await_visible(self, fence: Fence) -> bool:
        return True

    def close(self) -> None:
        pass

    def _written(self, fence: Fence) -> Written:
        return Written(fence=fence, version={"batches": str(len(self._shelf.rows))})


class MemoryLoader:
    def open(self, opening: Opening) -> Sink:
        return MemorySink(opening.life, SHELVES[opening.wanted.sink.settings.target])

    def columns(self, sink: SinkManifest, frame: DataFrame) -> Mapping[str, SelectedColumn]:
        return all_columns(frame)

    def check(self, wanted: WantedSink, schema: pa.Schema) -> Fit:
        """A shelf takes everything."""
        return Fit()


LOADER: Final[Loader] = MemoryLoader()
