"""The fences in a database: a row for each key, which moves by compare-and-set."""

from typing import Final

from psycopg import errors, sql

from waybill_shared.contract import codec
from waybill_shared.contract.events import Fence
from waybill_spark.sinks.postgres.connection import Session
from waybill_spark.sinks.postgres.tables import FENCES

TRIES: Final = 3  # two who make it at once: one of them is refused, and then finds it


def make_fences(session: Session, schema: str) -> None:
    if _present(session, schema):
        return
    make = sql.SQL(
        "CREATE TABLE IF NOT EXISTS {}"
        " (key text PRIMARY KEY, sequence bigint NOT NULL, body jsonb NOT NULL)"
    ).format(_table(schema))
    for _ in range(TRIES):
        try:
            session.execute(make)
            return
        except (errors.UniqueViolation, errors.DuplicateTable):
            continue


def read_fence(session: Session, schema: str, key: str) -> Fence | None:
    if not _present(session, schema):
        return None
    read = sql.SQL("SELECT body::text FROM {} WHERE key = %s").format(_table(schema))
    row = session.execute(read, (key,)).fetchone()
    return None if row is None else codec.from_json(Fence, row[0])


def move_fence(
    session: Session, schema: str, key: str, fence: Fence, *, seen: Fence | None
) -> bool:
    """Whether it stood where it was `seen` last; inside a transaction, with what it covers."""
    body = codec.to_json(fence)
    if seen is None:
        insert = sql.SQL(
            "INSERT INTO {} (key, sequence, body) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        ).format(_table(schema))
        moved = session.execute(insert, (key, fence.sequence, body))
    else:
        update = sql.SQL(
            "UPDATE {} SET sequence = %s, body = %s WHERE key = %s AND sequence = %s"
        ).format(_table(schema))
        moved = session.execute(update, (fence.sequence, body, key, seen.sequence))
    return moved.rowcount == 1


def _present(session: Session, schema: str) -> bool:
    row = session.execute(
        "SELECT to_regclass(format('%%I.%%I', %s::text, %s::text)) IS NOT NULL", (schema, FENCES)
    ).fetchone()
    return row is not None and bool(row[0])


def _table(schema: str) -> sql.Identifier:
    return sql.Identifier(schema, FENCES)
