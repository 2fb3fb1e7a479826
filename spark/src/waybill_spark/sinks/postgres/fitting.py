"""Decides if a table accepts the rows of a query, and what of it must change so that it does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from psycopg import sql

from waybill_shared.contract.errors import Problem, UserError
from waybill_spark.sinks.altering import describe_new, new_names
from waybill_spark.sinks.postgres.connection import Session
from waybill_spark.sinks.postgres.tables import (
    FENCES,
    LOADS,
    PostgresTarget,
    Table,
    TableColumn,
    add_columns,
    find_table,
    make_table,
    problem,
)
from waybill_spark.sinks.postgres.types import column_type, takes

OURS: Final = (FENCES, "iceberg_tables", "iceberg_namespace_properties")
"""Tables that no pipeline writes. The last two are a catalog's, and say where each table is."""
NAME_BYTES_MAX: Final = 63  # longer names are cut in silence
SYSTEM: Final = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")
"""Columns that every table has."""
REQUIRED: Final = "ALTER COLUMN {} SET NOT NULL"
OPTIONAL: Final = "ALTER COLUMN {} DROP NOT NULL"
RENAMED: Final = "RENAME COLUMN {} TO {}"
CREATES: Final = """
SELECT quote_ident(current_user), has_schema_privilege(oid, 'CREATE')
FROM pg_namespace WHERE nspname = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """A change that a table needs before rows go in: it is made, or it gets columns."""

    made: bool = False
    added: Mapping[str, str] = field(default_factory=dict)
    """Types by the names of columns."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """By added column: the statement that would rename a column to it that the query lost."""

    def describe(self) -> Iterator[str]:
        """Yield what a person would want to know beforehand."""
        return describe_new(self.added, self.renamed)


def plan_change(session: Session, target: PostgresTarget, schema: pa.Schema) -> TableChange:
    """Find what must change so that the table takes rows of this schema.

    UserError if they can never go in, with the statement that would mend it.
    """
    _refuse_name(target)
    table = find_table(session, target)
    problems = [*_find_untyped(target, schema)]
    if table is not None:
        problems += _unfit(target, table, schema)
    elif not target.settings.create:
        problems.append(problem(target, "there is no such table", _make_statement(target, schema)))
    if problems:
        raise UserError(problems)
    if table is None:
        _refuse_place(session, target)
        return TableChange(made=True)
    return _find_missing(target, table, schema)


def _find_missing(target: PostgresTarget, table: Table, schema: pa.Schema) -> TableChange:
    given, present = (
        _types_of_query(target, schema),
        {each.name: each.type for each in table.columns},
    )
    added = {name: kind for name, kind in given.items() if name not in present}
    others_fill = {each.name for each in table.columns if each.has_default or each.computed}
    removed = {name: kind for name, kind in present.items() if name not in {*given, *others_fill}}
    return TableChange(
        added=added,
        renamed={
            new: _alter(target, RENAMED, old, sql.Identifier(new))
            for new, old in new_names(added, removed).items()
        },
    )


def _types_of_query(target: PostgresTarget, schema: pa.Schema) -> dict[str, str]:
    """Return the types that columns of the table would be made with, by name."""
    kinds = {
        name: column_type(schema.field(name).type) for name in target.without_flag(schema.names)
    }
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _refuse_name(target: PostgresTarget) -> None:
    """Raise UserError if the table belongs to Postgres or to Waybill."""
    schema, table = target.parts
    if schema.startswith("pg_") or schema == "information_schema":
        raise UserError([problem(target, f"schema {schema} is Postgres' own", "take another")])
    if table in OURS or table.startswith(LOADS):
        raise UserError([problem(target, "it is Waybill's own", "take another name")])


def _refuse_place(session: Session, target: PostgresTarget) -> None:
    """Raise UserError if no table can be made there."""
    name = target.parts[0]
    schema = sql.Identifier(name)
    row = session.execute(CREATES, (name,)).fetchone()
    if row is None:
        hint = sql.SQL("make it: CREATE SCHEMA {}").format(schema).as_string()
        hint += "; names are used as they are, with capitals, and the first dot ends the schema"
        raise UserError([problem(target, f"there is no schema {name}", hint)])
    user, may_create = row
    if not may_create:
        grant = sql.SQL("as its owner: GRANT CREATE ON SCHEMA {} TO {}")
        hint = grant.format(schema, sql.SQL(user)).as_string()
        raise UserError([problem(target, f"its user may make no table in {name}", hint)])


def _find_untyped(target: PostgresTarget, schema: pa.Schema) -> list[Problem]:
    problems = [
        problem(target, f"Postgres has no type for {field.name}, {field.type}", "cast it to text")
        for field in schema
        if column_type(field.type) is None
    ]
    problems += (
        problem(target, f"the name of column {name} is too long", "at most 63 bytes of UTF-8")
        for name in schema.names
        if len(name.encode()) > NAME_BYTES_MAX
    )
    problems += (
        problem(target, f"no column can be called {name}: it is Postgres' own", "rename it")
        for name in target.without_flag(schema.names)
        if name in SYSTEM
    )
    by = target.settings.order_by
    if by in schema.names and pa.types.is_nested(schema.field(by).type):
        problems.append(problem(target, f"orderBy {by} is nested: it has no order", "name another"))
    flag = target.settings.delete_where
    found = column_type(schema.field(flag).type) if flag in schema.names else "boolean"
    if found != "boolean":
        hint = "make it one in the query: … = 'd' AS deleted"
        problems.append(problem(target, f"deleteWhere {flag} is {found}, not boolean", hint))
    return problems


def _unfit(target: PostgresTarget, table: Table, schema: pa.Schema) -> list[Problem]:
    if not table.plain:
        return [problem(target, "it is a view or the like, no table", "name a table")]
    if not table.lasting:
        hint = sql.SQL("ALTER TABLE {} SET LOGGED").format(target.name).as_string()
        return [problem(target, "it is UNLOGGED: a crash of the server empties it", hint)]
    if table.ruled:
        hint = "take a table without rules, and a user whom no policy of rows concerns"
        return [problem(target, "rules or policies decide which rows it takes", hint)]
    present = {column.name: column for column in table.columns}
    found = (
        _not_added(target, table, name, kind)
        if name not in present
        else _find_unfit(target, present[name], kind)
        for name, kind in _types_of_query(target, schema).items()
    )
    problems = [each for each in found if each is not None]
    problems += _find_required(target, table, schema.names)
    return [*problems, *_without_keys(target, table), *_find_denied(target, table)]


def _not_added(target: PostgresTarget, table: Table, name: str, kind: str) -> Problem | None:
    """Return why the table does not get a column that it lacks."""
    said, statement = f"it has no column {name}", add_columns(target, {name: kind}).as_string()
    other = next((each.name for each in table.columns if each.name.lower() == name.lower()), None)
    if other is not None:
        said = f"it has a column {other}, and the query gives {name}"
        return problem(target, said, "Spark takes them for one: spell it alike")
    if name in target.settings.keys:
        hint = f"add it and give it values, or take another key: {statement}"
        return problem(target, f"{said}, which is a key: no row has one", hint)
    if target.settings.schema_evolution == "none":
        return problem(target, said, f"write schemaEvolution: add, or add it: {statement}")
    if table.has_parts:
        hint = f"add it by hand, to the table that the others follow: {statement}"
        return problem(target, f"{said}, and shares its columns with other tables", hint)
    if not table.owned:
        said = f"{said}, and only the owner of the table may add one"
        return problem(target, said, f"as its owner: {statement}")
    return None


def _find_unfit(target: PostgresTarget, column: TableColumn, kind: str) -> Problem | None:
    """Return why a column does not accept values of a type."""
    if column.computed:
        hint = "leave it out of the query: Postgres computes it"
        return problem(target, f"its column {column.name} is computed", hint)
    if takes(column.type, kind, enumerated=column.enumerated):
        return None
    said = f"its column {column.name} is {column.type}, the query gives {kind}"
    hint = _alter(target, "ALTER COLUMN {} TYPE {}", column.name, sql.SQL(kind))
    return problem(target, said, f"cast it in the query, or {hint}")


def _find_required(target: PostgresTarget, table: Table, given: Sequence[str]) -> list[Problem]:
    return [
        problem(
            target,
            f"its column {column.name} needs a value, and the query gives none",
            f"add it to the query, or {_alter(target, OPTIONAL, column.name)}",
        )
        for column in table.columns
        if column.required
        and not (column.has_default or column.computed)
        and column.name not in target.without_flag(given)
    ]


def _without_keys(target: PostgresTarget, table: Table) -> list[Problem]:
    keys = target.settings.keys
    if not keys:
        return []
    if frozenset(keys) in table.unique:
        nullable = (c.name for c in table.columns if c.name in keys and not c.required)
        return [
            problem(target, f"its key {name} may be null", _alter(target, REQUIRED, name))
            for name in nullable
        ]
    names = sql.SQL(", ").join(map(sql.Identifier, keys))
    hint = sql.SQL("CREATE UNIQUE INDEX ON {} ({})").format(target.name, names).as_string()
    message = f"it has no unique index over {', '.join(keys)}"
    return [problem(target, message, f"make it: {hint}")]


def _find_denied(target: PostgresTarget, table: Table) -> list[Problem]:
    if not table.denied:
        return []
    rights = sql.SQL(", ").join(map(sql.SQL, table.denied))
    hint = sql.SQL("GRANT {} ON {} TO {}").format(rights, target.name, sql.SQL(table.user))
    return [
        problem(
            target,
            f"its user may not {', '.join(table.denied)}",
            f"as its owner: {hint.as_string()}",
        )
    ]


def _make_statement(target: PostgresTarget, schema: pa.Schema) -> str:
    return f"write create: true, or make it: {make_table(target, schema).as_string()}"


def _alter(target: PostgresTarget, change: str, column: str, *more: sql.Composable) -> str:
    changed = sql.SQL(change).format(sql.Identifier(column), *more)
    return sql.SQL("ALTER TABLE {} {}").format(target.name, changed).as_string()
