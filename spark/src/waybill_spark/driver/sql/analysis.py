"""Analyzes the SQL steps of a stage over streaming views, and finds what is wrong in them."""

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.model import Stage
from waybill_spark.guard.judge import Allowed
from waybill_spark.guard.plans import (
    refuse_analyzed,
    refuse_parsed,
    refuse_stateful,
    refuse_stateful_text,
    sql_problem,
)


def analyze_steps(
    session: SparkSession, stage: Stage, at: int, lists: Allowed
) -> tuple[list[Problem], set[str]]:
    """Return the problems, and the steps without a view: the wrong ones, and those that read one of
    them, which cannot be analyzed.
    """
    problems: list[Problem] = []
    wrong: set[str] = set()
    views = [*stage.inputs]
    for number, step in enumerate(stage.steps):
        path = f"stages.{at}.steps.{number}.sql"
        try:
            refuse_parsed(session, step.sql, path, views, lists)
            analyze(session, step.sql, views, lists, path=path).createOrReplaceTempView(step.name)
        except UserError as error:
            if _find_missing_view(error) not in wrong:
                problems += error.problems
            wrong.add(step.name)
        views.append(step.name)
    return problems, wrong


def _find_missing_view(error: UserError) -> str | None:
    cause = error.__cause__
    if not isinstance(cause, AnalysisException):
        return None
    named = cause.getMessageParameters() or {}
    return named.get("relationName", "").strip("`").lower()


def find_wrong_texts(spark: SparkSession, stage: Stage, at: int, lists: Allowed) -> list[Problem]:
    """Return the problems of queries that show without knowing their views."""
    problems: list[Problem] = []
    views = [*stage.inputs]
    for number, step in enumerate(stage.steps):
        try:
            refuse_parsed(spark, step.sql, f"stages.{at}.steps.{number}.sql", views, lists)
        except UserError as error:
            problems += error.problems
        views.append(step.name)
    return problems


def analyze(
    spark: SparkSession, sql: str, views: Sequence[str], lists: Allowed, *, path: str
) -> DataFrame:
    """Analyze the query over streaming views of `spark`. Raise UserError if it is not accepted."""
    try:
        frame = spark.sql(sql)
    except AnalysisException as error:
        refuse_stateful_text(spark, sql, path)
        raise UserError([sql_problem(error, path, views)]) from error
    refuse_stateful(frame, path)
    refuse_analyzed(frame, path, lists)
    return frame
