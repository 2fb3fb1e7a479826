"""What one batch does to a table: rows are copied into a second table, and then go in by one
statement.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa
from psycopg import sql
from pyarrow import csv

from waybill_spark.sinks.postgres.connection import Session
from waybill_spark.sinks.postgres.tables import PostgresTarget

ORDER: Final = "__waybill_order"  # of the rows in their batch; never in a table
ATTEMPT: Final = "__waybill_attempt"  # of the executor that copied them
AS_CSV: Final = csv.WriteOptions(include_header=False)
"""Only texts have quotes, so that NULL is not an empty text."""


@dataclass(frozen=True, slots=True)
class Room:
    """A table that has the rows of one batch. `attempts`: those that count; None: all."""

    table: sql.Identifier
    attempts: tuple[int, ...] | None = None

    @property
    def rows(self) -> sql.Composable:
        if self.attempts is None:
            return self.table
        of = sql.Literal([*self.attempts])
        return sql.SQL("(SELECT * FROM {} WHERE {} = ANY({})) AS room").format(
            self.table, sql.Identifier(ATTEMPT), of
        )


OWN: Final = Room(sql.Identifier("pg_temp", "waybill_load"))


def make_room(session: Session, target: PostgresTarget, columns: Sequence[str]) -> None:
    """Create a temporary table for the rows of one batch."""
    session.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(OWN.table))
    session.execute(
        sql.SQL(
            "CREATE TEMPORARY TABLE waybill_load ON COMMIT DELETE ROWS"
            " AS SELECT {} FROM {} WITH NO DATA"
        ).format(columns_of_room(target, columns), target.name)
    )


def columns_of_room(target: PostgresTarget, columns: Sequence[str]) -> sql.Composed:
    """Return the columns of that table, which have the target's types."""
    own: list[sql.Composable] = [sql.Identifier(name) for name in target.without_flag(columns)]
    if target.settings.delete_where is not None:
        flag = sql.Identifier(target.settings.delete_where)
        own.append(sql.SQL("NULL::boolean AS {}").format(flag))
    if target.settings.mode == "upsert":
        own.append(sql.SQL("0::bigint AS {}").format(sql.Identifier(ORDER)))
    return sql.SQL(", ").join(own)


def copy(
    session: Session,
    target: PostgresTarget,
    rows: Iterable[pa.RecordBatch],
    room: Room = OWN,
    *,
    attempt: int | None = None,
    first: int = 0,
) -> int:
    """Copy rows and return how many there were. `first`: the number of the first in the batch."""
    number = first
    with session.cursor() as cursor:
        for batch in rows:
            more = {ORDER: pa.array(range(number, number + batch.num_rows), pa.int64())}
            if target.settings.mode != "upsert":
                more.clear()
            if attempt is not None:
                more[ATTEMPT] = pa.array([attempt] * batch.num_rows, pa.int64())
            columns = sql.SQL(", ").join(map(sql.Identifier, (*batch.schema.names, *more)))
            into = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(room.table, columns)
            with cursor.copy(into) as to:
                to.write(_as_csv(batch, more))
            number += batch.num_rows
    return number - first


def lock(session: Session, target: PostgresTarget) -> None:
    """Lock the table until the transaction ends: no other sink of ours works in it."""
    schema, table = target.parts
    session.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"waybill {schema}.{table}",)
    )


def take(
    session: Session, target: PostgresTarget, columns: Sequence[str], room: Room = OWN
) -> int | None:
    """Insert the rows into the table, while no other load of it runs, so that loads cannot wait for
    each other in a ring. Return how many were inserted; None where a row may be skipped for a
    newer one.
    """
    lock(session, target)
    if target.settings.mode == "append":
        names = _names(target.without_flag(columns))
        insert = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {}")
        return session.execute(insert.format(target.name, names, names, room.rows)).rowcount
    if target.settings.delete_where is not None:
        session.execute(_deletion(target, room))
    session.execute(_upsert(target, columns, room))
    return None


def _as_csv(batch: pa.RecordBatch, more: Mapping[str, pa.Array]) -> memoryview:
    for name, values in more.items():
        batch = batch.append_column(name, values)
    out = pa.BufferOutputStream()
    csv.write_csv(batch, out, AS_CSV)
    return memoryview(out.getvalue())


def _last(target: PostgresTarget, room: Room) -> sql.Composed:
    """Select of each key the row that counts: the greatest by `orderBy`, or the last one of the
    batch.
    """
    keys, order = _names(target.settings.keys), sql.Identifier(ORDER)
    by = target.settings.order_by
    first = sql.SQL("{} DESC NULLS LAST, ").format(sql.Identifier(by)) if by else sql.SQL("")
    return sql.SQL("(SELECT DISTINCT ON ({}) * FROM {} ORDER BY {}, {}{} DESC) AS last").format(
        keys, room.rows, keys, first, order
    )


def _deletion(target: PostgresTarget, room: Room) -> sql.Composed:
    same = [
        sql.SQL("t.{} = last.{}").format(sql.Identifier(key), sql.Identifier(key))
        for key in target.settings.keys
    ]
    flag = sql.Identifier(target.settings.delete_where or "")
    wanted = [*same, sql.SQL("last.{}").format(flag)]
    if target.settings.order_by is not None:
        wanted.append(_no_greater(target.settings.order_by, "last"))
    return sql.SQL("DELETE FROM {} AS t USING {} WHERE {}").format(
        target.name, _last(target, room), sql.SQL(" AND ").join(wanted)
    )


def _upsert(target: PostgresTarget, columns: Sequence[str], room: Room) -> sql.Composed:
    names, keys = target.without_flag(columns), target.settings.keys
    others = [sql.Identifier(name) for name in names if name not in keys]
    sets = sql.SQL(", ").join(sql.SQL("{} = EXCLUDED.{}").format(each, each) for each in others)
    on_conflict = sql.SQL("DO UPDATE SET {}").format(sets) if others else sql.SQL("DO NOTHING")
    if target.settings.order_by is not None and others:
        newer = _no_greater(target.settings.order_by, "EXCLUDED")
        on_conflict = on_conflict + sql.SQL(" WHERE {}").format(newer)
    flag = target.settings.delete_where
    kept = sql.SQL("WHERE {} IS NOT TRUE").format(sql.Identifier(flag)) if flag else sql.SQL("")
    return sql.SQL("INSERT INTO {} AS t ({}) SELECT {} FROM {} {} ON CONFLICT ({}) {}").format(
        target.name,
        _names(names),
        _names(names),
        _last(target, room),
        kept,
        _names(keys),
        on_conflict,
    )


def _no_greater(column: str, than: Literal["last", "EXCLUDED"]) -> sql.Composed:
    """Return a condition that the table's own row is not greater.

    One without a value is the smallest.
    """
    by = sql.Identifier(column)
    return sql.SQL("(t.{} IS NULL OR t.{} <= {}.{})").format(by, by, sql.SQL(than), by)


def _names(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))
