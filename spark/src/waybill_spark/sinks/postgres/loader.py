"""Opens Postgres sinks. What Postgres has no columns for reaches them as text."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType, VariantType

from waybill_shared.connections import read_connections
from waybill_shared.contract.driver import SinkPlaces
from waybill_shared.contract.manifest.model import Sink as SinkManifest
from waybill_shared.contract.manifest.sinks import PostgresSinkSettings
from waybill_shared.databases import PostgresConnection
from waybill_spark.sinks.contract import Fit, Loader, Opening, SelectedColumn, WantedSink
from waybill_spark.sinks.postgres.connection import connect, translate_errors
from waybill_spark.sinks.postgres.fences import refuse_no_place
from waybill_spark.sinks.postgres.fitting import plan_change
from waybill_spark.sinks.postgres.sink import PostgresSink
from waybill_spark.sinks.postgres.tables import PostgresTarget
from waybill_spark.sinks.rows import column_of
from waybill_spark.tracking.sink import Sink

AS_TEXT: Final = "__waybill_text_"
JSON: Final = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}


class PostgresLoader:
    def open(self, opening: Opening) -> Sink:
        target = _target(opening.wanted.sink)
        connection = _connection(target, opening.wanted.places)
        return PostgresSink(opening.life, target, connection, schema=opening.schema)

    def columns(self, sink: SinkManifest, frame: DataFrame) -> Mapping[str, SelectedColumn]:
        return {field.name: _select(field.name, field.dataType) for field in frame.schema}

    def check(self, wanted: WantedSink, schema: pa.Schema) -> Fit:
        target = _target(wanted.sink)
        connection = _connection(target, wanted.places)
        with (
            connect(target.settings.connection, connection) as session,
            translate_errors(f"sink {target.sink}", connection.place),
        ):
            refuse_no_place(session, target.settings.connection, connection.fences)
            return Fit(tuple(plan_change(session, target, schema).describe()))


def _target(sink: SinkManifest) -> PostgresTarget:
    assert isinstance(sink.settings, PostgresSinkSettings)
    return PostgresTarget(sink=sink.name, settings=sink.settings)


def _connection(target: PostgresTarget, places: SinkPlaces) -> PostgresConnection:
    known = read_connections(places.connections_file)
    return known.find(target.settings.connection, PostgresConnection)


def _select(name: str, kind: DataType) -> SelectedColumn:
    text = _as_text(column_of(name), kind)
    return (
        SelectedColumn(name, column_of(name))
        if text is None
        else SelectedColumn(AS_TEXT + name, text)
    )


def _as_text(column: Column, kind: DataType) -> Column | None:
    match kind:
        case BinaryType():
            return F.concat(F.lit("\\x"), F.hex(column))
        case StructType() | ArrayType() | MapType() | VariantType():
            return F.to_json(column, JSON)
        case _:
            return None


LOADER: Final[Loader] = PostgresLoader()
