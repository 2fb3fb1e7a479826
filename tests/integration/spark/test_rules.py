"""Rules of inputs: what is taken, what is refused and how that is said."""

import json

import pytest
from pyspark.sql import SparkSession

from integration.spark.manifests import make_manifest
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_spark.driver.sql.compile import compile_pipeline, compile_stages
from waybill_spark.guard.allowed import read_allowed

ALL = "SELECT order_id FROM orders"
ONE_RECORD = "a rule looks at one record"
TAKEN = [
    "amount > 0",
    "amount > 0 AND (customer IS NOT NULL OR order_id = 7) -- as agreed",
    "size(tags) < 10 AND NOT exists(tags, tag -> tag = '')",
    "placed_at >= '2026-01-01' AND placed_at < timestamp '2027-01-01'",
    "CASE WHEN amount > 100 THEN customer RLIKE '^[a-z]+$' ELSE true END",
    "try_cast(customer AS INT) IS NOT NULL",
]
REFUSED: dict[str, tuple[tuple[int, int], str]] = {
    "amout > 0": ((1, 1), "no column is called `amout`"),
    "amount > 0\n  AND custmer = ''": ((2, 7), "no column is called `custmer`"),
    "orders.amount > 0": ((1, 1), "no column is called `orders`.`amount`"),
    "amount": ((1, 1), "a rule is true or false, this is of type decimal(10,2)"),
    "amount >": ((1, 9), "syntax error at or near end of input"),
    "amount > 0, true": ((1, 11), "syntax error at or near ','"),
    "amount > 0) OR (true": ((1, 11), "syntax error at or near ')'"),
    "amount > 0 AS positive": ((1, 1), "a name after the condition is not accepted"),
    "amount > 0 positive": ((1, 1), "a name after the condition is not accepted"),
    "to_json(struct(*)) <> ''": ((1, 16), "* is not accepted: a rule names its columns"),
    "amount > tags": ((1, 1), 'Cannot resolve "(amount > tags)"'),
    "foo(amount)": ((1, 1), "no function is called `foo`"),
    "amount > 0 AND rand() > 0.5": ((1, 16), "rand is not accepted: it gives other rows"),
    "count(*) > 1": ((1, 1), f"an aggregate is not accepted: {ONE_RECORD}"),
    "3 < max(amount)": ((1, 5), f"an aggregate is not accepted: {ONE_RECORD}"),
    "amount > 0 AND count(*) > 1": ((1, 1), f"an aggregate is not accepted: {ONE_RECORD}"),
    "sum(amount) OVER () > 1": ((1, 1), f"a window function is not accepted: {ONE_RECORD}"),
    "amount IN (SELECT 1)": ((1, 8), f"a subquery is not accepted: {ONE_RECORD}"),
    "amount > 0 AND (SELECT true)": ((1, 16), f"a subquery is not accepted: {ONE_RECORD}"),
    "EXISTS (SELECT * FROM orders)": ((1, 1), f"a subquery is not accepted: {ONE_RECORD}"),
    "explode(tags) = ''": ((1, 1), "The generator is not supported"),
    "placed_at < now()": ((1, 13), "the time is not accepted: a record that is judged again"),
    "placed_at < current_timestamp": ((1, 13), "the time is not accepted"),
    "to_date(placed_at) <= current_date()": ((1, 23), "the time is not accepted"),
    "unix_timestamp() > order_id": ((1, 1), "the time is not accepted"),
    "java_method('java.lang.System', 'exit', 1) = ''": ((1, 1), "java_method is not accepted"),
    "customer = :name": ((1, 12), "a parameter is not accepted"),
    "true": ((1, 1), "a rule is about the record, and this names no column"),
    "1 + 1 = 2": ((1, 1), "a rule is about the record, and this names no column"),
}


def rule(expect: str, name: str = "r") -> str:
    return f"expectations: [{{name: {name}, expect: {json.dumps(expect)}}}]"


def refused(spark: SparkSession, expect: str, **options: str) -> Problem:
    with pytest.raises(UserError) as raised:
        compile_pipeline(spark, make_manifest(ALL, orders=rule(expect)), read_allowed(**options))
    (problem,) = raised.value.problems
    return problem


@pytest.mark.parametrize("expect", TAKEN)
def test_condition_on_one_record_is_taken(spark: SparkSession, expect: str) -> None:
    (compiled,) = compile_pipeline(spark, make_manifest(ALL, orders=rule(expect)), read_allowed())
    orders, others = compiled.inputs
    assert [each.expect for each in orders.rules] == [expect]
    assert others.rules == ()


@pytest.mark.parametrize("expect", REFUSED)
def test_anything_else_is_refused_at_its_place(spark: SparkSession, expect: str) -> None:
    problem = refused(spark, expect)
    place, message = REFUSED[expect]
    assert problem.message.startswith(message)
    assert problem.path == "inputs.0.expectations.0.expect"
    assert (problem.line, problem.column) == place


def test_unknown_column_comes_with_the_likeliest(spark: SparkSession) -> None:
    assert refused(spark, "amout > 0").hint.startswith("did you mean 'amount'? columns: ")


def test_what_is_no_condition_comes_with_one(spark: SparkSession) -> None:
    assert refused(spark, "amount").hint.endswith("amount > 0")
    assert refused(spark, "amount >").hint.endswith("amount > 0")


def test_where_everybody_is_trusted_a_rule_still_gives_one_verdict(spark: SparkSession) -> None:
    """A step need not."""
    assert refused(spark, "placed_at < now()", guard="trusted").message.startswith("the time")


def test_what_is_wrong_in_rules_and_steps_is_named_at_once(spark: SparkSession) -> None:
    text = """
version: 1
name: orders
inputs:
  - name: orders
    kafka: {topic: orders.in}
    schema: "amount INT"
    expectations:
      - name: positive
        expect: amount > 0
      - name: few
        expect: |
          amount < 100
            AND amout <> 7
  - name: others
    kafka: {topic: others.in}
    schema: "amount INT"
    expectations: [{name: some, expect: amount + 1}]
stages:
  - name: shape
    inputs: [orders]
    steps: [{name: shaped, sql: "SELECT amuont FROM orders"}]
    sinks: [{name: lake, iceberg: {table: raw.orders}}]
"""
    compiled, problems = compile_stages(spark, read_manifest(text).model, read_allowed())
    assert compiled == ()
    assert [
        (each.line, each.column, each.message) for each in read_manifest(text).place(problems)
    ] == [
        (14, 17, "no column is called `amout`"),
        (18, 41, "a rule is true or false, this is of type int"),
        (22, 41, "no column is called `amuont`"),
    ]
