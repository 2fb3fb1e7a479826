"""SQL steps: what is taken, what is refused and how that is said."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.spark.manifests import KAFKA_SINK, LAKE_SINK, make_manifest
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.reading import read_manifest
from waybill_spark.driver.sql.compile import compile_pipeline, compile_stages
from waybill_spark.guard.allowed import read_allowed

EXAMPLE = Path(__file__).parents[3] / "examples" / "orders.yaml"
TAKEN = [
    "SELECT order_id, amount * 2 AS twice FROM orders WHERE amount > 1",
    "SELECT order_id FROM orders UNION ALL SELECT order_id FROM others",
    "SELECT order_id, tag FROM orders LATERAL VIEW explode(tags) t AS tag",
    "WITH big AS (SELECT * FROM orders WHERE amount > 10) SELECT order_id FROM big",
    "SELECT order_id FROM (SELECT * FROM orders WHERE amount > 1) AS nested",
    "SELECT CASE WHEN amount > 1 THEN upper(customer) ELSE 'none' END AS who FROM orders",
    "FROM orders |> WHERE amount > 1 |> SELECT order_id",
    "SELECT window(placed_at, '5 minutes').start AS began FROM orders",
    "SELECT order_id, tag FROM orders, LATERAL (SELECT explode(tags) AS tag)",
]
STATEFUL = {
    "SELECT customer, count(*) AS n FROM orders GROUP BY customer": "GROUP BY",
    "SELECT customer, amount, count(*) AS n FROM orders GROUP BY customer": "GROUP BY",
    "SELECT customer, count(*) AS n FROM orders GROUP BY 7": "GROUP BY",
    "SELECT custmer, count(*) AS n FROM orders GROUP BY custmer": "GROUP BY",
    "SELECT customer FROM orders GROUP BY customer HAVING max(amount) > amount": "GROUP BY",
    "SELECT customer, count(*) AS n FROM orders": "aggregate",
    "SELECT max(amount) AS most FROM orders": "aggregate",
    "SELECT DISTINCT customer FROM orders": "DISTINCT",
    "SELECT order_id FROM orders UNION SELECT order_id FROM others": "or UNION without ALL",
    "SELECT * FROM orders LIMIT 3": "LIMIT",
    "SELECT * FROM orders ORDER BY amount": "ORDER BY",
    "SELECT row_number() OVER (PARTITION BY customer ORDER BY amount) AS n FROM orders": "window",
    "SELECT lag(customer) AS before FROM orders": "window",
    "SELECT grouping(customer) AS g FROM orders": "GROUP BY",
    "SELECT o.order_id FROM orders o JOIN others p ON o.order_id = p.order_id": "JOIN",
    "SELECT order_id FROM orders EXCEPT SELECT order_id FROM others": "EXCEPT",
    "SELECT * FROM orders WHERE order_id IN (SELECT order_id FROM others)": "subquery",
    "WITH n AS (SELECT count(*) AS n FROM orders) SELECT * FROM n": "aggregate",
}
COMMANDS = [
    "CREATE TABLE made (a INT)",
    "CREATE TABLE made AS SELECT 1 AS a",
    "DROP VIEW orders",
    "SET spark.sql.ansi.enabled = false",
    "INSERT INTO made SELECT * FROM orders",
    "FROM orders INSERT INTO made SELECT *",
    "WITH a AS (SELECT 1) INSERT INTO made SELECT * FROM a",
    "ADD JAR 'other.jar'",
    "EXECUTE IMMEDIATE 'DROP VIEW orders'",
    "BEGIN SELECT 1; END",
]


def refused(spark: SparkSession, *steps: str, sinks: tuple[str, ...] = (LAKE_SINK,)) -> Problem:
    with pytest.raises(UserError) as raised:
        compile_pipeline(spark, make_manifest(*steps, sinks=sinks), read_allowed())
    assert len(raised.value.problems) == 1
    return raised.value.problems[0]


def test_columns_of_the_example_follow_from_its_sql(spark: SparkSession) -> None:
    enrich, load = compile_pipeline(spark, read_manifest(EXAMPLE.read_text()).model, read_allowed())
    enriched = (
        "`order_id` bigint, `customer` string, `amount` decimal(10,2), `placed_at` timestamp,"
        " `tax` decimal(12,3)"
    )
    assert enrich.columns == {"enriched_topic": enriched}
    assert load.columns == {"lake": enriched}
    assert load.inputs[0].columns == enriched
    assert load.inputs[0].own_output
    assert not enrich.inputs[0].own_output
    assert load.schemas["lake"].names == ["order_id", "customer", "amount", "placed_at", "tax"]
    assert str(load.schemas["lake"].field("placed_at").type) == "timestamp[us, tz=UTC]"


@pytest.mark.parametrize("sql", TAKEN)
def test_query_over_single_rows_is_taken(spark: SparkSession, sql: str) -> None:
    assert compile_pipeline(spark, make_manifest(sql), read_allowed())


def test_step_may_read_an_earlier_step(spark: SparkSession) -> None:
    first, second = "SELECT order_id AS id FROM orders", "SELECT id + 1 AS next FROM step_0"
    (compiled,) = compile_pipeline(spark, make_manifest(first, second), read_allowed())
    assert compiled.columns == {"lake": "`next` bigint"}


@pytest.mark.parametrize("sql", STATEFUL)
def test_query_over_many_rows_is_refused(spark: SparkSession, sql: str) -> None:
    problem = refused(spark, sql)
    assert STATEFUL[sql] in problem.message
    assert problem.path == "stages.0.steps.0.sql"
    assert "UNION ALL" in problem.hint


@pytest.mark.parametrize("sql", ["SELECT 1 AS a", "SELECT * FROM VALUES (1) AS t(a)"])
def test_query_that_reads_no_input_is_refused(spark: SparkSession, sql: str) -> None:
    assert refused(spark, sql).message == "the query reads none of the stage's inputs"


@pytest.mark.parametrize("sql", COMMANDS)
def test_command_is_refused_before_it_runs(spark: SparkSession, sql: str) -> None:
    assert refused(spark, sql).message == "a step is a query, this is a command"
    assert not spark.catalog.tableExists("made")


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM text.`{}`", "SELECT note FROM others UNION ALL SELECT * FROM text.`{}`"]
)
def test_files_of_the_machine_cannot_be_read(spark: SparkSession, sql: str) -> None:
    assert "names have one part here" in refused(spark, sql.format(EXAMPLE)).message


def test_unknown_column_is_named_with_its_place_and_the_likeliest(spark: SparkSession) -> None:
    problem = refused(spark, "SELECT order_id,\n  amout FROM orders")
    assert problem.message == "no column is called `amout`"
    assert (problem.line, problem.column) == (2, 3)
    assert problem.hint.startswith("did you mean 'amount'? columns: ")
    assert problem.path == "stages.0.steps.0.sql"


def test_unknown_view_is_named_with_those_that_are_known(spark: SparkSession) -> None:
    problem = refused(spark, "SELECT order_id FROM orders", "SELECT * FROM ordrs")
    assert problem.message == "no view is called `ordrs`"
    assert (problem.line, problem.column) == (1, 15)
    assert problem.hint == "did you mean 'orders'? views here: orders, others, step_0"
    assert problem.path == "stages.0.steps.1.sql"


def test_syntax_error_has_its_place(spark: SparkSession) -> None:
    problem = refused(spark, "SELECT a b c FROM orders")
    assert problem.message == "syntax error at or near 'c'"
    assert (problem.line, problem.column) == (1, 12)


def test_all_texts_that_are_refused_are_named_at_once(spark: SparkSession) -> None:
    steps = "SELECT uuid() AS a FROM orders", "SELECT a b c FROM step_0", "SELECT 1 FROM step_1"
    with pytest.raises(UserError) as raised:
        compile_pipeline(spark, make_manifest(*steps), read_allowed())
    first, second = raised.value.problems
    assert (first.path, second.path) == ("stages.0.steps.0.sql", "stages.0.steps.1.sql")


def test_other_complaints_of_spark_lose_their_codes(spark: SparkSession) -> None:
    problem = refused(spark, "SELECT amount + tags AS x FROM orders")
    assert problem.message.startswith('Cannot resolve "(amount + tags)"')
    assert (problem.line, problem.column) == (1, 8)
    assert "SQLSTATE" not in problem.message
    assert "[" not in problem.message


def test_unknown_function_is_named(spark: SparkSession) -> None:
    problem = refused(spark, "SELECT foo(amount) AS x FROM orders")
    assert problem.message == "no function is called `foo`"
    assert (problem.line, problem.column) == (1, 8)


def test_column_that_stands_twice_is_refused(spark: SparkSession) -> None:
    problem = refused(spark, "SELECT amount, customer AS AMOUNT FROM orders")
    assert problem.message == "column 'AMOUNT' appears twice"
    assert problem.path == "stages.0.sinks.0"


def test_struct_with_two_fields_of_one_name_is_refused(spark: SparkSession) -> None:
    problem = refused(spark, "SELECT arrays_zip(tags, tags) AS twice FROM orders")
    assert problem.message == "a column holds a struct that has two fields of one name"
    assert problem.path == "stages.0.sinks.0"


def test_column_without_a_type_is_refused(spark: SparkSession) -> None:
    problem = refused(spark, "SELECT order_id, NULL AS note FROM orders")
    assert problem.message == "column 'note' has no type"
    assert "CAST" in problem.hint


def test_key_that_is_no_column_is_refused(spark: SparkSession) -> None:
    problem = refused(spark, "SELECT customer FROM orders", sinks=(KAFKA_SINK,))
    assert problem.message == "sink out: key 'order_id' is not a column"
    assert problem.path == "stages.0.sinks.0.kafka.key"
    assert problem.hint == "columns: customer"


@pytest.mark.parametrize(
    ("settings", "path", "meant"),
    [
        ("kafka: {topic: orders.out, key: order_idd}", "key", "order_id"),
        ("postgres: {@, keys: [orderid]}", "keys.0", "order_id"),
        ("postgres: {@, keys: [order_id], orderBy: placed}", "orderBy", "placed_at"),
        ("postgres: {@, keys: [order_id], deleteWhere: custmer}", "deleteWhere", "customer"),
    ],
)
def test_the_column_that_was_meant_is_named(
    spark: SparkSession, settings: str, path: str, meant: str
) -> None:
    upsert = settings.replace("@", "connection: c, table: public.orders, mode: upsert")
    problem = refused(
        spark,
        "SELECT order_id, customer, placed_at FROM orders",
        sinks=(f"{{name: out, {upsert}}}",),
    )
    assert problem.path == f"stages.0.sinks.0.{settings.partition(':')[0]}.{path}"
    assert problem.hint == f"did you mean {meant!r}? columns: order_id, customer, placed_at"


def test_what_is_wrong_in_independent_stages_is_named_at_once(spark: SparkSession) -> None:
    """Of a stage that reads what a refused one writes nothing is said: it may be good."""
    text = (
        EXAMPLE.read_text().replace("FROM orders", "FROM nonsense")
        + """
  - {name: copy, inputs: [orders], sinks: [{name: copied, kafka: {topic: copied}}]}
  - name: count
    inputs: [orders]
    steps: [{name: counted, sql: "SELECT a b c FROM orders"}]
    sinks: [{name: counts, kafka: {topic: counts}}]
  - name: keyed
    inputs: [orders]
    sinks:
      - {name: first, kafka: {topic: first, key: nothing}}
      - {name: second, kafka: {topic: second, key: no_more}}
"""
    )
    compiled, problems = compile_stages(spark, read_manifest(text).model, read_allowed())
    assert [each.stage.name for each in compiled] == ["copy"]
    assert [problem.message for problem in problems] == [
        "no view is called `nonsense`",
        "syntax error at or near 'c'",
        "sink first: key 'nothing' is not a column",
        "sink second: key 'no_more' is not a column",
    ]


def test_what_is_wrong_in_independent_steps_is_named_at_once(spark: SparkSession) -> None:
    """Of a step that reads a refused one nothing is said, nor of a sink that takes its rows."""
    manifest = make_manifest(
        "SELECT amout FROM orders",
        "SELECT amount FROM step_0 WHERE nothing > 1",
        "SELECT a b c FROM orders",
        "SELECT order_id FROM Step_2",
        "SELECT note FROM others",
        "SELECT nott FROM step_4",
        sinks=(
            "{name: unknown, from: step_3, kafka: {topic: unknown, key: nothing}}",
            "{name: known, from: step_4, kafka: {topic: known, key: nothing}}",
        ),
    )
    compiled, problems = compile_stages(spark, manifest, read_allowed())
    assert compiled == ()
    assert [(problem.path, problem.message) for problem in problems] == [
        ("stages.0.steps.0.sql", "no column is called `amout`"),
        ("stages.0.steps.2.sql", "syntax error at or near 'c'"),
        ("stages.0.steps.5.sql", "no column is called `nott`"),
        ("stages.0.sinks.1.kafka.key", "sink known: key 'nothing' is not a column"),
    ]
