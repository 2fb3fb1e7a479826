"""The fences in a database: a row for each key, which moves by compare-and-set."""

from typing import Final

from psycopg import errors, sql

from waybill_shared.contract import codec
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import Fence
from waybill_spark.sinks.postgres.connection import Session
from waybill_spark.sinks.postgres.tables import FENCES, UNIQUE

RIGHTS: Final = """
SELECT quote_ident(current_user), has_schema_privilege(n.oid, 'USAGE'),
       has_schema_privilege(n.oid, 'CREATE'),
       c.oid, c.relkind = 'r' AND c.relpersistence = 'p', ARRAY(
         SELECT p FROM unnest('{SELECT,INSERT,UPDATE}'::text[]) AS p
         WHERE NOT has_table_privilege(c.oid, p))
FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = %s
WHERE n.nspname = %s
"""
SHAPE: Final = sql.SQL("key text PRIMARY KEY, sequence bigint NOT NULL, body jsonb NOT NULL")
TRIES: Final = 3  # two who make it at once: one of them is refused, and then finds it


def refuse_no_place(session: Session, connection: str, schema: str) -> None:
    """Raise UserError if the schema of the fences does not exist, or its table is not ours to
    use.
    """
    row = session.execute(RIGHTS, (FENCES, schema)).fetchone()
    place = sql.Identifier(schema)
    if row is None:
        hint = sql.SQL("make it: CREATE SCHEMA {}").format(place)
        raise _refusal(f"connection {connection}: the database has no schema {schema}", hint)
    user, may_use, may_create, oid, lasting, missing = row
    rights = [*([] if may_use else ["USAGE"]), *([] if may_create or oid else ["CREATE"])]
    on: sql.Composable = sql.SQL("SCHEMA {}").format(place)
    if not rights and oid is not None:
        rights, on = missing, _table(schema)
        unique = [set(names) for (names,) in session.execute(UNIQUE, (oid,))]
        if not lasting or {"key"} not in unique:
            hint = sql.SQL("make it as it was: CREATE TABLE {} ({})").format(_table(schema), SHAPE)
            message = f"connection {connection}: somebody has changed the table {FENCES}"
            raise _refusal(message, hint)
    if rights:
        what, to = sql.SQL(", ".join(rights)), sql.SQL(user)
        grant = sql.SQL("as its owner: GRANT {} ON {} TO {}").format(what, on, to)
        text = f"its user may not keep fences in schema {schema}: no {', '.join(rights)}"
        raise _refusal(f"connection {connection}: {text}", grant)


def make_fences(session: Session, schema: str) -> None:
    if _present(session, schema):
        return
    make = sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(_table(schema), SHAPE)
    for _ in range(TRIES):
        try:
            session.execute(make)
            return
        except (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateObject):
            continue


def read_fence(session: Session, schema: str, key: str) -> Fence | None:
    if not _present(session, schema):
        return None
    read = sql.SQL("SELECT body::text FROM {} WHERE key = %s").format(_table(schema))
    row = session.execute(read, (key,)).fetchone()
    if row is None:
        return None
    try:
        return codec.from_json(Fence, row[0])
    except ValueError:
        message = f"the fence {key} in {schema}.{FENCES} is spoiled: somebody has changed it"
        raise UserError([Problem(message=message, hint="restore it with its table")]) from None


def move_fence(
    session: Session, schema: str, key: str, fence: Fence, *, seen: Fence | None
) -> bool:
    """Move the fence inside a transaction with what it covers.

    Return True if it was still where it was `seen` last.
    """
    body = codec.to_json(fence)
    if seen is None:
        insert = sql.SQL(
            "INSERT INTO {} (key, sequence, body) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        ).format(_table(schema))
        moved = session.execute(insert, (key, fence.batch.sequence, body))
    else:
        update = sql.SQL(
            "UPDATE {} SET sequence = %s, body = %s WHERE key = %s AND sequence = %s"
            " AND body->'batch'->>'lineage' = %s AND body->>'epoch' = %s"
        ).format(_table(schema))
        expected = (key, seen.batch.sequence, seen.batch.lineage, str(seen.epoch))
        moved = session.execute(update, (fence.batch.sequence, body, *expected))
    return moved.rowcount == 1


def _refusal(message: str, hint: sql.Composed) -> UserError:
    return UserError([Problem(message=message, path="connection", hint=hint.as_string())])


def _present(session: Session, schema: str) -> bool:
    row = session.execute(
        "SELECT to_regclass(format('%%I.%%I', %s::text, %s::text)) IS NOT NULL", (schema, FENCES)
    ).fetchone()
    return row is not None and bool(row[0])


def _table(schema: str) -> sql.Identifier:
    return sql.Identifier(schema, FENCES)
