"""G1: what judging a query costs, over what Spark needs to analyze it."""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bench.contest import Contest, Turns
from bench.surroundings import Surroundings
from waybill_local import archives, jars
from waybill_local.java import find_java
from waybill_spark import driver
from waybill_spark.driver.jvm.launch import JvmOptions, start_jvm
from waybill_spark.driver.jvm.session import open_session, spark_conf
from waybill_spark.guard.allowed import allowed
from waybill_spark.guard.plans import refuse_analyzed, refuse_parsed

QUERIES: Final = Path(__file__).parents[1] / "tests" / "sql" / "good.sql"
COLUMNS: Final = (
    "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP,"
    " tags ARRAY<STRING>"
)
VIEWS: Final = ("orders", "others")
# Six nodes, and one for its UNION ALL.
BRANCH: Final = "SELECT a FROM (SELECT order_id AS a FROM orders WHERE amount > 1) AS o WHERE a > 1"
LARGE: Final = " UNION ALL ".join([BRANCH] * 57)
WARMING: Final = 60  # times, until Java has compiled what writes a plan down


@contextmanager
def guarded_against_bare(around: Surroundings) -> Iterator[Turns]:
    options = JvmOptions(
        java=find_java().path,
        jars=jars.jar_set(jars.SPARK).folder,
        archives=archives.folder(),
        scratch=around.folder,
        heap="1g",
        log4j=Path(driver.__path__[0]) / "log4j2.properties",
    )
    conf = spark_conf("local[2]", "bench", warehouse=around.folder / "warehouse")
    jvm = start_jvm(options, conf)
    try:
        session = open_session().newSession()
        for name in VIEWS:
            row = session.createDataFrame([], COLUMNS)
            row.createOrReplaceTempView(name)
        queries = [query for query in _queries() if _analyzes(session, query)]
        _alone(session, [LARGE] * WARMING)
        yield Turns(
            ours=lambda: _each(lambda query: _guarded(session, query), queries),
            theirs=lambda: _each(session.sql, queries),
            beside={
                "the guard alone": lambda: _alone(session, queries),
                "the guard alone, 400 nodes": lambda: _alone(session, [LARGE] * 9),
            },
        )
    finally:
        jvm.stop()


def _queries() -> Iterator[str]:
    for line in QUERIES.read_text().splitlines():
        if line and not line.startswith("--"):
            yield line


def _analyzes(session: SparkSession, query: str) -> bool:
    """`others` has the columns of `orders` here, so a few do not."""
    try:
        session.sql(query)
    except PySparkException:
        return False
    return True


def _guarded(session: SparkSession, query: str) -> None:
    refuse_parsed(session, query, "", VIEWS, allowed())
    refuse_analyzed(session.sql(query), "", allowed())


def _each(do: Callable[[str], object], queries: Iterable[str]) -> float:
    """Median of the times."""
    times = []
    for query in queries:
        began = time.perf_counter()
        do(query)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _alone(session: SparkSession, queries: Iterable[str]) -> float:
    frames = [(query, session.sql(query)) for query in queries]
    times = []
    for query, frame in frames:
        began = time.perf_counter()
        refuse_parsed(session, query, "", VIEWS, allowed())
        refuse_analyzed(frame, "", allowed())
        times.append(time.perf_counter() - began)
    return statistics.median(times)


G1 = Contest(
    key="G1",
    what="one query from its text to its analyzed plan, p50",
    ours="parsed, judged, analyzed, judged",
    theirs="parsed and analyzed by Spark",
    unit="s",
    target=3.0,
    begin=guarded_against_bare,
)
