"""What the SQL of a step may be: a query over the stage's views, row by row. And Spark's
complaints in words that name the fix. Runs no SQL."""

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from py4j.java_gateway import JavaClass, JavaObject, JVMView
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.foreign import find_statement, find_template
from waybill_shared.contract.manifest.foreign_words import Spot
from waybill_shared.contract.suggestions import hint_of_names
from waybill_spark.guard.judge import (
    TEXT_CHARACTERS_MAX,
    WINDOWS,
    Allowed,
    objection_to_analyzed,
    objection_to_parsed,
)
from waybill_spark.guard.trees import Way

LOGICAL: Final = "org.apache.spark.sql.catalyst.plans.logical"
QUERY_HINT: Final = "write SELECT …, or WITH … SELECT …"
ROWS_HINT: Final = "use SELECT, WHERE, UNION ALL, LATERAL VIEW and expressions of one row"
STATELESS: Final = frozenset({
    "Project", "Filter", "SubqueryAlias", "View", "Union", "Generate", "Expand", "LocalRelation",
    "OneRowRelation", "CollectMetrics", "StreamingRelation", "StreamingRelationV2", "LogicalRDD",
    "StreamingExecutionRelation", "WithCTE", "CTERelationDef", "CTERelationRef", "LateralJoin",
    "PipeOperator", "Sample", "ScriptTransformation",
})  # fmt: skip
COMMANDS: Final = frozenset({
    "Call", "UnresolvedExecuteImmediate", "InsertIntoDir", "WriteToStreamStatement",
})  # fmt: skip
"""Commands that Spark calls otherwise."""
IN_SQL: Final = {
    "Aggregate": "GROUP BY or an aggregate", "Pivot": "PIVOT",
    "Distinct": "DISTINCT (or UNION without ALL)", "Deduplicate": "DISTINCT",
    "GlobalLimit": "LIMIT", "LocalLimit": "LIMIT", "Offset": "OFFSET",
    "Tail": "LIMIT", "Sort": "ORDER BY", "Window": "a window function", "Join": "JOIN",
    "Except": "EXCEPT", "Intersect": "INTERSECT",
}  # fmt: skip
KAFKA_RELATION: Final = "org.apache.spark.sql.kafka010.KafkaRelation"
POSITION: Final = re.compile(r"\(?line (\d+),? pos (\d+)\)?")
CLASS: Final = re.compile(r"^\[[A-Z0-9_.]+\] ")
SETTING: Final = re.compile(r" If necessary set .* to bypass this error\.")
"""Advice of Spark to change a setting, which no manifest can."""


def refuse_parsed(
    spark: SparkSession, sql: str, path: str, views: Sequence[str], lists: Allowed
) -> None:
    """Refuse what must not reach Spark's analysis, which carries out commands, and evaluates some
    constants.
    """
    if lists.bounded and len(sql) > TEXT_CHARACTERS_MAX:
        message = f"the query has {len(sql)} characters, {TEXT_CHARACTERS_MAX} at most are accepted"
        raise refusal(message, path, "cut it into steps")
    try:
        plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    except ParseException as error:
        raise UserError(
            [_of_another_system(sql, path) or sql_problem(error, path, views)]
        ) from error
    objection = objection_to_parsed(
        tree_of(plan), lambda way: windows_at(plan, way), lists, frozenset(views)
    )
    if objection is None:
        return
    message, hint = objection.message, objection.hint
    if _is_command(plan):
        foreign = _of_another_system(sql, path)
        message = "a step is a query, this is a command"
        hint = QUERY_HINT if foreign is None else foreign.hint
    raise refusal(message, path, hint, node_at(plan, objection.way))


def _of_another_system(sql: str, path: str) -> Problem | None:
    """Return what a text that is no query is in another system."""
    found = find_statement(sql, Spot.QUERY) or find_template(sql)
    return None if found is None else replace(found, path=path)


def refuse_analyzed(frame: DataFrame, path: str, lists: Allowed) -> None:
    """Refuse a query by what the analysis has made of it."""
    plan = frame._jdf.queryExecution().analyzed()
    objection = objection_to_analyzed(tree_of(plan), lists)
    if objection is not None:
        raise refusal(objection.message, path, objection.hint, node_at(plan, objection.way))


def refuse_executed(execution: JavaObject, lists: Allowed, *, at_rest: bool) -> None:
    """Refuse the plan that really runs, because the check has seen another one.

    With `at_rest` it may read topics only.
    """
    plan = execution.analyzed()
    objection = objection_to_analyzed(tree_of(plan), lists, runs=True)
    if objection is not None:
        raise refusal(objection.message, "stages", objection.hint)
    for leaf in _items_of(plan.collectLeaves()) if at_rest else ():
        if leaf.nodeName().startswith("LogicalRelation"):
            source = leaf.relation().getClass().getName()
            if source != KAFKA_RELATION:
                raise refusal(f"a stage reads topics, and this plan {source}", "stages", "")


def refuse_stateful(frame: DataFrame, path: str) -> None:
    if not frame.isStreaming:
        message = "the query reads none of the stage's inputs"
        raise refusal(message, path, "select from an input or a step")
    for node in _nodes(frame._jdf.queryExecution().analyzed()):
        name = node.nodeName()
        if name not in STATELESS:
            raise refusal(_many_rows(IN_SQL.get(name, name)), path, ROWS_HINT, node)


def refuse_stateful_text(spark: SparkSession, sql: str, path: str) -> None:
    """Refuse stateful parts of a query that is wrong anyway.

    Otherwise its author would learn of them only after mending it.
    """
    for node in _nodes(spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)):
        what = IN_SQL.get(node.nodeName())
        if what is not None:
            raise refusal(_many_rows(what), path, ROWS_HINT, node)


def _many_rows(what: str) -> str:
    return f"{what} is not accepted: a stage looks at one row at a time"


def sql_problem(error: PySparkException, path: str, views: Sequence[str]) -> Problem:
    """Return `error` as a problem with its line and column in the SQL, and a hint."""
    found = POSITION.search(str(error))
    line, column = (int(found[1]), int(found[2]) + 1) if found else (None, None)
    message, hint = _in_our_words(error, views)
    return Problem(message=message, path=path, hint=hint, line=line, column=column)


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
        case "WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE":
            return _many_rows(IN_SQL["Window"]), ROWS_HINT
        case "MISSING_GROUP_BY" | "UNSUPPORTED_GROUPING_EXPRESSION":
            return _many_rows(IN_SQL["Aggregate"]), ROWS_HINT
        case "PARSE_SYNTAX_ERROR":
            return f"syntax error at or near {named.get('error', '')}", QUERY_HINT
        case "INVALID_SUBQUERY_EXPRESSION":
            return "a subquery over an input is not accepted", ROWS_HINT
        case _:
            return in_a_sentence(error), ""


def in_a_sentence(error: PySparkException) -> str:
    """Return the first sentences of Spark's text: no class, SQL state, plan, nor a setting."""
    first = str(error).strip().split("\n\n")[0].split(" SQLSTATE:")[0]
    lines = [line.strip() for line in first.splitlines() if line.strip()]
    return SETTING.sub("", CLASS.sub("", " ".join(lines[:2]))) if lines else type(error).__name__


def refusal(message: str, path: str, hint: str, node: JavaObject | None = None) -> UserError:
    line, column = (None, None) if node is None else _place(node)
    return UserError([Problem(message=message, path=path, hint=hint, line=line, column=column)])


def node_at(plan: JavaObject, way: Way) -> JavaObject:
    """Return the node of a plan at the end of that path."""
    at = plan
    for name, number in way:
        if name == "children":
            at = at.children().apply(number)
        elif name == WINDOWS:
            at = [*_windows(at)][number]
        elif name:
            at = _field(at, name)
        else:
            at = at.apply(number)
        if at.getClass().getName() == "scala.Some":
            at = at.get()
    return at


def windows_at(plan: JavaObject, way: Way) -> list[object]:
    """Return what a `WINDOW` clause defines: Spark does not write it with the rest."""
    return [tree_of(each) for each in _windows(node_at(plan, way))]


def _windows(node: JavaObject) -> Iterator[JavaObject]:
    return (named.productElement(1) for named in _items_of(node.windowDefinitions().toSeq()))


def _field(node: JavaObject, name: str) -> JavaObject:
    names = (node.productElementName(i) for i in range(node.productArity()))
    return node.productElement(next(i for i, each in enumerate(names) if each == name))


def tree_of(plan: JavaObject) -> object:
    """Return all of a plan at once, because walking it would take thousands of calls.

    It is compressed, because what is longer than one segment of TCP waits 40 ms for the rest.
    """
    java = _java_of(SparkContext._jvm)
    written = java.to_bytes()
    try:
        java.json.writeValue(java.compressed(written), plan.jsonValue())
        return json.loads(zlib.decompress(written.toByteArray()))
    except (Py4JJavaError, RecursionError):
        return None  # which is no tree


class _Java(NamedTuple):
    json: JavaObject
    compressed: JavaClass
    to_bytes: JavaClass


@lru_cache(maxsize=1)
def _java_of(jvm: JVMView) -> _Java:
    """Return the Java objects that write as `toJSON` does.

    They are cached, because to look them up takes longer than to use them.
    """
    methods = getattr(getattr(jvm.org.json4s.jackson, "JsonMethods$"), "MODULE$")
    return _Java(
        json=methods.mapper(),
        compressed=jvm.java.util.zip.DeflaterOutputStream,
        to_bytes=jvm.java.io.ByteArrayOutputStream,
    )


def _place(node: JavaObject) -> tuple[int, int]:
    """Return line and column in the SQL. A node without a position has the start."""
    origin = node.origin()
    if origin.line().isEmpty() or origin.startPosition().isEmpty():
        return 1, 1
    return origin.line().get(), origin.startPosition().get() + 1


def _is_command(plan: JavaObject) -> bool:
    return any(
        node.nodeName() in COMMANDS or _of(node, "Command") or _of(node, "ParsedStatement")
        for node in _nodes(plan)
    )


def _nodes(plan: JavaObject) -> Iterator[JavaObject]:
    yield plan
    for children in (plan.children(), plan.innerChildren()):
        for child in _items_of(children):
            if _of(child, "LogicalPlan"):  # inner children may be parts of other kinds
                yield from _nodes(child)


def _items_of(items: JavaObject) -> Iterable[JavaObject]:
    return (items.apply(i) for i in range(items.size()))


def _of(node: JavaObject, kind: str) -> bool:
    loader = node.getClass().getClassLoader()
    return bool(loader.loadClass(f"{LOGICAL}.{kind}").isInstance(node))
