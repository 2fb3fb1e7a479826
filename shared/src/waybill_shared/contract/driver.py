"""What the runner tells a driver to run, as a file; and what the driver tells back, as lines."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from waybill_shared.contract.events import (
    LifecycleError,
    Problem,
    SqlGuard,
    StageDefinition,
)
from waybill_shared.contract.words import Obstacle


class SparkPlace(BaseModel):
    """Where Spark runs. All but `master` and `conf_file` count on a cluster only."""

    model_config = ConfigDict(frozen=True)

    master: str
    cores_max: int
    executor_memory: str
    driver_host: str | None
    driver_port: int
    conf_file: Path | None


class DriverSpec(BaseModel):
    model_config = ConfigDict(frozen=True)

    tenant: str
    pipeline_uid: str
    pipeline: str
    generation: int
    epoch: int
    lifecycle_id: str
    run_id: str
    manifest: str
    stages: tuple[StageDefinition, ...]
    topic_prefix: str
    checkpoint_folder: Path
    lakehouse_folder: Path
    java: Path
    spark_jars: Path
    spark_archives: Path
    scratch_folder: Path
    spark: SparkPlace
    batch_bytes_max: int
    topic_absent_s: float
    sql_guard: SqlGuard
    closing: tuple[StageDefinition, ...] = ()
    """Run no stage: claim these sinks, report what they hold, and exit with 0 when all is told."""


class DriverEvent(BaseModel):
    """One line on the pipe from driver to runner.

    `blocked` may be said again and again; without `blocked_by` nothing is waited for any more.
    """

    model_config = ConfigDict(frozen=True)

    kind: Literal["running", "blocked", "failed"]
    blocked_by: Obstacle | None = None
    problems: tuple[Problem, ...] = ()
    error: LifecycleError | None = None
