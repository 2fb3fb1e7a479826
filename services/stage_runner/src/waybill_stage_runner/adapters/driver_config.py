"""Makes what drivers need to know: of the runner's settings, and of the run of a pipeline."""

import uuid
from dataclasses import replace
from pathlib import Path

from waybill_shared.contract.driver import DriverHome, RunSpec, SinkPlaces, SparkPlace
from waybill_shared.contract.events import PipelineRecord, StageDefinition
from waybill_stage_runner.adapters.processes import LOG
from waybill_stage_runner.app.ports import Lease
from waybill_stage_runner.core.pipelines.parallelism import parallelism_of
from waybill_stage_runner.core.pool.model import Limits, RunRequested
from waybill_stage_runner.settings import Settings


def limits_of(settings: Settings) -> Limits:
    limits = Limits(
        spares=settings.spare_drivers,
        starts=settings.stage_runner_starts,
        check_ms=round(settings.stage_runner_check_timeout_s * 1000),
    )
    # On a cluster an application is named and counted by what it runs.
    return limits if settings.is_local else replace(limits, runs=1)


def cores_of(settings: Settings, parallelism: int | None) -> int | None:
    """Return the cores that a driver needs for so many tasks at once; None: those of a spare."""
    limits = settings.core_limits
    cores = limits.allow(parallelism)
    return None if cores == limits.allow(None) else cores


def request_run(
    settings: Settings, record: PipelineRecord, *, urgent: bool, closes: bool
) -> RunRequested:
    return RunRequested(
        pipeline_uid=record.pipeline_uid,
        urgent=urgent,
        closing=closes,
        cores=cores_of(settings, parallelism_of(record)),
    )


def places_of(settings: Settings) -> SinkPlaces:
    file = settings.connections_file
    return SinkPlaces(
        lakehouse_folder=settings.stage_runner_lakehouse.resolve(),
        connections_file=None if file is None else file.resolve(),
    )


def spark_place_of(settings: Settings, cores: int | None) -> SparkPlace:
    """Return where Spark runs. `cores` None: as many as the settings give to each pipeline."""
    file = settings.spark_conf_file
    limits = settings.core_limits
    spare = limits.allow(None)
    as_set = cores is None and spare == limits.usual
    local = settings.is_local and not as_set
    return SparkPlace(
        master=f"local[{cores or spare}]" if local else settings.spark_master,
        heap=settings.spark_driver_memory,
        cores_max=cores or spare,
        executor_memory=settings.spark_executor_memory,
        driver_host=settings.spark_driver_host,
        driver_port=settings.spark_driver_port,
        executor_python=settings.spark_executor_python,
        conf_file=None if file is None else file.resolve(),
    )


def pipeline_folder(settings: Settings, name: str) -> Path:
    """Return the folder of a pipeline, by its uid, in the runner's state folder."""
    return settings.stage_runner_state_folder.resolve() / name


def driver_home(
    settings: Settings, folder: Path, *, spark: bool, cores: int | None = None
) -> DriverHome:
    """Return what a driver needs to start; `spark` False: without a Spark session. `cores` None:
    those of a spare.
    """
    return DriverHome(
        name="waybill",
        folder=folder,
        java=settings.stage_runner_java,
        spark_jars=settings.stage_runner_spark_jars,
        spark_archives=settings.stage_runner_spark_archives,
        spark=spark_place_of(settings, cores) if spark else None,
        sql_guard=settings.stage_runner_sql_guard,
        topic_prefix=settings.topic_prefix,
        places=places_of(settings),
    )


def run_spec(
    settings: Settings,
    record: PipelineRecord,
    lease: Lease,
    *,
    closing: tuple[StageDefinition, ...] = (),
) -> RunSpec:
    """Return what a driver needs for a new run of this pipeline."""
    folder = pipeline_folder(settings, record.pipeline_uid)
    return RunSpec(
        tenant=record.tenant,
        pipeline_uid=record.pipeline_uid,
        pipeline=record.name,
        generation=record.generation,
        epoch=lease.epoch,
        lifecycle_id=lease.lifecycle_id,
        run_id=uuid.uuid4().hex,
        manifest=record.manifest,
        stages=record.stages,
        topic_prefix=settings.topic_prefix,
        checkpoint_folder=folder / "checkpoints",
        places=places_of(settings),
        log_file=folder / LOG,
        batch_rows_max=settings.stage_runner_batch_rows_max,
        batch_bytes_max=settings.stage_runner_batch_bytes_max,
        loads_max=settings.stage_runner_loads_max,
        topic_absent_s=settings.stage_runner_topic_absent_s,
        replication=settings.stage_runner_replication,
        rewinds=record.rewinds,
        dead_letters=record.dead_letters,
        stopped=tuple(each.stage for each in record.stopped_stages),
        paused=record.desired == "paused",
        closing=closing,
    )
