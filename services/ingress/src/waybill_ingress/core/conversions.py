"""Makes a manifest from SQL: each table is an input, and a stage of its own writes its rows into
the lakehouse.

Never talks to anything.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Final

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.connectors import FileConnector
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_shared.contract.manifest.tables import SqlTable, parse_tables

NAME_MAX: Final = 63
TABLES_MAX: Final = 64  # a manifest has no more inputs
HEAD: Final = """\
# Made of SQL. Each table is an input: records are sent to it over HTTP, or produced to its topic.
version: 1
name: {name}
inputs:
"""
INPUT: Final = """\
  - name: {table}
    kafka: {{topic: {pipeline}.{topic}}}
    schema: |
{sql}
"""
STAGES: Final = """\
stages:  # each writes the rows of a table as they come; docs/manifest.md says what else can be
"""
STAGE: Final = """\
  - name: {stage}
    inputs: [{table}]
    sinks:
      - {{name: {sink}, iceberg: {{table: {namespace}.{place}}}}}
"""
OF_YAML: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def manifest_of(sql: str, name: str) -> str:
    """Return the manifest for the tables in `sql`.

    Raises UserError with line and column of what cannot be kept, or if `name` is not valid.
    """
    sql = sql.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    tables = parse_tables(sql)
    if len(tables) > TABLES_MAX:
        message = f"these are {len(tables)} tables, and a pipeline has {TABLES_MAX} inputs at most"
        raise UserError([Problem(message=message, hint="make several pipelines of them")])
    written = (_input(table, name) for table in tables)
    text = "".join([HEAD.format(name=_quote(name)), *written, STAGES, *_stages(tables, name)])
    try:
        inputs = read_manifest(text).model.inputs
    except UserError as error:  # their places are in a text that nobody has seen
        raise error.without_places() from error
    read = [(each.columns, each.key, each.connectors) for each in inputs]
    if read != [(table.columns, *_statements(table)) for table in tables]:
        raise UserError([Problem(message="a name in it has a character that YAML does not keep")])
    return text


def _statements(table: SqlTable) -> tuple[str | None, tuple[FileConnector, ...]]:
    key = table.keys[0] if table.keys else None
    return key, tuple(FileConnector.model_validate(each) for each in table.connectors)


def _input(table: SqlTable, pipeline: str) -> str:
    name = table.name.lower()
    lines = (f"      {line}" if line else "" for line in table.sql.split("\n"))
    return INPUT.format(table=_quote(name), pipeline=pipeline, topic=name, sql="\n".join(lines))


def _stages(tables: Sequence[SqlTable], pipeline: str) -> Iterator[str]:
    """Yield the stages, with names that nothing else has."""
    names = [table.name.lower() for table in tables]
    used, stages, places = set(names), set[str](), set[str]()
    for name in names:
        yield STAGE.format(
            stage=_free(f"load_{name}", stages),
            table=_quote(name),
            sink=_free(f"{name}_rows", used),
            namespace=_plain(pipeline),
            place=_free(_plain(name), places),
        )


def _free(wanted: str, used: set[str]) -> str:
    ends = chain([""], map("_{}".format, count(2)))
    tries = (f"{wanted[: NAME_MAX - len(end)]}{end}" for end in ends)
    found = next(name for name in tries if name not in used)
    used.add(found)
    return found


def _quote(name: str) -> str:
    """Quote a name that YAML would read as another type."""
    return f'"{name}"' if name in OF_YAML else name


def _plain(name: str) -> str:
    """Return the name in the form that the lakehouse accepts."""
    return name.replace("-", "_")
