"""Stages of one driver read at the same time, and their views have the same names."""

from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from batch_reading import in_pieces_of, tables_of
from integration.spark.manifests import LAKE_SINK
from integration.spark.test_rows import make_stage, raw_order
from waybill_shared.contract.events import Range
from waybill_shared.contract.manifest.model import Stage
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_spark.driver.reading import topics
from waybill_spark.driver.reading.inputs import DecodedInput
from waybill_spark.driver.reading.sizes import RecordSizes
from waybill_spark.driver.reading.topics import TopicSource
from waybill_spark.driver.sql import compile as compiling


def run_of(start: int) -> tuple[Range, ...]:
    return (Range(topic="orders.in", topic_id="T", partition=0, start=start, end=start + 1),)


def read_ranges(
    spark: SparkSession, kafka: object, ranges: tuple[Range, ...], **_: object
) -> DataFrame:
    """As from Kafka: the order with the number of the offset."""
    offset = ranges[0].start
    table = pa.table(
        {
            "topic": ["orders.in"],
            "partition": pa.array([0], pa.int32()),
            "offset": [offset],
            "value": pa.array([raw_order(order_id=offset)], pa.binary()),
        }
    )
    return spark.createDataFrame(table)


def test_what_one_stage_reads_again_is_no_other_stages(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second reads when the first has named its records, and not yet asked for its rows."""
    monkeypatch.setattr(topics, "read_ranges", read_ranges)
    sources = [
        TopicSource(
            cast(KafkaAdmin, None),
            spark,
            "",
            make_stage(spark, sql, sinks=(LAKE_SINK,)).rows,
            lambda record, verdict: pytest.fail("no record is dead"),
            sizes=RecordSizes(),
            limits=in_pieces_of(1 << 40),
            absent_s=0.0,
        )
        for sql in ("SELECT order_id FROM orders", "SELECT order_id + 100 AS order_id FROM orders")
    ]
    found: list[list[int]] = []
    register = compiling._register

    def numbers(source: TopicSource, offset: int) -> list[int]:
        rows = tables_of(source.read(run_of(offset)))["lake"]
        return [*map(int, rows.column("order_id").to_pylist())]

    def registered(
        session: SparkSession, raw: DataFrame, inputs: tuple[DecodedInput, ...], stage: Stage
    ) -> None:
        register(session, raw, inputs, stage)
        if not found:
            found.append([])
            found[0] = numbers(sources[1], 8)

    monkeypatch.setattr(compiling, "_register", registered)
    assert numbers(sources[0], 7) == [7]
    assert found == [[108]]
