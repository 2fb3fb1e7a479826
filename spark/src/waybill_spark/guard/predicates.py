"""What the rule of an input may be: one condition on one record, by its columns. Runs no SQL."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from py4j.java_gateway import JavaObject
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.suggestions import hint_of_names
from waybill_spark.guard.judge import Allowed, objection_to_parsed
from waybill_spark.guard.plans import (
    node_at,
    refusal,
    refuse_analyzed,
    refuse_stateful,
    sql_problem,
    tree_of,
    windows_at,
)
from waybill_spark.guard.trees import NotUnderstood, nodes_of

HINT: Final = "write a condition on columns of the record, as in amount > 0"
A_SUBQUERY: Final = "a subquery is not accepted: a rule looks at one record"
A_WINDOW: Final = "a window function is not accepted: a rule looks at one record"
THE_TIME: Final = "the time is not accepted: a record that is judged again must be judged as before"
IN_A_TEXT: Final = {
    "ScalarSubquery": A_SUBQUERY, "ListQuery": A_SUBQUERY, "Exists": A_SUBQUERY,
    "InSubquery": A_SUBQUERY, "LateralSubquery": A_SUBQUERY,
    "WindowExpression": A_WINDOW, "UnresolvedWindowExpression": A_WINDOW,
    "UnresolvedStar": "* is not accepted: a rule names its columns",
    "Alias": "a name after the condition is not accepted: a rule has a field for its name",
}  # fmt: skip
"""Classes of what queries may hold and rules may not."""
AN_AGGREGATE: Final = "an aggregate is not accepted: a rule looks at one record"
ANALYZED: Final = {
    "AggregateExpression": AN_AGGREGATE,
    "CurrentTimestamp": THE_TIME, "CurrentDate": THE_TIME, "LocalTimestamp": THE_TIME,
    "CurrentTime": THE_TIME, "CurrentBatchTimestamp": THE_TIME, "Now": THE_TIME,
}  # fmt: skip
"""Likewise, after the analysis."""


def refuse_no_predicate(frame: DataFrame, sql: str, path: str, lists: Allowed) -> None:
    """Raise UserError if `sql` is no condition on the columns of `frame`, which represents an
    input.
    """
    _refuse_text(frame.sparkSession, sql, path, lists)
    try:
        kept = frame.select(F.expr(sql).alias("kept"))
    except AnalysisException as error:
        raise UserError([_problem(error, path)]) from error
    plan = kept._jdf.queryExecution().analyzed()
    _refuse_classes(plan, ANALYZED, path, lists)
    refuse_stateful(kept, path)
    refuse_analyzed(kept, path, lists)
    condition = plan.projectList().apply(0)
    kind = kept.schema[0].dataType
    if kind != BooleanType():
        message = f"a rule is true or false, this is of type {kind.simpleString()}"
        raise refusal(message, path, HINT, condition)
    if not condition.deterministic():
        message = "a record that is judged again must be judged as before, and this differs"
        raise refusal(message, path, "", _deepest_that_varies(condition))
    if condition.references().isEmpty():
        hint = hint_of_names("", frame.columns, "columns")
        raise refusal("a rule is about the record, and this names no column", path, hint, condition)


def _problem(error: AnalysisException, path: str) -> Problem:
    """Return the problem as for a query.

    Where Spark names no place it is the start, and an aggregate has a message of its own.
    """
    found = sql_problem(error, path, ())
    if error.getCondition() == "MISSING_GROUP_BY":
        found = replace(found, message=AN_AGGREGATE, hint=HINT)
    if found.line is None:
        found = replace(found, line=1, column=1)
    return found


def _refuse_text(spark: SparkSession, sql: str, path: str, lists: Allowed) -> None:
    try:
        parsed = spark._jsparkSession.sessionState().sqlParser().parseExpression(sql)
    except ParseException as error:
        raise UserError([replace(sql_problem(error, path, ()), hint=HINT)]) from error
    _refuse_classes(parsed, IN_A_TEXT, path, lists)
    objection = objection_to_parsed(
        tree_of(parsed), lambda way: windows_at(parsed, way), lists, frozenset()
    )
    if objection is not None:
        raise refusal(objection.message, path, objection.hint, node_at(parsed, objection.way))


def _refuse_classes(
    plan: JavaObject, classes: Mapping[str, str], path: str, lists: Allowed
) -> None:
    try:
        nodes = [*nodes_of(tree_of(plan), lists.depth_max * 4)]
    except NotUnderstood:
        return  # it will be reported of the complete rule
    for node in nodes:
        if node.name in classes:
            raise refusal(classes[node.name], path, HINT, node_at(plan, node.way))


def _deepest_that_varies(expression: JavaObject) -> JavaObject:
    children = expression.children()
    for number in range(children.size()):
        if not children.apply(number).deterministic():
            return _deepest_that_varies(children.apply(number))
    return expression
