"""Writes docs/sql.md from the lists: what SQL may hold, and what is refused and why."""

import sys
from collections.abc import Iterable, Iterator

from waybill_spark.guard.allowed import read_allowed, read_lists
from waybill_spark.guard.judge import (
    DEPTH_MAX,
    EXPLODES_MAX,
    EXPRESSIONS_MAX,
    JOINS_MAX,
    NODES_MAX,
    PATTERN_CHARACTERS_MAX,
    TEXT_CHARACTERS_MAX,
    UNIONS_MAX,
    Names,
    Refused,
)
from waybill_spark.guard.options import FUNCTIONS, OPTIONS
from waybill_spark.guard.sizes import SIZE_MAX

WIDTH = 118
HEAD = """\
# SQL in a manifest

Made by `python -m waybill_spark.guard.page` from the lists in
`waybill_spark/guard/allowed.yaml`.

A step is one query. It reads the inputs and the steps of its stage by their names, and the names
that it defines itself with `WITH`; nothing else. A stage looks at one row at a time: SQL that needs
several rows (`GROUP BY`, `JOIN`, `ORDER BY`, `LIMIT`, windows) is not accepted yet.

Everybody who may apply a manifest can write SQL, and Spark's SQL can run Java, start processes, and
read and write files. So Waybill accepts only what is on a list, and refuses everything else before
Spark sees it. The error names what is refused and its place, and another way if there is one.

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
    ("`TABLESAMPLE`", "it chooses other rows when a batch is run again",
     "`WHERE crc32(column) % 10 = 0`"),
    ("aggregates (`count`, `sum`, …) and window functions (`row_number`, `lag`, …)",
     "a stage looks at one row at a time", "write the rows, and count them where they are read"),
    ("hints, `/*+ … */`", "they are for Spark's planner", ""),
    ("parameters, `:name` and `?`; `${…}` stays as it is", "a manifest has no values for them",
     "write the value"),
    ("a regular expression or a format that is not a constant", "the data would decide its cost",
     "write it as text"),
)  # fmt: skip
BOUNDS = f"""
## How large a query may be

{TEXT_CHARACTERS_MAX:,} characters, {NODES_MAX} nodes, {EXPRESSIONS_MAX:,} expressions,
{DEPTH_MAX} levels, {JOINS_MAX} `LATERAL` subqueries, {UNIONS_MAX} unions and
{EXPLODES_MAX} explodes in a step.

Some functions have an argument that says how much they produce (`repeat`, `sequence`, `space`,
`lpad`, `rpad`, `array_repeat`, `array_insert`, `stack`, `format_string`, `format_number`). This
argument must be a constant, and the product of all of them is {SIZE_MAX:,} at most. A regular
expression has {PATTERN_CHARACTERS_MAX:,} characters at most.

What a query produces from the data has no limit: `explode` with a large column can make gigabytes
from one record. That ends the driver of this pipeline, and of no other. When a value is wrong for a
query (a sum that overflows, a text that is not a number), its record goes to the dead-letter topic;
`try_add`, `try_cast` and similar functions give NULL instead.

## Rules of inputs

The rule of an input (`expectations`, see [manifest.md](manifest.md#rules)) is one condition on the
columns of one record, such as `amount > 0 AND length(customer) < 100`. It may hold what a step may,
but no subquery, no aggregate, no window function, no `*` and no `AS`. And it cannot ask for the
time, because a record that is read again must be judged as before: put what depends on the time
into a step.

## Time

`current_timestamp()`, `current_date()`, `localtimestamp()` and `now()` give the time of the batch,
which is the same when Spark runs the batch again. For rows that a sink gets later than the other
sinks of its stage, or in pieces because the batch is large, they give the time of that moment.
"""
TRUST = """
## Where everybody is trusted

With `WAYBILL_STAGE_RUNNER_SQL_GUARD=trusted`, a stage runner accepts every query that is not a
command: there are no lists, no limits, and no promise that a batch which runs again gives the same
rows. Everybody who may apply a manifest can then do there what the runner can do. `waybill
describe`, the events of a pipeline and the metric `waybill_sql_guard_trusted` show this setting.
"""


def render() -> str:
    lists = read_allowed()
    of_many_rows = frozenset(read_lists()["functions"]["of_many_rows"])
    return "".join((
        HEAD,
        *(f"| {what} | {why} | {instead} |\n" for what, why, instead in RULES),
        *_list_refused(lists.functions),
        *_list_refused(lists.tables),
        BOUNDS,
        "\n## Options\n\n",
        f"In the `map(…)` of {', '.join(f'`{name}`' for name in sorted(FUNCTIONS))}:\n\n",
        *_words(OPTIONS),
        "\n## Functions\n\n",
        *_words(name for name in lists.functions.allowed - of_many_rows if name.isidentifier()),
        "\nIn `LATERAL VIEW`, and in place of a table:\n\n",
        *_words(lists.tables.allowed),
        TRUST,
    ))  # fmt: skip


def _list_refused(names: Names) -> Iterator[str]:
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
