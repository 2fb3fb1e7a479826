"""What the SQL of a step may be: a query over the stage's views, row by row. And Spark's
complaints in words that name the fix. Runs no SQL."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from py4j.java_gateway import JavaObject
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from shared.errors import UserError
from shared.events import Problem
from shared.suggestions import hint_of_names

LOGICAL: Final = "org.apache.spark.sql.catalyst.plans.logical"
QUERY_HINT: Final = "write SELECT …, or WITH … SELECT …"
ROWS_HINT: Final = "use SELECT, WHERE, UNION ALL, LATERAL VIEW and expressions of one row"
STATELESS: Final = frozenset({
    "Project", "Filter", "SubqueryAlias", "View", "Union", "Generate", "Expand", "LocalRelation",
    "OneRowRelation", "CollectMetrics", "StreamingRelation", "StreamingRelationV2", "LogicalRDD",
    "StreamingExecutionRelation", "WithCTE", "CTERelationDef", "CTERelationRef", "LateralJoin",
    "PipeOperator",
})  # fmt: skip
COMMANDS: Final = frozenset({"Call", "UnresolvedExecuteImmediate"})  # what Spark calls otherwise
IN_SQL: Final = {
    "Aggregate": "GROUP BY or an aggregate", "Pivot": "PIVOT",
    "Distinct": "DISTINCT (or UNION without ALL)", "Deduplicate": "DISTINCT",
    "GlobalLimit": "LIMIT", "LocalLimit": "LIMIT", "Offset": "OFFSET",
    "Tail": "LIMIT", "Sort": "ORDER BY", "Window": "a window function", "Join": "JOIN",
    "Except": "EXCEPT", "Intersect": "INTERSECT", "Sample": "TABLESAMPLE",
    "ScriptTransformation": "TRANSFORM", "Repartition": "a repartition hint",
    "RepartitionByExpression": "DISTRIBUTE BY", "LogicalRelation": "a table that is no view here",
}  # fmt: skip
POSITION: Final = re.compile(r"\(?line (\d+),? pos (\d+)\)?")
CLASS: Final = re.compile(r"^\[[A-Z0-9_.]+\] ")


def refuse_command(raw: DataFrame, sql: str, path: str) -> None:
    """Spark carries a command out as soon as it sees it; the session of `raw` must not see one."""
    plan = raw._jdf.sparkSession().sessionState().sqlParser().parsePlan(sql)
    for node in _nodes(plan):
        if node.nodeName() in COMMANDS or _of(node, "Command") or _of(node, "ParsedStatement"):
            message = "a step is a query, this is a command"
            raise UserError([Problem(message=message, path=path, hint=QUERY_HINT)])


def refuse_stateful(frame: DataFrame, path: str) -> None:
    if not frame.isStreaming:
        message = "the query reads none of the stage's inputs"
        raise UserError(
            [Problem(message=message, path=path, hint="select from an input or a step")]
        )
    for node in _nodes(frame._jdf.queryExecution().analyzed()):
        name = node.nodeName()
        if name not in STATELESS:
            what = IN_SQL.get(name, name)
            message = f"{what} is not taken: a stage looks at one row at a time"
            raise UserError([Problem(message=message, path=path, hint=ROWS_HINT)])


def sql_problem(error: PySparkException, path: str, views: Sequence[str]) -> Problem:
    """`error` with the place in the SQL, and what would have worked."""
    found = POSITION.search(str(error))
    place = f" (line {found[1]}, column {int(found[2]) + 1} of the SQL)" if found else ""
    message, hint = _in_our_words(error, views)
    return Problem(message=message + place, path=path, hint=hint)


def _in_our_words(error: PySparkException, views: Sequence[str]) -> tuple[str, str]:
    named = error.getMessageParameters() or {}
    match (error.getCondition() or "").split(".")[0]:
        case "UNRESOLVED_COLUMN" | "UNRESOLVED_FIELD":
            wanted, known = named.get("objectName", ""), named.get("proposal", "")
            columns = [name.strip().strip("`") for name in known.split(", ") if name]
            hint = hint_of_names(wanted.strip("`"), columns, "columns")
            return f"no column is called {wanted}", hint
        case "TABLE_OR_VIEW_NOT_FOUND":
            wanted = named.get("relationName", "")
            return f"no view is called {wanted}", hint_of_names(
                wanted.strip("`"), views, "views here"
            )
        case "UNRESOLVED_ROUTINE":
            hint = "Spark's built-in functions are known, no others"
            return f"no function is called {named.get('routineName', '')}", hint
        case "PARSE_SYNTAX_ERROR":
            return f"syntax error at or near {named.get('error', '')}", QUERY_HINT
        case "INVALID_SUBQUERY_EXPRESSION":
            return "a subquery over an input is not taken", ROWS_HINT
        case _:
            return _text(error), ""


def _text(error: PySparkException) -> str:
    """The first sentence of Spark's text, without its class, its SQL state and its plan."""
    first = str(error).strip().split("\n\n")[0].split(" SQLSTATE:")[0]
    lines = [line.strip() for line in first.splitlines() if line.strip()]
    return CLASS.sub("", " ".join(lines[:2])) if lines else type(error).__name__


def _nodes(plan: JavaObject) -> Iterator[JavaObject]:
    yield plan
    for children in (plan.children(), plan.innerChildren()):
        for child in _listed(children):
            if _of(child, "LogicalPlan"):  # inner children may be parts of other kinds
                yield from _nodes(child)


def _listed(items: JavaObject) -> Iterable[JavaObject]:
    return (items.apply(i) for i in range(items.size()))


def _of(node: JavaObject, kind: str) -> bool:
    loader = node.getClass().getClassLoader()
    return bool(loader.loadClass(f"{LOGICAL}.{kind}").isInstance(node))
