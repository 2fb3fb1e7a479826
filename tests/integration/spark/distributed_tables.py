"""Rows that executors put into Postgres, and what stands in its tables."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from integration.spark import postgres_sinks
from postgres import Database
from shares import Shares
from waybill_spark.tracking.sink import Sink

UPSERT: Final = postgres_sinks.UPSERT


@dataclass
class PostgresPlace:
    database: Database
    settings: dict[str, Any]

    def sink(self, since: int = 1) -> Sink:
        life = postgres_sinks.LIFE
        life = replace(life, since=since, fence_key=f"{life.fence_key}@{since}")
        return postgres_sinks.sink_of(self.database, life=life, **self.settings)

    def rows(self, *numbers: int) -> Iterable[pa.RecordBatch]:
        return in_postgres(*numbers)

    def read(self) -> list[int]:
        table = f'{self.database.schema}."Orders 1"'
        present = self.database.ask("SELECT to_regclass(%s) IS NOT NULL", table)
        return [row[0] for row in stored(self.database)] if present == [(True,)] else []


def in_postgres(*numbers: int, customer: str = "ada") -> Shares:
    return Shares(pa.Table.from_batches(postgres_sinks.rows(*numbers, customer=customer)))


def stored(database: Database) -> list[tuple[Any, ...]]:
    return postgres_sinks.read(database)


def left(database: Database) -> list[tuple[Any, ...]]:
    return database.ask(
        "SELECT tablename FROM pg_tables WHERE schemaname = %s AND starts_with(tablename, %s)",
        database.schema,
        "waybill_load_",
    )
