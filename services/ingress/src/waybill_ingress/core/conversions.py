"""Makes a manifest of what others wrote: each table of a SQL file is an input, and a stage of its
own writes its rows into the lakehouse. Never talks to anything."""

from typing import Final

from waybill_shared.contract.errors import UserError
from waybill_shared.contract.events import Problem
from waybill_shared.contract.manifest.reading import parse_manifest
from waybill_shared.contract.manifest.tables import SqlTable, parse_tables

TABLES_MAX: Final = 64  # a manifest has no more inputs
HEAD: Final = """\
# Made of SQL. Each table is an input: records are sent to it over HTTP, or produced to its topic.
version: 1
name: {name}
inputs:
"""
INPUT: Final = """\
  - name: {table}
    kafka: {{topic: {name}.{table}}}
    schema: |
{sql}
"""
STAGES: Final = """\
stages:  # each writes the rows of a table as they come; `waybill check` says what else can be
"""
STAGE: Final = """\
  - name: load_{table}
    inputs: [{table}]
    sinks:
      - {{name: {table}_rows, iceberg: {{table: {namespace}.{place}}}}}
"""


def manifest_of(sql: str, name: str) -> str:
    """UserError with the line and column of what cannot be kept, or if `name` is none."""
    tables = parse_tables(sql)
    if len(tables) > TABLES_MAX:
        message = f"these are {len(tables)} tables, and a pipeline has {TABLES_MAX} inputs at most"
        raise UserError([Problem(message=message, hint="make several pipelines of them")])
    inputs = (_input(table, name) for table in tables)
    stages = (_stage(table, name) for table in tables)
    text = "".join([HEAD.format(name=name), *inputs, STAGES, *stages])
    try:
        read = [source.columns for source in parse_manifest(text).inputs]
    except UserError as error:  # the places are those of a text that nobody has seen
        raise error.without_places() from error
    if read != [table.columns for table in tables]:
        raise UserError([Problem(message="a name in it has a character that YAML does not keep")])
    return text


def _input(table: SqlTable, name: str) -> str:
    lines = (f"      {line}".rstrip() for line in table.sql.splitlines())
    return INPUT.format(table=table.name.lower(), name=name, sql="\n".join(lines))


def _stage(table: SqlTable, name: str) -> str:
    place = table.name.lower()
    return STAGE.format(table=place, namespace=_plain(name), place=_plain(place))


def _plain(name: str) -> str:
    """As the lakehouse has names."""
    return name.replace("-", "_")
