"""The pause of a query that runs can be set: the field of Spark's that holds it is still there."""

from pathlib import Path

from pyspark.sql import SparkSession

from integration.spark.manifests import RAW_DDL
from waybill_spark.driver.reading.pace import BUSY_MS, IDLE_MS, set_pause


def test_pause_of_a_query_that_runs_is_set(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    raw = spark.newSession().readStream.schema(RAW_DDL).parquet(str(tmp_path / "raw"))
    query = raw.writeStream.foreachBatch(lambda frame, batch_id: None).start()
    try:
        execution = query._jsq.streamingQuery()
        assert execution.pollingDelayMs() == BUSY_MS, "Spark's own"
        set_pause(execution, IDLE_MS)
        assert execution.pollingDelayMs() == IDLE_MS, "what it asks for before each sleep"
        query.processAllAvailable()
    finally:
        query.stop()
