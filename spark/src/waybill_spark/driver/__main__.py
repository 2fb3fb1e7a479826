"""A driver process: `python -m waybill_spark.driver SPEC`. Started and supervised by the runner.

Tells the runner what happens as JSON lines on the pipe that it was given. Dies with the runner.
"""

import logging
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from waybill_shared.contract.driver import DriverEvent, DriverSpec
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.manifest.reading import parse_manifest, place
from waybill_shared.contract.words import Obstacle
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.clients import make_producer
from waybill_shared.process import logs
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.lifetime import shutdown_on_signals
from waybill_shared.settings.clusters import KafkaSettings
from waybill_shared.settings.service import read_settings
from waybill_spark.commits import CommitEmitter, Identity
from waybill_spark.driver.app import RunningStage, Surroundings, begin
from waybill_spark.driver.blocking import OpenTransactions
from waybill_spark.driver.closing import commits_topic, report_last
from waybill_spark.driver.cluster import (
    cluster_conf,
    is_cluster,
    open_spark,
    read_properties,
    refuse_taken,
)
from waybill_spark.driver.compile import CompiledStage, compile_pipeline
from waybill_spark.driver.executors import Executors, SparkApplication
from waybill_spark.driver.failures import StageFailed, describe
from waybill_spark.driver.jvm import JvmOptions, start_jvm
from waybill_spark.driver.parent import die_with_parent
from waybill_spark.driver.planned import PlannedStage, join
from waybill_spark.driver.session import spark_conf
from waybill_spark.driver.sinks import open_sinks
from waybill_spark.driver.watching import Watcher
from waybill_spark.guard.allowed import allowed

logger = logging.getLogger(__name__)

EVENTS_FD = int(os.environ.get("WAYBILL_DRIVER_EVENTS_FD", "1"))
HEAP = "1g"


def main() -> int:
    spec = DriverSpec.model_validate_json(Path(sys.argv[1]).read_text())
    die_with_parent()
    logs.configure("stage_runner.driver", "json")
    logger.info("driver begins", extra={"pipeline": spec.pipeline, "run_id": spec.run_id})
    failed = False
    with ExitStack() as stack:
        try:
            _run(spec, stack)
        except Exception as error:  # the process's boundary: whatever it was, the runner is told
            failed = True
            logger.exception("driver ends")
            _tell_failure(spec, error)  # before anything is stopped, which may take its time
    return int(failed)


def _run(spec: DriverSpec, stack: ExitStack) -> None:
    # From the runner's own environment: the spec is a file, and no place for a password.
    kafka = read_settings(KafkaSettings).kafka_cluster()
    clock, admin, producer = SystemClock(), make_admin(kafka), make_producer(kafka)
    identity = Identity(
        tenant=spec.tenant,
        pipeline_uid=spec.pipeline_uid,
        generation=spec.generation,
        epoch=spec.epoch,
        lifecycle_id=spec.lifecycle_id,
    )
    if spec.closing:
        report_last(spec, admin, producer, identity, clock)
        return
    spark = _open_spark(spec, stack)
    stop = stack.enter_context(shutdown_on_signals())  # after Spark, which takes SIGINT for itself
    manifest = parse_manifest(spec.manifest)
    compiled = compile_pipeline(spark, manifest, allowed(spec.sql_guard))
    logger.info("pipeline is compiled", extra={"stages": len(compiled)})
    emitter = CommitEmitter(producer, commits_topic(spec), identity, clock)
    around = Surroundings(
        spark=spark,
        kafka=kafka,
        admin=admin,
        emitter=stack.enter_context(emitter),
        identity=identity,
        clock=clock,
        checkpoint_folder=spec.checkpoint_folder,
        batch_bytes_max=spec.batch_bytes_max,
        topic_absent_s=spec.topic_absent_s,
    )
    planned = {each.stage.name: each for each in join(manifest, spec.stages)}
    stages = [_stage(spec, each, planned[each.stage.name], around, stack) for each in compiled]
    executors = _executors(spec, spark, stack)
    if executors is not None:
        executors.await_first(stop, _tell_blocked)
    if stop.is_set():
        return
    begin(stages)
    _tell(DriverEvent(kind="running"))
    logger.info("pipeline runs", extra={"pipeline": spec.pipeline, "run_id": spec.run_id})
    Watcher(stages, OpenTransactions(admin), _tell_blocked, executors).run(stop)


def _open_spark(spec: DriverSpec, stack: ExitStack) -> SparkSession:
    options = JvmOptions(
        java=spec.java,
        jars=spec.spark_jars,
        archives=spec.spark_archives,
        scratch=spec.scratch_folder,
        heap=HEAP,
        log4j=Path(__file__).parent / "log4j2.properties",
    )
    name = f"waybill {spec.pipeline}"
    warehouse = spec.checkpoint_folder.parent / "spark-warehouse"
    place = spec.spark
    properties = read_properties(place.conf_file)
    conf = spark_conf(place.master, name, warehouse=warehouse)
    if is_cluster(place.master):
        conf |= cluster_conf(place, spec.spark_jars, properties)
    refuse_taken(properties, conf)
    jvm = start_jvm(options, conf)
    stack.callback(jvm.stop)
    logger.info("java runs")
    spark = open_spark(place, properties, spec.sql_guard)
    logger.info("spark session is open")
    return spark


def _executors(spec: DriverSpec, spark: SparkSession, stack: ExitStack) -> Executors | None:
    """Those of a cluster; None where Spark is all in our own JVM."""
    if not is_cluster(spec.spark.master):
        return None
    executors = Executors(SparkApplication(spark), spec.spark)
    stack.callback(executors.give_up)  # before the stages are stopped
    return executors


def _stage(
    spec: DriverSpec,
    compiled: CompiledStage,
    planned: PlannedStage,
    around: Surroundings,
    stack: ExitStack,
) -> RunningStage:
    sinks = open_sinks(spec, around.admin, planned, compiled.schemas)
    stage = RunningStage(compiled, planned.definition, sinks, around)
    stack.callback(stage.stop)
    return stage


def _tell_failure(spec: DriverSpec, error: Exception) -> None:
    stage = error.stage if isinstance(error, StageFailed) else None
    cause = (error.__cause__ or error) if isinstance(error, StageFailed) else error
    if isinstance(cause, UserError):
        cause = UserError(place(cause.problems, spec.manifest))
    problems = cause.problems if isinstance(cause, UserError) else ()
    _tell(DriverEvent(kind="failed", problems=problems, error=describe(cause, stage)))


def _tell_blocked(blocked_by: Obstacle | None) -> None:
    _tell(DriverEvent(kind="blocked", blocked_by=blocked_by))


def _tell(event: DriverEvent) -> None:
    os.write(EVENTS_FD, event.model_dump_json().encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
