"""The guard over real Spark: what it must refuse, what it must let through, and that every place of
a query is looked at."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from integration.spark.conftest import CANARY
from integration.spark.manifests import ORDERS, OTHERS
from sql.corpora import Query, attacks, good
from sql.fuzz import Texts
from sql.spark_classes import Classes
from waybill_local import jars
from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.lifecycle_events import SqlGuard
from waybill_shared.process.archives import class_path
from waybill_spark.driver.sql.analysis import analyze
from waybill_spark.guard.allowed import kinds, read_allowed, read_lists
from waybill_spark.guard.judge import objection_to_parsed
from waybill_spark.guard.objections import Objection
from waybill_spark.guard.plans import refuse_parsed, tree_of, windows_at

VIEWS = ("orders", "others")
AGGREGATE = "org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction"


@pytest.fixture(scope="module")
def views(spark: SparkSession) -> SparkSession:
    """A session with the views of a stage."""
    session = spark.newSession()
    for name, columns in (("orders", ORDERS), ("others", OTHERS)):
        rate = session.readStream.format("rate").load()
        row = F.from_json(F.lit("{}"), columns).alias("row")
        rate.select(row).select("row.*").createOrReplaceTempView(name)
    return session


def check(views: SparkSession, sql: str, guard: SqlGuard = "strict") -> None:
    refuse_parsed(views, sql, "here", VIEWS, read_allowed(guard))
    analyze(views, sql, VIEWS, read_allowed(guard), path="here")


def problem_of(views: SparkSession, sql: str, guard: SqlGuard = "strict") -> Problem | None:
    try:
        check(views, sql, guard)
    except UserError as error:
        (problem,) = error.problems
        return problem
    return None


@pytest.mark.parametrize("attack", attacks(), ids=str)
def test_attack_is_refused_with_its_reason(views: SparkSession, attack: Query) -> None:
    problem = problem_of(views, attack.sql)
    assert problem is not None
    assert attack.says in f"{problem.message} {problem.hint}"
    assert problem.path == "here"
    assert problem.line == 1


@pytest.mark.parametrize(
    ("sql", "says", "line", "column"),
    [
        ("SELECT order_id\nFROM {{ ref('orders') }}", "{{ is not accepted: ", 2, 6),
        ("{{ config(materialized='view') }}\nSELECT * FROM orders", "`config` out", 1, 1),
        ("INSERT INTO lake SELECT * FROM orders", "as a sink of the stage", 1, 1),
        ("CREATE VIEW a AS SELECT * FROM orders", "as a step of a stage", 1, 1),
        ("CREATE TABLE a (b INT) WITH ('connector' = 'kafka')", "as its `schema`", 1, 1),
        (
            "SELECT *\nFROM TUMBLE(TABLE(orders), 'at', INTERVAL '1' MINUTE)",
            "tumble is not accepted: aggregates over windows need state",
            2,
            6,
        ),
    ],
)
def test_sql_of_another_system_says_the_way(
    views: SparkSession, sql: str, says: str, line: int, column: int
) -> None:
    problem = problem_of(views, sql)
    assert problem is not None
    assert says in f"{problem.message} {problem.hint}"
    assert (problem.path, problem.line, problem.column) == ("here", line, column)


@pytest.mark.parametrize("query", good(), ids=str)
def test_good_query_is_let_through(views: SparkSession, query: Query) -> None:
    problem = problem_of(views, query.sql)
    if query.says:
        assert problem is not None
        assert query.says in problem.message
    else:
        assert problem is None


@pytest.mark.parametrize(
    "attack", [each for each in attacks() if each.says == "this is a command"], ids=str
)
def test_command_is_refused_also_where_queries_are_trusted(
    views: SparkSession, attack: Query
) -> None:
    problem = problem_of(views, attack.sql, "trusted")
    assert problem is not None
    assert attack.says in problem.message


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT order_id FROM orders TABLESAMPLE (10 PERCENT)",
        "SELECT rlike('a', customer) AS matches, repeat(customer, order_id) AS more FROM orders",
        "SELECT TRANSFORM (order_id) USING 'cat' AS (id STRING) FROM orders",
        "SELECT " + " || ".join(["customer"] * 300) + " AS name FROM orders",
    ],
)
def test_what_is_no_command_is_taken_where_queries_are_trusted(
    views: SparkSession, sql: str
) -> None:
    assert problem_of(views, sql) is not None
    assert problem_of(views, sql, "trusted") is None


CALL = "reflect('java.lang.System', 'getenv', 'PATH')"
WORD = re.compile(r"'[^']*'|`[^`]*`|\w+|[*?]")


def planted(sql: str) -> Iterator[str]:
    """The query with a forbidden call in the place of each of its words, one after the other."""
    for word in WORD.finditer(sql):
        yield sql[: word.start()] + CALL + sql[word.end() :]


def judged(spark: SparkSession, sql: str) -> Objection | None:
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    return objection_to_parsed(
        tree_of(plan), lambda way: windows_at(plan, way), read_allowed(), frozenset(VIEWS)
    )


@pytest.mark.parametrize("third", range(3))
def test_forbidden_call_is_found_wherever_an_expression_can_stand(
    spark: SparkSession, third: int
) -> None:
    found = 0
    for number, query in enumerate(good()):
        for sql in islice(planted(query.sql), (third + number) % 3, None, 3):
            try:
                objection = judged(spark, sql)
            except PySparkException:
                continue  # no query any more
            assert objection is not None, sql
            found += "runs Java" in objection.message
    assert found > len(good()) * 5 / 3


def test_lists_name_every_function_of_spark(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    analysis = jvm.org.apache.spark.sql.catalyst.analysis
    lists = read_lists()
    for functions, title in (
        (analysis.FunctionRegistry.expressions(), "functions"),
        (analysis.TableFunctionRegistry.logicalPlans(), "tables"),
    ):
        refused = [name for each in lists[title]["refused"] for name in each["names"]]
        listed = [*lists[title]["allowed"], *refused]
        assert sorted(listed) == sorted(functions.keySet().mkString("\n").split("\n"))


def test_lists_name_every_function_that_needs_several_rows(spark: SparkSession) -> None:
    """The page about SQL leaves them out: no use of them is taken."""
    jvm = spark._jvm
    assert jvm is not None
    catalyst = jvm.org.apache.spark.sql.catalyst
    registry = catalyst.analysis.FunctionRegistry.builtin()
    load = spark._jsparkSession.getClass().getClassLoader().loadClass
    aggregate = load(AGGREGATE)
    functions = read_lists()["functions"]
    of_many_rows = []
    for name in functions["allowed"]:
        info = registry.lookupFunction(catalyst.FunctionIdentifier(name)).get()
        grouped = info.getGroup() in ("agg_funcs", "window_funcs")
        if grouped or aggregate.isAssignableFrom(load(info.getClassName())):
            of_many_rows.append(name)
    assert sorted(of_many_rows) == sorted(functions["of_many_rows"])


def test_sessions_do_not_know_what_is_refused(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    name_of = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    for session in (spark, spark.newSession()):
        functions = session._jsparkSession.sessionState().functionRegistry()
        assert functions.functionExists(name_of("upper"))
        assert not any(
            functions.functionExists(name_of(n)) for n in read_allowed().functions.refused
        )
        with pytest.raises(PySparkException, match="UNRESOLVED_ROUTINE"):
            session.sql(f"SELECT {CALL}")


def test_no_secret_is_where_a_query_could_read_it(spark: SparkSession) -> None:
    """Even if it could run Java: a function that can is planted."""
    jvm = spark._jvm
    assert jvm is not None
    catalyst = jvm.org.apache.spark.sql.catalyst
    reflect = catalyst.analysis.FunctionRegistry.expressions().get("reflect").get()
    session = spark.newSession()
    registry = session._jsparkSession.sessionState().functionRegistry()
    name = catalyst.FunctionIdentifier("planted")
    registry.registerFunction(name, reflect._1(), reflect._2())
    (row,) = session.sql(
        "SELECT planted('java.lang.System', 'getenv') AS environment,"
        " planted('java.lang.System', 'getProperties') AS properties"
    ).collect()
    assert "PATH=" in row.environment
    assert "java.version=" in row.properties
    assert "WAYBILL" not in row.environment
    assert CANARY not in f"{row.environment}{row.properties}"


def test_spark_works_where_no_file_is_left(spark: SparkSession) -> None:
    jvm = spark._jvm
    assert jvm is not None
    pid = jvm.java.lang.ProcessHandle.current().pid()
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/proc")
    with pytest.raises(Py4JJavaError, match="No such file"):
        jvm.java.io.FileOutputStream("left")


def test_now_is_the_time_of_the_batch(spark: SparkSession) -> None:
    plan = spark.sql("SELECT now()")._jdf.queryExecution().analyzed().toJSON()
    assert "CurrentTimestamp" in plan
    assert "Now" not in plan


def test_nothing_of_the_environment_is_put_into_a_query(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="PARSE_SYNTAX_ERROR"):
        spark.sql("SELECT '${env:PATH}' AS a, ${env:PATH} AS b")
    (row,) = spark.sql("SELECT '${env:PATH}' AS a").collect()
    assert row.a == "${env:PATH}"


def test_lists_name_every_class_of_spark() -> None:
    driver = class_path(jars.jar_set(jars.SPARK).folder)
    every = [*driver, *jars.jar_set(jars.ICEBERG).class_path]
    classes = Classes(jar for jar in every if "spark" in jar.name)
    lists = read_lists()
    catalyst = "org/apache/spark/sql/catalyst"
    expressions = {name for each in lists["expressions"].values() for name in named(each)}
    assert expressions == classes.below(f"{catalyst}/expressions/Expression")
    nodes = (
        named(lists["parsed"]["allowed"])
        | named(lists["parsed"]["trusted"])
        | named(lists["analyzed"]["allowed"])
        | named(lists["analyzed"]["refused"])
        | named(lists["executed"]["allowed"])
    )
    assert nodes == classes.below(f"{catalyst}/plans/logical/LogicalPlan")


def named(by_package: Mapping[str, Iterable[str]]) -> set[str]:
    return {f"org.apache.spark.sql.{kind}" for kind in kinds(by_package)}


def test_nothing_happens_while_queries_are_checked(
    views: SparkSession, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Whatever is sent: no file, no process, no connection, no job, and no error but ours."""
    jvm = views._jvm
    assert jvm is not None
    functions = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.expressions()
    names = functions.keySet().mkString("\n").split("\n")
    texts = Texts(pytestconfig.getoption("sql_seed"), sorted(names), tmp_path)
    pid = jvm.java.lang.ProcessHandle.current().pid()
    here, before = sorted(Path.cwd().iterdir()), doings(views, pid)
    taken = refused = 0
    count = pytestconfig.getoption("sql_count")
    for text in texts.some(count):
        try:
            check(views, text)
            taken += 1
        except UserError:
            refused += 1
        except Exception as error:
            raise AssertionError(text) from error
        assert doings(views, pid) == before, text
    assert [*tmp_path.iterdir()] == []
    assert sorted(Path.cwd().iterdir()) == here
    assert refused > taken
    assert taken or count < 1_000, "the grammar makes nothing that is taken"


def doings(spark: SparkSession, pid: int) -> tuple[int, int, int]:
    """Jobs that have run, child processes, open connections and files of Spark's JVM."""
    jobs = spark._jsparkSession.sparkContext().statusStore().jobsList(None).size()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    sockets = sum("socket:" in str(link) for link in links(pid))
    return jobs, len(children), sockets


def links(pid: int) -> Iterator[str]:
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            yield str(fd.readlink())
        except FileNotFoundError:
            continue  # closed meanwhile
