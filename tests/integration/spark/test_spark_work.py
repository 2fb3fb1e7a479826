"""What Spark has done for a stage is another value as soon as its tasks go on."""

import threading
from pathlib import Path

from pyspark.sql import SparkSession

from integration.waiting import eventually
from waybill_spark.driver.jvm.spark_work import NOTHING, SparkWork, Work

WITHIN_S = 60.0
GROUP = "a-stage"


def test_a_job_that_runs_is_seen_by_its_group_and_moves_with_its_tasks(
    spark: SparkSession, tmp_path: Path
) -> None:
    work, ends = SparkWork(spark), tmp_path / "ends"

    def wait(number: int) -> int:
        never = threading.Event()
        while number and not ends.exists():
            never.wait(0.01)
        return number

    def run() -> None:
        spark.sparkContext.setJobGroup(GROUP, "of a stage")
        spark.sparkContext.parallelize([0, 1], 2).map(wait).collect()

    def seen(group: str) -> Work:
        return work.of(group, work.active_jobs())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        eventually(lambda: any(each[2] == 1 for each in seen(GROUP)), within_s=WITHIN_S)
        assert seen("another") == NOTHING
    finally:
        ends.touch()
        thread.join()
    assert seen(GROUP) == NOTHING
