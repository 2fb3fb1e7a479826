"""Writes docs/sql.md from the lists: what SQL may hold, and what is refused and why."""

import sys
from collections.abc import Iterable, Iterator

from waybill_spark.guard.allowed import allowed
from waybill_spark.guard.judge import (
    DEPTH_MAX,
    EXPLODES_MAX,
    EXPRESSIONS_MAX,
    JOINS_MAX,
    NODES_MAX,
    PATTERN_CHARACTERS_MAX,
    SIZE_MAX,
    TEXT_CHARACTERS_MAX,
    UNIONS_MAX,
    Names,
    Refused,
)

WIDTH = 118
HEAD = """\
# SQL in a manifest

Made by `python -m waybill_spark.guard.page` from the lists in
`waybill_spark/guard/allowed.yaml`.

A step is one query. It reads the inputs and the steps of its stage by their names, and what it
names itself with `WITH`; nothing else. A stage looks at one row at a time: what needs several
(`GROUP BY`, `JOIN`, `ORDER BY`, `LIMIT`, windows) is not taken yet.

SQL comes from whoever may apply a manifest, and Spark's SQL can run Java, start processes, and read
and write files. So Waybill takes what is on a list and refuses all else, before Spark sees anything
of it. An error names the thing and its place; where there is another way, it says which.

## What is refused, and what to write instead

| What | Why | Instead |
|---|---|---|
"""
RULES = (
    ("`INSERT`, `CREATE`, `SET`, `ADD JAR`, scripts and all other commands", "a step is a query",
     "`SELECT …`, or `WITH … SELECT …`"),
    ("``csv.`/path` ``, `catalog.schema.table`, `IDENTIFIER(…)`", "a query reads its inputs",
     "an input of the manifest"),
    ("`TRANSFORM … USING`", "it starts a process", "a function below"),
    ("`TABLESAMPLE`", "it takes other rows when a batch is run again",
     "`WHERE crc32(column) % 10 = 0`"),
    ("hints, `/*+ … */`", "they are for Spark's planner", ""),
    ("parameters, `:name` and `?`; `${…}` stays as it is", "a manifest has no values for them",
     "write the value"),
    ("a regular expression or a format that is no constant", "its cost would be in the data",
     "write it as text"),
)  # fmt: skip
BOUNDS = f"""
## How large a query may be

{TEXT_CHARACTERS_MAX:,} characters, {NODES_MAX} nodes, {EXPRESSIONS_MAX:,} expressions,
{DEPTH_MAX} levels, {JOINS_MAX} joins, {UNIONS_MAX} unions and {EXPLODES_MAX} explodes in a step.

Functions that make as much as an argument says (`repeat`, `sequence`, `space`, `lpad`, `rpad`,
`array_repeat`, `array_insert`, `stack`, `format_string`, `format_number`) take constants there, and
these together, multiplied, are {SIZE_MAX:,} at most. A regular expression has
{PATTERN_CHARACTERS_MAX:,} characters at most.

What a query makes of the data itself has no limit: `explode` beside a large column may make
gigabytes of one record. That ends the driver of this pipeline, and of no other. A value that a
query cannot take (a sum that overflows, a text that is no number) fails its pipeline with an error
that names it; `try_add`, `try_cast` and others like them give NULL instead.

## Time

`current_timestamp()`, `current_date()`, `localtimestamp()` and `now()` tell the time of the batch,
which is the same when Spark runs it again. What a sink gets later than the others of its stage, or
in pieces because the batch is large, tells the time at which that was done.
"""
TRUST = """
## Where everybody is trusted

With `WAYBILL_STAGE_RUNNER_SQL_GUARD=trusted` the operator of a stage runner takes every query that
is no command: no lists, no limits, and no promise that a batch which runs again gives the same
rows. Whoever applies a manifest can then do there what the runner can do. `waybill describe`, the
events of a pipeline and the metric `waybill_sql_guard_trusted` tell it.
"""


def render() -> str:
    lists = allowed()
    return "".join((
        HEAD,
        *(f"| {what} | {why} | {instead} |\n" for what, why, instead in RULES),
        *_refused(lists.functions),
        *_refused(lists.tables),
        BOUNDS,
        "\n## Functions\n\n",
        *_words(name for name in lists.functions.allowed if name.isidentifier()),
        "\nIn `LATERAL VIEW`, and where a table stands:\n\n",
        *_words(lists.tables.allowed),
        TRUST,
    ))  # fmt: skip


def _refused(names: Names) -> Iterator[str]:
    by_reason: dict[Refused, list[str]] = {}
    for name, refused in names.refused.items():
        by_reason.setdefault(refused, []).append(f"`{name}`")
    for refused, listed in by_reason.items():
        yield f"| {', '.join(listed)} | {refused.reason} | {refused.hint} |\n"


def _words(names: Iterable[str]) -> Iterator[str]:
    line = ""
    for name in sorted(names):
        word = f"`{name}`, "
        if len(line) + len(word) > WIDTH:
            yield f"{line.rstrip()}\n"
            line = ""
        line += word
    yield f"{line.removesuffix(', ')}\n"


if __name__ == "__main__":
    sys.stdout.write(render())
