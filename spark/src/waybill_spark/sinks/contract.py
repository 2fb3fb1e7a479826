"""What the driver knows of a kind of sinks: how it is checked, opened and maintained."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from waybill_shared.contract.driver import SinkPlaces
from waybill_shared.contract.manifest.model import Sink as SinkManifest
from waybill_spark.kafka.fence_topic.reading import Fences
from waybill_spark.tracking.sink import Sink, SinkLife


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSink:
    """The sink that a manifest wants, and its owner."""

    sink: SinkManifest
    pipeline_uid: str
    places: SinkPlaces
    about: Mapping[str, str] = field(default_factory=dict)
    """What the manifest says of itself."""


@runtime_checkable
class Maintainer(Protocol):
    """A kind of sinks with tables that can be maintained on demand."""

    def maintain(self, wanted: WantedSink, *, dry_run: bool) -> dict[str, dict[str, int]]:
        """Run all tasks of the manifest, due or not.

        Return what was done, or would be, in numbers. Raises UserError, and Retryable.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The means to open a sink."""

    life: SinkLife
    wanted: WantedSink
    topic_id: str | None
    """The id of its topic, if the sink feeds one."""
    schema: pa.Schema | None
    """The schema of the rows. Without one the sink can only be read."""
    fences: Fences
    """The fences of sinks that keep none themselves, and the way to Kafka."""
    topic_absent_s: float


@dataclass(frozen=True, slots=True)
class SelectedColumn:
    """A column that a sink is given. Sinks of one view share those of one name."""

    name: str
    column: Column


class Fit(NamedTuple):
    """That a sink takes rows of a schema."""

    alterations: tuple[str, ...] = ()
    """What the first rows would change in the target apart from rows, in words."""
    table: str = ""
    """Which table that is, whatever connection leads to it, where it can be one sink's only."""


class Loader(Protocol):
    """One kind of sinks. `KINDS` in the manifest's contract names the module that has it."""

    def open(self, opening: Opening) -> Sink: ...

    def columns(self, sink: SinkManifest, frame: DataFrame) -> Mapping[str, SelectedColumn]:
        """Return the columns of a view that the sink gets, under the names that it knows."""

    def check(self, wanted: WantedSink, schema: pa.Schema) -> Fit:
        """Check the target and change nothing.

        Raise UserError if rows of this schema can never be written as things are now, and Retryable
        if it cannot be known.
        """
