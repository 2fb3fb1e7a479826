"""What a table of Postgres is, and how it is made and gets columns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from psycopg import sql

from waybill_shared.contract.errors import Problem
from waybill_shared.contract.manifest.sinks import PostgresSinkSettings
from waybill_spark.sinks.postgres.connection import Session
from waybill_spark.sinks.postgres.types import column_type

FENCES: Final = "waybill_fences"
LOADS: Final = "waybill_load_"
ENUM: Final = "e"
COLUMNS: Final = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), t.typtype, a.attnotnull,
       a.atthasdef OR a.attidentity <> '', a.attgenerated <> '' OR a.attidentity = 'a'
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
UNIQUE: Final = """
SELECT array_agg(a.attname::text)
FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate
  AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = i.indnatts
GROUP BY i.indexrelid
"""
MAY: Final = """
SELECT quote_ident(current_user), c.relkind IN ('r', 'p'), c.relpersistence = 'p',
  c.relhasrules OR row_security_active(c.oid), pg_has_role(c.relowner, 'USAGE'),
  c.relkind = 'p' OR c.relispartition OR c.reloftype <> 0
    OR EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid), ARRAY(
    SELECT p FROM unnest(%s::text[]) AS p WHERE NOT has_table_privilege(c.oid, p))
FROM pg_class c WHERE c.oid = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    name: str
    type: str
    enumerated: bool
    required: bool
    has_default: bool
    computed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    columns: tuple[TableColumn, ...]
    unique: tuple[frozenset[str], ...]
    """The sets of columns of which no two rows have the same values."""
    plain: bool
    """True if it is a table, and no view or the like."""
    lasting: bool
    """True if committed rows survive a crash of the server."""
    ruled: bool
    """True if it may store other rows than it gets, by rules or policies."""
    owned: bool
    """True if its user may change its columns."""
    has_parts: bool
    """True if other tables have its columns: partitions, those that inherit it, or of its type."""
    denied: tuple[str, ...]
    """What its user may not do with it."""
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresTarget:
    """A sink's table, in the words of its manifest."""

    sink: str
    settings: PostgresSinkSettings

    @property
    def name(self) -> sql.Identifier:
        return sql.Identifier(*self.parts)

    @property
    def parts(self) -> tuple[str, str]:
        schema, _, table = self.settings.table.partition(".")
        return schema, table

    @property
    def needs(self) -> list[str]:
        upsert = ["UPDATE"] if self.settings.mode == "upsert" else []
        delete = ["DELETE"] if self.settings.delete_where is not None else []
        return ["INSERT", *upsert, *(upsert and ["SELECT"]), *delete]

    def without_flag(self, columns: Iterable[str]) -> list[str]:
        """Return those of the rows' columns that are the table's."""
        return [name for name in columns if name != self.settings.delete_where]


def find_table(session: Session, target: PostgresTarget) -> Table | None:
    row = session.execute(
        "SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relname = %s",
        target.parts,
    ).fetchone()
    if row is None:
        return None
    oid = row[0]
    may = session.execute(MAY, (target.needs, oid)).fetchone()
    assert may is not None
    return Table(
        columns=tuple(
            TableColumn(
                name=name,
                type=kind,
                enumerated=typtype == ENUM,
                required=required,
                has_default=has_default,
                computed=computed,
            )
            for name, kind, typtype, required, has_default, computed in session.execute(
                COLUMNS, (oid,)
            )
        ),
        unique=tuple(frozenset(names) for (names,) in session.execute(UNIQUE, (oid,))),
        user=may[0],
        plain=may[1],
        lasting=may[2],
        ruled=may[3],
        owned=may[4],
        has_parts=may[5],
        denied=tuple(may[6]),
    )


def make_table(target: PostgresTarget, schema: pa.Schema) -> sql.Composed:
    """Return the statement that makes the table; the keys of its rows are its primary key."""
    parts = [
        sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(column_type(field.type) or ""))
        for field in schema
        if field.name in target.without_flag(schema.names)
    ]
    if target.settings.keys:
        keys = sql.SQL(", ").join(map(sql.Identifier, target.settings.keys))
        parts.append(sql.SQL("PRIMARY KEY ({})").format(keys))
    return sql.SQL("CREATE TABLE {} ({})").format(target.name, sql.SQL(", ").join(parts))


def add_columns(target: PostgresTarget, columns: Mapping[str, str]) -> sql.Composed:
    """Compose the statement; a column that another has added meanwhile stays as it is."""
    parts = [
        sql.SQL("ADD COLUMN IF NOT EXISTS {} {}").format(sql.Identifier(name), sql.SQL(kind))
        for name, kind in columns.items()
    ]
    return sql.SQL("ALTER TABLE {} {}").format(target.name, sql.SQL(", ").join(parts))


def problem(target: PostgresTarget, what: str, hint: str) -> Problem:
    message = f"sink {target.sink}: table {target.settings.table}: {what}"
    return Problem(message=message, path="table", hint=hint)
