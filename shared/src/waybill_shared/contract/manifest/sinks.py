"""The kinds of sinks: the settings that a manifest has for each, and what each promises.

A new kind is a model here, a row in `KINDS`, and a folder in `waybill_spark` that its row names.
All other code reads the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field

from waybill_shared.contract.manifest.fields import (
    DatabaseColumn,
    DatabaseTable,
    Name,
    Partitions,
    Topic,
)
from waybill_shared.contract.manifest.iceberg import IcebergSinkSettings
from waybill_shared.contract.manifest.sink_settings import SinkSettings, TableSettings
from waybill_shared.contract.words import Guarantee


class KafkaSinkSettings(SinkSettings):
    topic: Topic
    key: str | None = None
    format: Literal["json"] = "json"
    partitions: Partitions = 4
    guarantee: Literal[Guarantee.ONCE, Guarantee.AT_LEAST_ONCE] = Guarantee.ONCE
    shared: bool = False

    @property
    def target(self) -> str:
        return self.topic

    @property
    def admits_others(self) -> bool:
        return self.shared

    @property
    def gathers(self) -> bool:
        """A transaction is one producer's."""
        return self.guarantee is Guarantee.ONCE

    @property
    def promised(self) -> Guarantee:
        return self.guarantee

    @property
    def feeds(self) -> "KafkaSinkSettings":
        return self

    @property
    def columns_named(self) -> Mapping[str, str]:
        return {} if self.key is None else {"key": self.key}


class PostgresSinkSettings(TableSettings):
    connection: Name
    table: DatabaseTable
    mode: Literal["append", "upsert"] = "append"
    keys: tuple[DatabaseColumn, ...] = Field(default=(), max_length=32)
    order_by: DatabaseColumn | None = None
    delete_where: DatabaseColumn | None = None
    schema_evolution: Literal["none", "add"] = "none"

    @property
    def gathers(self) -> bool:
        return False


class ConsoleSinkSettings(SinkSettings):
    rows: int = Field(default=20, ge=1, le=1_000)

    @property
    def promised(self) -> Guarantee:
        return Guarantee.AT_LEAST_ONCE

    @property
    def target(self) -> str:
        return "log"

    @property
    def awaited(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkKind:
    model: type[SinkSettings]
    writes: str
    """What it makes of rows, for docs."""
    guarantee: Guarantee
    loader: str
    """The module of `waybill_spark` that opens a sink of this kind, as `LOADER` there."""
    place: Literal["topic", "table"] | None = None
    """What it writes to, if other pipelines may do so too; a table is in a connection."""
    interval_ms: int = 0
    """Between batches where the manifest does not say; a shorter one is warned of."""
    when_shorter: str = ""


KINDS: Final[dict[str, SinkKind]] = {
    "kafka": SinkKind(
        model=KafkaSinkSettings,
        writes="JSON records in a topic",
        guarantee=Guarantee.ONCE,
        loader="waybill_spark.sinks.kafka.loader",
        place="topic",
    ),
    "iceberg": SinkKind(
        model=IcebergSinkSettings,
        writes="rows of a table, a snapshot per batch",
        guarantee=Guarantee.ONCE,
        loader="waybill_spark.sinks.iceberg.loader",
        place="table",
        interval_ms=10_000,  # each batch is a snapshot with files of its own
        when_shorter="makes many small files; 10 seconds or more is kinder to Iceberg",
    ),
    "postgres": SinkKind(
        model=PostgresSinkSettings,
        writes="rows of a table, in one transaction per batch",
        guarantee=Guarantee.ONCE,
        loader="waybill_spark.sinks.postgres.loader",
        place="table",
    ),
    "console": SinkKind(
        model=ConsoleSinkSettings,
        writes="the first rows of each batch, as a table in the log of the pipeline",
        guarantee=Guarantee.AT_LEAST_ONCE,
        loader="waybill_spark.sinks.console.loader",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkTarget:
    """The place that a sink writes to. Sinks with equal ones write to one topic or table."""

    kind: str
    connection: str
    """Empty for Waybill's own Kafka."""
    name: str


def target_of(kind: str, target: str) -> SinkTarget | None:
    """Return what the `target` of a sink of that kind names; None if no other may write there."""
    row = KINDS.get(kind)
    match row.place if row is not None else None:
        case "topic":
            return SinkTarget(kind=kind, connection="", name=target)
        case "table":
            connection, _, table = target.partition(".")
            return SinkTarget(kind=kind, connection=connection, name=table)
        case None:
            return None
