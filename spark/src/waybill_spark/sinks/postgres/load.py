"""What one batch does to a table: rows are copied beside it, and then go in by one statement."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import pyarrow as pa
from psycopg import sql
from pyarrow import csv

from waybill_spark.sinks.postgres.connection import Session
from waybill_spark.sinks.postgres.tables import PostgresTarget

LOAD: Final = sql.Identifier("pg_temp", "waybill_load")
ORDER: Final = "__waybill_order"  # of the rows in their batch; never in a table
AS_CSV: Final = csv.WriteOptions(include_header=False)
"""Only text stands in quotes, so that NULL is not an empty text."""


def make_room(session: Session, target: PostgresTarget, columns: Sequence[str]) -> None:
    """A table of this session for the rows of one batch. Its columns have the target's types."""
    own: list[sql.Composable] = [sql.Identifier(name) for name in target.written(columns)]
    if target.settings.delete_where is not None:
        flag = sql.Identifier(target.settings.delete_where)
        own.append(sql.SQL("NULL::boolean AS {}").format(flag))
    if target.settings.mode == "upsert":
        own.append(sql.SQL("0::bigint AS {}").format(sql.Identifier(ORDER)))
    session.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(LOAD))
    session.execute(
        sql.SQL(
            "CREATE TEMPORARY TABLE waybill_load ON COMMIT DELETE ROWS"
            " AS SELECT {} FROM {} WITH NO DATA"
        ).format(sql.SQL(", ").join(own), target.name)
    )


def copy(session: Session, target: PostgresTarget, rows: Iterable[pa.RecordBatch]) -> int:
    """How many there were."""
    number, numbered = 0, target.settings.mode == "upsert"
    with session.cursor() as cursor:
        for batch in rows:
            names = [*batch.schema.names, *([ORDER] if numbered else [])]
            columns = sql.SQL(", ").join(map(sql.Identifier, names))
            with cursor.copy(
                sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(LOAD, columns)
            ) as to:
                to.write(_as_csv(batch, number if numbered else None))
            number += batch.num_rows
    return number


def lock(session: Session, target: PostgresTarget) -> None:
    """Until the transaction ends nobody else of us is at work in the table."""
    schema, table = target.parts
    session.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"waybill {schema}.{table}",)
    )


def take(session: Session, target: PostgresTarget, columns: Sequence[str]) -> int | None:
    """Into the table, while no other load of it is at work: so none waits for another in a ring.

    How many rows went in; None where a row may be passed over for a newer one.
    """
    lock(session, target)
    if target.settings.mode == "append":
        names = _names(target.written(columns))
        insert = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {}")
        return session.execute(insert.format(target.name, names, names, LOAD)).rowcount
    if target.settings.delete_where is not None:
        session.execute(_deletion(target))
    session.execute(_upsert(target, columns))
    return None


def _as_csv(batch: pa.RecordBatch, first: int | None) -> memoryview:
    if first is not None:
        order = pa.array(range(first, first + batch.num_rows), pa.int64())
        batch = batch.append_column(ORDER, order)
    out = pa.BufferOutputStream()
    csv.write_csv(batch, out, AS_CSV)
    return memoryview(out.getvalue())


def _last(target: PostgresTarget) -> sql.Composed:
    """Of each key the row that counts: the greatest by `orderBy`, or the last one of the batch."""
    keys, order = _names(target.settings.keys), sql.Identifier(ORDER)
    by = target.settings.order_by
    first = sql.SQL("{} DESC NULLS LAST, ").format(sql.Identifier(by)) if by else sql.SQL("")
    return sql.SQL("(SELECT DISTINCT ON ({}) * FROM {} ORDER BY {}, {}{} DESC) AS last").format(
        keys, LOAD, keys, first, order
    )


def _deletion(target: PostgresTarget) -> sql.Composed:
    same = [
        sql.SQL("t.{} = last.{}").format(sql.Identifier(key), sql.Identifier(key))
        for key in target.settings.keys
    ]
    flag = sql.Identifier(target.settings.delete_where or "")
    wanted = [*same, sql.SQL("last.{}").format(flag)]
    if target.settings.order_by is not None:
        wanted.append(_no_greater(target.settings.order_by, "last"))
    return sql.SQL("DELETE FROM {} AS t USING {} WHERE {}").format(
        target.name, _last(target), sql.SQL(" AND ").join(wanted)
    )


def _upsert(target: PostgresTarget, columns: Sequence[str]) -> sql.Composed:
    names, keys = target.written(columns), target.settings.keys
    others = [sql.Identifier(name) for name in names if name not in keys]
    sets = sql.SQL(", ").join(sql.SQL("{} = EXCLUDED.{}").format(each, each) for each in others)
    on_conflict = sql.SQL("DO UPDATE SET {}").format(sets) if others else sql.SQL("DO NOTHING")
    if target.settings.order_by is not None and others:
        newer = _no_greater(target.settings.order_by, "EXCLUDED")
        on_conflict = on_conflict + sql.SQL(" WHERE {}").format(newer)
    flag = target.settings.delete_where
    kept = sql.SQL("WHERE {} IS NOT TRUE").format(sql.Identifier(flag)) if flag else sql.SQL("")
    return sql.SQL("INSERT INTO {} AS t ({}) SELECT {} FROM {} {} ON CONFLICT ({}) {}").format(
        target.name, _names(names), _names(names), _last(target), kept, _names(keys), on_conflict
    )


def _no_greater(column: str, than: Literal["last", "EXCLUDED"]) -> sql.Composed:
    """The table's own row is not; one without a value is the smallest."""
    by = sql.Identifier(column)
    return sql.SQL("(t.{} IS NULL OR t.{} <= {}.{})").format(by, by, sql.SQL(than), by)


def _names(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))
