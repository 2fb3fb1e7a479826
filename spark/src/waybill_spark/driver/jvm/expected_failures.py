"""Keeps the log readable while tasks fail that are meant to."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

OF_TASKS: Final = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
)
OF_QUERIES: Final = "SQLQueryContextLogger"  # of PySpark


@contextmanager
def hide_failed_tasks(spark: SparkSession) -> Iterator[None]:
    """Hide the stack traces of failed tasks from the log. Whoever expects failures counts them."""
    assert spark._jvm is not None
    log4j = spark._jvm.org.apache.logging.log4j
    configurator, level = log4j.core.config.Configurator, log4j.Level
    of_queries = logging.getLogger(OF_QUERIES)
    was_disabled, of_queries.disabled = of_queries.disabled, True
    for name in OF_TASKS:
        configurator.setLevel(name, level.OFF)
    try:
        yield
    finally:
        of_queries.disabled = was_disabled
        for name in OF_TASKS:
            configurator.setLevel(name, level.WARN)
