"""A driver process: `python -m waybill_spark.driver HOME`.

The runner starts and supervises it. Its orders are JSON lines on its standard input; it reports
events on the pipe that it was given. It ends with the runner.
"""

import faulthandler
import logging
import os
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

from waybill_shared.contract.driver import DUMP_SIGNAL, DriverEvent, DriverHome, SparkPlace
from waybill_shared.process import logs
from waybill_shared.process.lifetime import shutdown_on_signals
from waybill_shared.settings.kafka import KafkaSettings
from waybill_shared.settings.service import read_settings
from waybill_spark.driver.failures import describe
from waybill_spark.driver.jvm.cluster import (
    cluster_conf,
    is_cluster,
    open_spark,
    read_properties,
    refuse_reserved,
)
from waybill_spark.driver.jvm.launch import JvmEnded, JvmOptions, start_jvm
from waybill_spark.driver.jvm.parent import die_with_parent
from waybill_spark.driver.jvm.session import spark_conf
from waybill_spark.driver.orders import Orders
from waybill_spark.driver.run import Engine
from waybill_spark.driver.worker import Worker

logger = logging.getLogger(__name__)

EVENTS_FD = int(os.environ.get("WAYBILL_DRIVER_EVENTS_FD", "1"))


def main() -> int:
    home = DriverHome.model_validate_json(Path(sys.argv[1]).read_text())
    die_with_parent()
    # To the output of this moment, which is the log of a run while there is one.
    faulthandler.register(DUMP_SIGNAL, file=sys.stderr, all_threads=True)
    logs.configure("stage_runner.driver", "json")
    logger.info("driver begins", extra={"folder": str(home.folder)})
    with ExitStack() as stack:
        try:
            return int(not _serve(home, stack))
        except Exception as error:  # the process's boundary: whatever it was, the runner gets it
            logger.exception("driver ends")
            _report(DriverEvent(kind="failed", error=describe(error, None)))
            return 1  # reported before anything is stopped, which may last long


def _serve(home: DriverHome, stack: ExitStack) -> bool:
    # From the runner's own environment: a file is no place for a password.
    kafka = read_settings(KafkaSettings).kafka_cluster()
    orders = Orders()
    engine = None if home.spark is None else _engine(home, home.spark, orders, stack)
    # After Spark, which takes SIGINT for itself.
    _end_with(stack.enter_context(shutdown_on_signals()), orders)
    orders.follow(sys.stdin.buffer)
    return Worker(home, engine, kafka, orders, _report).serve()


def _engine(home: DriverHome, place: SparkPlace, orders: Orders, stack: ExitStack) -> Engine:
    options = JvmOptions(
        java=home.java,
        jars=home.spark_jars,
        archives=home.spark_archives,
        scratch=home.scratch,
        heap=place.heap,
        log4j=Path(__file__).parent / "log4j2.properties",
    )
    properties = read_properties(place.conf_file)
    conf = spark_conf(place.master, home.name, warehouse=home.folder / "spark-warehouse")
    if is_cluster(place.master):
        conf |= cluster_conf(place, home.spark_jars, properties)
    refuse_reserved(properties, conf)
    elsewhere = place.executor_python if is_cluster(place.master) else None
    os.environ["PYSPARK_PYTHON"] = elsewhere or sys.executable
    jvm = start_jvm(options, conf, on_end=lambda: orders.fail(JvmEnded("Spark's JVM has ended")))
    stack.callback(jvm.stop)
    logger.info("java runs")
    session = open_spark(place, properties, home.sql_guard)
    logger.info("spark session is open")
    return Engine(session=session, place=place)


def _end_with(stop: threading.Event, orders: Orders) -> None:
    def wait() -> None:
        stop.wait()
        orders.end()

    threading.Thread(target=wait, name="signals", daemon=True).start()


def _report(event: DriverEvent) -> None:
    os.write(EVENTS_FD, event.model_dump_json().encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
