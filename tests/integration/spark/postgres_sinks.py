"""Postgres sinks for tests: one table, one life, and what stands in it."""

from typing import Any

import pyarrow as pa

from postgres import Database
from waybill_shared.contract.manifest.sinks import PostgresSinkSettings
from waybill_spark.sinks.postgres.sink import PostgresSink
from waybill_spark.sinks.postgres.tables import PostgresTarget
from waybill_spark.tracking.sink import SinkLife

LIFE = SinkLife(name="warehouse", since=1, fence_key="here/waybill/default/uid/load/warehouse@1")


SCHEMA = pa.schema([("order_id", pa.int64()), ("customer", pa.string())])


UPSERT: dict[str, Any] = {"mode": "upsert", "keys": ["order_id"]}


def settings(database: Database, **other: Any) -> PostgresSinkSettings:  # noqa: ANN401
    told = {"connection": "warehouse", "table": f"{database.schema}.Orders 1", **other}
    return PostgresSinkSettings.model_validate(told)


def sink_of(
    database: Database,
    *,
    schema: pa.Schema | None = SCHEMA,
    life: SinkLife = LIFE,
    **other: Any,  # noqa: ANN401 - as the manifest has it
) -> PostgresSink:
    target = PostgresTarget(sink=life.name, settings=settings(database, **other))
    sink = PostgresSink(life, target, database.connection(), schema=schema)
    database.opened.callback(sink.close)
    return sink


def opened(database: Database, schema: pa.Schema = SCHEMA, **other: Any) -> PostgresSink:  # noqa: ANN401
    sink = sink_of(database, schema=schema, **other)
    sink.claim()
    sink.last()
    return sink


def rows(*numbers: int, customer: str = "ada") -> list[pa.RecordBatch]:
    table = pa.table(
        {"order_id": list(numbers), "customer": [customer] * len(numbers)}, schema=SCHEMA
    )
    return [*table.to_batches()]


def read(database: Database, columns: str = "*") -> list[tuple[Any, ...]]:
    return database.ask(f'SELECT {columns} FROM "{database.schema}"."Orders 1" ORDER BY 1')
