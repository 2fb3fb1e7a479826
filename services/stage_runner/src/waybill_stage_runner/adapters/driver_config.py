"""Makes what drivers need to know of the runner's settings."""

from dataclasses import replace

from waybill_shared.contract.driver import SinkPlaces, SparkPlace
from waybill_stage_runner.core.pool.model import Limits
from waybill_stage_runner.settings import Settings


def limits_of(settings: Settings) -> Limits:
    limits = Limits(
        spares=settings.spare_drivers,
        starts=settings.stage_runner_starts,
        check_ms=round(settings.stage_runner_check_timeout_s * 1000),
    )
    # On a cluster an application is named and counted by what it runs.
    return limits if settings.is_local else replace(limits, runs=1)


def places_of(settings: Settings) -> SinkPlaces:
    file = settings.connections_file
    return SinkPlaces(
        lakehouse_folder=settings.stage_runner_lakehouse.resolve(),
        connections_file=None if file is None else file.resolve(),
    )


def spark_place_of(settings: Settings) -> SparkPlace:
    file = settings.spark_conf_file
    return SparkPlace(
        master=settings.spark_master,
        heap=settings.spark_driver_memory,
        cores_max=settings.spark_cores_max,
        executor_memory=settings.spark_executor_memory,
        driver_host=settings.spark_driver_host,
        driver_port=settings.spark_driver_port,
        executor_python=settings.spark_executor_python,
        conf_file=None if file is None else file.resolve(),
    )
