"""Makes the class archive: `python -m waybill_spark.driver.rehearsal JAVA JARS ARCHIVES`.

Plays what a driver does, without Kafka and without a pipeline, in a JVM that writes down what it
has loaded. No driver could: recording makes a start three times as long, and writing takes longer
than a driver may take to end.
"""

import fcntl
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from waybill_shared.process import logs
from waybill_shared.process.archives import archive_of, class_path, remove_older
from waybill_spark.driver.jvm.launch import JvmOptions, start_jvm
from waybill_spark.driver.jvm.parent import die_with_parent
from waybill_spark.driver.jvm.session import open_session, spark_conf
from waybill_spark.driver.warming import take_batches

logger = logging.getLogger(__name__)

NICENESS: Final = 5  # drivers go first
HEAP: Final = "1g"
WRITE_TIMEOUT_S: Final = 600.0
NOBODY: Final = "127.0.0.1:9"
KAFKA_TIMEOUT_MS: Final = 1_000


def main() -> int:
    die_with_parent()
    os.nice(NICENESS)
    logs.configure("stage_runner.rehearsal", "json")
    java, jars, folder = map(Path, sys.argv[1:])
    archive = archive_of(folder, java, class_path(jars))
    folder.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if archive.exists():
            return 0
        if not _record_in(folder, archive, java, jars):
            return 1
    remove_older(archive, class_path(jars))
    logger.info("class archive is written", extra={"path": str(archive)})
    return 0


def _record_in(folder: Path, archive: Path, java: Path, jars: Path) -> bool:
    """Record the archive. Return False if that failed.

    Its temporary files are next to the archive. The next run deletes those of a killed one.
    """
    prefix = f".{archive.stem}-"
    for left in folder.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=prefix) as scratch:
        options = JvmOptions(
            java=java,
            jars=jars,
            archives=folder,
            scratch=Path(scratch),
            heap=HEAP,
            log4j=Path(__file__).parent / "log4j2.properties",
        )
        draft = archive.with_suffix(".draft")
        if not record(options, draft):
            logger.error("class archive was not written", extra={"path": str(archive)})
            return False
        draft.rename(archive)
    return True


def record(options: JvmOptions, draft: Path) -> bool:
    """Record a class archive.

    Return True if the JVM has ended by itself, and so has written all of it.
    """
    draft.unlink(missing_ok=True)
    conf = spark_conf("local[2]", "rehearsal", warehouse=options.scratch / "warehouse")
    jvm = start_jvm(options, conf, recording=draft)
    try:
        play(open_session(), options.scratch)
    finally:
        ended = jvm.stop(WRITE_TIMEOUT_S)
    return ended and draft.exists()


def play(spark: SparkSession, scratch: Path) -> None:
    take_batches(spark, scratch / "batches")
    _ask_for_offsets(spark, scratch / "offsets")


def _ask_for_offsets(spark: SparkSession, checkpoint: Path) -> None:
    """Ask a Kafka that does not exist for offsets, so that the classes for this are loaded."""
    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", NOBODY)
        .option("kafka.request.timeout.ms", KAFKA_TIMEOUT_MS)
        .option("kafka.default.api.timeout.ms", KAFKA_TIMEOUT_MS)
        .option("fetchOffset.numRetries", 1)
        .option("subscribe", "said")
        .load()
    )
    query = stream.writeStream.foreachBatch(lambda frame, batch_id: None)
    try:
        query.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
    except StreamingQueryException as error:
        logger.info("as expected, no Kafka", extra={"reason": str(error).splitlines()[0]})


if __name__ == "__main__":
    sys.exit(main())
