"""Queries that the guard lets through, over records that mean harm."""

import json

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from integration.spark.conftest import RawFrame
from integration.spark.manifests import ORDERS, OTHERS
from sql.corpora import Query, good
from waybill_spark.driver.reading.decode import decode
from waybill_spark.driver.reading.inputs import DecodedInput

PLAIN = {"order_id": 1, "customer": "ada", "amount": 1, "placed_at": "2026-11-21T09:00:00Z"}
TEXTS = (
    "",
    "a" * 1_000_000,
    "[" * 50_000,
    '{"a":' * 5_000 + "1" + "}" * 5_000,
    '{"a": 1e999, "b": NaN}',
    "\ud800 alone",
    "\x00\x01\x7f\ufeff\u202e",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467" * 1_000,
    "%s%n%x%999999999d",
    "a" * 40 + "!",
    ",".join("a" * 100 for _ in range(200)),
    "http://[::1]:99999/%zz?a=%",
    "NaN",
    "-Infinity",
    "9" * 400,
    "'; DROP TABLE orders; --",
    "${env:PATH}",
)
RECORDS: list[dict[str, object]] = [
    *({**PLAIN, "customer": text, "tags": [text, None, ""]} for text in TEXTS),
    {},
    dict.fromkeys(PLAIN),
    *({**PLAIN, "order_id": number} for number in (0, -1, 2**63 - 1, -(2**63))),
    *({**PLAIN, "amount": amount} for amount in (99999999.99, -99999999.99, 0, 1e-2)),
    *({**PLAIN, "placed_at": f"{at}Z"} for at in ("0001-01-01T00:00:00", "9999-12-31T23:59:59")),
    {**PLAIN, "tags": ["a"] * 10_000},
]
ENDS_ALL = ("OutOfMemoryError", "StackOverflowError", "INTERNAL_ERROR", "NullPointerException")


@pytest.fixture
def hostile(spark: SparkSession, raw_frame: RawFrame) -> SparkSession:
    """A session whose views hold them, decoded as a stage decodes its records."""
    values = [json.dumps(record).encode() for record in RECORDS]
    records = [("orders.in", 0, offset, value) for offset, value in enumerate(values)]
    raw = raw_frame([*records, ("others.in", 0, 0, b'{"order_id": 1, "note": "\\ud800"}')])
    for name, columns in (("orders", ORDERS), ("others", OTHERS)):
        source = DecodedInput(name=name, topic=f"{name}.in", columns=columns, own_output=False)
        decode(raw, source).createOrReplaceTempView(name)
    return spark


def test_no_record_ends_more_than_the_query_that_reads_it(hostile: SparkSession) -> None:
    """A value that a query cannot take is refused in its own words, and Spark goes on."""
    stateless = [query for query in good() if not query.says]
    ended = {query: said for query in stateless if (said := answer(hostile, query))}
    assert len(stateless) > 90
    assert len(ended) < len(stateless) / 10, ended
    assert not [said for said in ended.values() if any(word in said for word in ENDS_ALL)]
    assert answer(hostile, Query("SELECT order_id FROM orders", "")) == ""


def answer(spark: SparkSession, query: Query) -> str:
    """What is said of a query that ends; nothing where it gives its rows."""
    try:
        spark.sql(query.sql).toArrow()
    except (PySparkException, Py4JJavaError) as error:
        return str(error)
    return ""
