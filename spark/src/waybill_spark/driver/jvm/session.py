"""The Spark session of a driver: settings that make small batches fast, and why each is there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from waybill_shared.contract.lifecycle_events import SqlGuard
from waybill_spark.guard.allowed import read_allowed

CORES_DEFAULT: Final = "2"
ERROR_LOGGERS: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
CONF: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    # Half-parsed records would be rows of nulls; a record parses whole or not at all.
    "spark.sql.json.enablePartialResults": "false",
    # Pruning the schema of from_json would hide a bad value in a column that nobody reads.
    "spark.sql.optimizer.enableJsonExpressionOptimization": "false",
    # A query reads the stage's inputs, not files of the machine that it runs on.
    "spark.sql.runSQLOnFiles": "false",
    # `${env:PATH}` in a query would be replaced by what the JVM has there, before it is parsed.
    "spark.sql.variable.substitute": "false",
    # By default processes are forked for the permissions of each checkpoint file: 70 of 105 ms per
    # batch. The manager forks fewer, four in a batch, and the file system none.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    # Each execution describes its plan to a page that nobody serves, twice in a batch.
    "spark.sql.ui.explainMode": "simple",
    # PySpark would note of each call where in our code it is: half the time of building a frame.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # A speculative or asynchronous batch could be reported before it is done.
    "spark.speculation": "false",
    "spark.sql.streaming.asyncProgressTrackingEnabled": "false",
    # A task that keeps rows and then fails would find them in its next run, and report nothing.
    "spark.rdd.cache.visibilityTracking.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Wherever Spark shows a source's options: not how the source logs in.
    "spark.sql.redaction.options.regex": "(?i)url|jaas|keystore",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.port.maxRetries": "64",
}


def spark_conf(master: str, name: str, *, warehouse: Path) -> dict[str, str]:
    # Fixed at first start, because state is bound to it; 200 tiny shuffle tasks take seconds.
    return {
        **CONF,
        "spark.master": master,
        "spark.app.name": name,
        "spark.sql.shuffle.partitions": CORES_DEFAULT,
        "spark.sql.warehouse.dir": str(warehouse),  # else a folder wherever we happen to run
    }


def open_session(
    properties: Mapping[str, str] | None = None, sql_guard: SqlGuard = "strict"
) -> SparkSession:
    """Open the session on the gateway that `start_jvm` has announced; `properties` may be
    secret.
    """
    create_error_loggers()
    session = SparkSession.builder.config(map=dict(properties or {})).getOrCreate()
    if sql_guard == "strict":
        _forget_functions(session)
    return session


def create_error_loggers() -> None:
    """Create PySpark's loggers of errors while there is one thread.

    PySpark creates them at the first error, and changes the class of all new loggers while it
    does. Two threads that do so at once can leave a plain logger, which fails at each later error.
    """
    for name in ERROR_LOGGERS:
        PySparkLogger.getLogger(name)


def _forget_functions(spark: SparkSession) -> None:
    """Remove what no query may call from the registry that every session starts with.

    And replace `now()`: it would return another time when a batch is run again; the batch has one
    of its own.
    """
    jvm = spark._jvm
    assert jvm is not None
    analysis, name_of = (
        jvm.org.apache.spark.sql.catalyst.analysis,
        jvm.org.apache.spark.sql.catalyst.FunctionIdentifier,
    )
    functions = analysis.FunctionRegistry.builtin()
    for name in read_allowed().functions.refused:
        functions.dropFunction(name_of(name))
    for name in read_allowed().tables.refused:
        analysis.TableFunctionRegistry.builtin().dropFunction(name_of(name))
    same = name_of("current_timestamp")
    known, builder = functions.lookupFunction(same), functions.lookupFunctionBuilder(same)
    functions.registerFunction(name_of("now"), known.get(), builder.get())
