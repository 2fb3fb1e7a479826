"""What a table of Postgres is, whether it takes the rows of a query, and how it is made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from psycopg import sql

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Problem
from waybill_shared.contract.manifest.sinks import PostgresSinkSettings
from waybill_spark.sinks.postgres.connection import Session
from waybill_spark.sinks.postgres.types import column_type, takes

FENCES: Final = "waybill_fences"
ENUM: Final = "e"
REQUIRED: Final = "ALTER COLUMN {} SET NOT NULL"
NAME_BYTES_MAX: Final = 63  # longer names are cut in silence
OPTIONAL: Final = "ALTER COLUMN {} DROP NOT NULL"
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
  c.relhasrules OR row_security_active(c.oid), ARRAY(
    SELECT p FROM unnest(%s::text[]) AS p WHERE NOT has_table_privilege(c.oid, p))
FROM pg_class c WHERE c.oid = %s
"""

CREATES: Final = """
SELECT quote_ident(current_user), has_schema_privilege(oid, 'CREATE')
FROM pg_namespace WHERE nspname = %s
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
    """Whether it is a table, and no view or the like."""
    lasting: bool
    """Whether what was committed survives a crash of the server."""
    ruled: bool
    """Whether it may take other rows than it is given, by rules or policies."""
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

    def written(self, columns: Iterable[str]) -> list[str]:
        """Those of the rows' columns that are the table's."""
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
        denied=tuple(may[4]),
    )


def fitting_table(session: Session, target: PostgresTarget, schema: pa.Schema) -> Table | None:
    """The one that takes rows of this schema; None if it is still to be made.

    UserError if they can never go in, with the statement that would mend it.
    """
    table = find_table(session, target)
    if target.parts[1] == FENCES:
        raise UserError([_problem(target, "it is Waybill's own", "take another name")])
    problems = [*_untyped(target, schema)]
    if table is not None:
        problems += _unfit(target, table, schema)
    elif not target.settings.create:
        problems.append(_problem(target, "there is no such table", _made(target, schema)))
    if problems:
        raise UserError(problems)
    if table is None:
        _refuse_place(session, target)
    return table


def _refuse_place(session: Session, target: PostgresTarget) -> None:
    """UserError if no table can be made there."""
    name = target.parts[0]
    schema = sql.Identifier(name)
    if name.startswith("pg_") or name == "information_schema":
        raise UserError([_problem(target, f"schema {name} is Postgres' own", "take another")])
    row = session.execute(CREATES, (name,)).fetchone()
    if row is None:
        hint = sql.SQL("make it: CREATE SCHEMA {}").format(schema).as_string()
        hint += "; names are taken as they stand, with capitals, and the first dot ends the schema"
        raise UserError([_problem(target, f"there is no schema {name}", hint)])
    user, may_create = row
    if not may_create:
        grant = sql.SQL("as its owner: GRANT CREATE ON SCHEMA {} TO {}")
        hint = grant.format(schema, sql.SQL(user)).as_string()
        raise UserError([_problem(target, f"its user may make no table in {name}", hint)])


def make_table(target: PostgresTarget, schema: pa.Schema) -> sql.Composed:
    """The statement; its rows' keys are its primary key."""
    parts = [
        sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(column_type(field.type) or ""))
        for field in schema
        if field.name in target.written(schema.names)
    ]
    if target.settings.keys:
        keys = sql.SQL(", ").join(map(sql.Identifier, target.settings.keys))
        parts.append(sql.SQL("PRIMARY KEY ({})").format(keys))
    return sql.SQL("CREATE TABLE {} ({})").format(target.name, sql.SQL(", ").join(parts))


def _untyped(target: PostgresTarget, schema: pa.Schema) -> list[Problem]:
    problems = [
        _problem(target, f"Postgres has no type for {field.name}, {field.type}", "cast it to text")
        for field in schema
        if column_type(field.type) is None
    ]
    problems += (
        _problem(target, f"the name of column {name} is too long", "at most 63 bytes of UTF-8")
        for name in schema.names
        if len(name.encode()) > NAME_BYTES_MAX
    )
    by = target.settings.order_by
    if by in schema.names and pa.types.is_nested(schema.field(by).type):
        problems.append(
            _problem(target, f"orderBy {by} is nested: it has no order", "name another")
        )
    flag = target.settings.delete_where
    found = column_type(schema.field(flag).type) if flag in schema.names else "boolean"
    if found != "boolean":
        hint = "make it one in the query: … = 'd' AS deleted"
        problems.append(_problem(target, f"deleteWhere {flag} is {found}, not boolean", hint))
    return problems


def _unfit(target: PostgresTarget, table: Table, schema: pa.Schema) -> list[Problem]:
    if not table.plain:
        return [_problem(target, "it is a view or the like, no table", "name a table")]
    if not table.lasting:
        hint = sql.SQL("ALTER TABLE {} SET LOGGED").format(target.name).as_string()
        return [_problem(target, "it is UNLOGGED: a crash of the server empties it", hint)]
    if table.ruled:
        hint = "take a table without rules, and a user whom no policy of rows concerns"
        return [_problem(target, "rules or policies decide which rows it takes", hint)]
    problems: list[Problem] = []
    present = {column.name: column for column in table.columns}
    for field in schema:
        kind = column_type(field.type)
        if kind is None or field.name not in target.written(schema.names):
            continue
        column = present.get(field.name)
        if column is None:
            hint = _alter(target, "ADD COLUMN {} {}", field.name, kind)
            problems.append(_problem(target, f"it has no column {field.name}", hint))
        elif column.computed:
            hint = "leave it out of the query: Postgres computes it"
            problems.append(_problem(target, f"its column {field.name} is computed", hint))
        elif not takes(column.type, kind, enumerated=column.enumerated):
            message = f"its column {field.name} is {column.type}, the query gives {kind}"
            hint = _alter(target, "ALTER COLUMN {} TYPE {}", field.name, kind)
            problems.append(_problem(target, message, f"cast it in the query, or {hint}"))
    problems += _required(target, table, schema.names)
    return [*problems, *_without_keys(target, table), *_denied(target, table)]


def _required(target: PostgresTarget, table: Table, given: Sequence[str]) -> list[Problem]:
    return [
        _problem(
            target,
            f"its column {column.name} needs a value, and the query gives none",
            f"add it to the query, or {_alter(target, OPTIONAL, column.name)}",
        )
        for column in table.columns
        if column.required
        and not (column.has_default or column.computed)
        and column.name not in target.written(given)
    ]


def _without_keys(target: PostgresTarget, table: Table) -> list[Problem]:
    keys = target.settings.keys
    if not keys:
        return []
    if frozenset(keys) in table.unique:
        nullable = (c.name for c in table.columns if c.name in keys and not c.required)
        return [
            _problem(target, f"its key {name} may be null", _alter(target, REQUIRED, name))
            for name in nullable
        ]
    names = sql.SQL(", ").join(map(sql.Identifier, keys))
    hint = sql.SQL("CREATE UNIQUE INDEX ON {} ({})").format(target.name, names).as_string()
    message = f"it has no unique index over {', '.join(keys)}"
    return [_problem(target, message, f"make it: {hint}")]


def _denied(target: PostgresTarget, table: Table) -> list[Problem]:
    if not table.denied:
        return []
    rights = sql.SQL(", ").join(map(sql.SQL, table.denied))
    hint = sql.SQL("GRANT {} ON {} TO {}").format(rights, target.name, sql.SQL(table.user))
    return [
        _problem(
            target,
            f"its user may not {', '.join(table.denied)}",
            f"as its owner: {hint.as_string()}",
        )
    ]


def _made(target: PostgresTarget, schema: pa.Schema) -> str:
    return f"write create: true, or make it: {make_table(target, schema).as_string()}"


def _alter(target: PostgresTarget, change: str, column: str, kind: str = "") -> str:
    names = (sql.Identifier(column), sql.SQL(kind)) if kind else (sql.Identifier(column),)
    changed = sql.SQL(change).format(*names)
    return sql.SQL("ALTER TABLE {} {}").format(target.name, changed).as_string()


def _problem(target: PostgresTarget, what: str, hint: str) -> Problem:
    message = f"sink {target.sink}: table {target.settings.table}: {what}"
    return Problem(message=message, path="table", hint=hint)
