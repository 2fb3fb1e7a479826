"""Rows that are planned with the query: the same as those that each batch plans for itself."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from batch_reading import tables_of
from integration.spark.conftest import RawFrame
from integration.spark.manifests import KAFKA_SINK, LAKE_SINK, RAW_DDL, make_manifest
from waybill_spark.driver.sql.compile import CompiledStage, compile_pipeline
from waybill_spark.guard.allowed import read_allowed
from waybill_spark.sinks.kafka.sending import KEY, VALUE
from waybill_spark.tracking.batch_rows import BatchRows

QUERY = "SELECT order_id, customer, amount * 2 AS twice FROM orders WHERE amount > 1"
TWO_VIEWS = (
    "{name: out, from: step_0, kafka: {topic: orders.out}}",
    "{name: lake, from: step_1, iceberg: {table: raw.orders}}",
)


class Stream:
    """Raw records that come batch by batch, as files of a folder."""

    def __init__(self, spark: SparkSession, raw_frame: RawFrame, folder: Path) -> None:
        self._raw_frame = raw_frame
        self._folder = folder
        (folder / "raw").mkdir()
        self.raw = (
            spark.newSession()
            .readStream.schema(RAW_DDL)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(folder / "raw"))
        )
        self.batches: list[BatchRows] = []

    def send(self, *values: bytes) -> DataFrame:
        """One batch more; the same records at rest."""
        records = [("orders.in", 0, offset, value) for offset, value in enumerate(values)]
        frame = self._raw_frame(records)
        frame.coalesce(1).write.mode("append").parquet(str(self._folder / "raw"))
        return frame

    def run(self, compiled: CompiledStage) -> None:
        """Take all that was sent; StreamingQueryException with what a batch raised."""
        planned = compiled.plan(self.raw)
        assert planned is not None

        def take(frame: DataFrame, batch_id: int) -> None:
            (query,) = planned.sparkSession._jsparkSession.streams().active()
            execution = query.streamingQuery().lastExecution()
            assert execution.currentBatchId() == batch_id
            self.batches.append(compiled.collect(frame, execution))

        started = (
            planned.writeStream.foreachBatch(take)
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .start()
        )
        try:
            started.processAllAvailable()
        finally:
            started.stop()


@pytest.fixture
def stream(spark: SparkSession, raw_frame: RawFrame, tmp_path: Path) -> Stream:
    return Stream(spark, raw_frame, tmp_path)


def make_stage(
    spark: SparkSession, steps: Sequence[str], sinks: tuple[str, ...], orders: str = ""
) -> CompiledStage:
    manifest = make_manifest(*steps, sinks=sinks, orders=orders)
    (compiled,) = compile_pipeline(spark, manifest, read_allowed())
    return compiled


def order(number: int, amount: object = "12.34") -> bytes:
    return json.dumps({"order_id": number, "customer": "Ada", "amount": amount}).encode()


def test_each_batch_gives_the_rows_that_its_records_give_at_rest(
    spark: SparkSession, stream: Stream
) -> None:
    compiled = make_stage(spark, [QUERY], (KAFKA_SINK, LAKE_SINK))
    first, second = stream.send(order(1), order(2, "0.5")), stream.send(order(3))

    stream.run(compiled)

    assert stream.batches == [compiled.rows(first), compiled.rows(second)]
    assert tables_of(stream.batches[0])["out"].column_names == [KEY, VALUE]
    assert tables_of(stream.batches[1])["lake"].column("order_id").to_pylist() == [3]


def test_each_batch_counts_what_its_records_count_at_rest(
    spark: SparkSession, stream: Stream
) -> None:
    rule = "{name: few, expect: amount < 100, onViolation: drop}"
    compiled = make_stage(spark, [QUERY], (LAKE_SINK,), f"expectations: [{rule}]")
    first = stream.send(order(1), order(2, "many"), order(3, "500"), order(4, "x"))
    second = stream.send(order(5))

    stream.run(compiled)

    assert [(len(each.dead), each.dropped) for each in stream.batches] == [
        (2, {"orders.few": 1}),
        (0, {}),
    ]
    assert stream.batches == [compiled.rows(first), compiled.rows(second)]


def test_a_record_dies_also_where_the_query_can_give_no_row(
    spark: SparkSession, stream: Stream
) -> None:
    compiled = make_stage(spark, ["SELECT order_id FROM orders WHERE amount = NULL"], (LAKE_SINK,))
    records = stream.send(order(1), order(2, "many"))

    stream.run(compiled)

    assert [[each.offset for each in batch.dead] for batch in stream.batches] == [[1]]
    assert stream.batches == [compiled.rows(records)]


def test_a_query_may_ask_for_the_time_of_its_batch(spark: SparkSession, stream: Stream) -> None:
    times = ("current_timestamp()", "now()", "localtimestamp()", "current_date()")
    columns = ", ".join(f"{time} AS at_{number}" for number, time in enumerate(times))
    compiled = make_stage(spark, [f"SELECT {columns} FROM orders"], (LAKE_SINK,))
    stream.send(order(1))

    stream.run(compiled)

    (batch,) = stream.batches
    found = tables_of(batch)["lake"]
    assert (found.num_rows, found.num_columns) == (1, len(times))
    assert [column.null_count for column in found.columns] == [0] * len(times)


def test_a_value_that_ends_the_query_is_told_of_the_batch(
    spark: SparkSession, stream: Stream
) -> None:
    compiled = make_stage(spark, ["SELECT 1 / order_id AS part FROM orders"], (LAKE_SINK,))
    stream.send(order(0))

    with pytest.raises(StreamingQueryException, match=r"step step_0 ends at .* Division by zero"):
        stream.run(compiled)


def test_malformed_record_is_found_in_the_batch_that_holds_it(
    spark: SparkSession, stream: Stream
) -> None:
    compiled = make_stage(spark, ["SELECT customer FROM orders"], (LAKE_SINK,), "onMalformed: fail")
    stream.send(order(1))
    stream.send(order(2), order(3, "many"))  # a column that nobody asks for

    with pytest.raises(
        StreamingQueryException, match=r"1 record\(s\) do not fit its schema.*orders\.in\[0\]@1"
    ):
        stream.run(compiled)

    assert len(stream.batches) == 1


@pytest.mark.parametrize(
    ("steps", "sinks"),
    [
        (["SELECT order_id FROM orders", "SELECT customer FROM orders"], TWO_VIEWS),
        (["SELECT * FROM orders UNION ALL SELECT * FROM orders"], (LAKE_SINK,)),
        (["SELECT order_id FROM orders UNION ALL SELECT order_id FROM others"], (LAKE_SINK,)),
    ],
    ids=["a view for each sink", "an input twice", "two inputs"],
)
def test_what_one_reading_cannot_give_is_planned_in_each_batch(
    spark: SparkSession, stream: Stream, steps: list[str], sinks: tuple[str, ...]
) -> None:
    assert make_stage(spark, steps, sinks).plan(stream.raw) is None
