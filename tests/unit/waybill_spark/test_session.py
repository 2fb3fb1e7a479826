"""The Spark session of a driver, before there is one."""

import logging

import pytest
from pyspark.logger import PySparkLogger

from waybill_spark.driver.jvm.session import ERROR_LOGGERS, create_error_loggers


def test_errors_are_logged_whatever_class_new_loggers_have_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.root.manager, "loggerDict", {})
    create_error_loggers()
    monkeypatch.setattr(PySparkLogger, "getLogger", logging.getLogger)
    for name in ERROR_LOGGERS:
        logger = PySparkLogger.getLogger(name)
        logger.propagate = False
        logger.error("no such column", errorClass="UNRESOLVED_COLUMN")
