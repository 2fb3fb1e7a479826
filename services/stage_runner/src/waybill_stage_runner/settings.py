"""Settings of the stage runner."""

import os
import re
from pathlib import Path
from typing import Final

from pydantic import Field, field_validator

from waybill_shared.contract.lifecycle_events import SqlGuard
from waybill_shared.settings.service import ServiceSettings
from waybill_stage_runner.core.pipelines.parallelism import CoreLimits
from waybill_stage_runner.core.pipelines.time_limits import BY_DEFAULT, TimeLimits

LOCAL: Final = re.compile(r"local(?:\[(\d+|\*)\])?")
MASTER: Final = re.compile(r"local(\[(\d+|\*)\])?|spark://[^/:,]+:\d+(,[^/:,]+:\d+)*|yarn|k8s://.+")


class Settings(ServiceSettings):
    stage_runner_port: int = Field(default=8084, description="HTTP: health and metrics only")
    stage_runner_state_folder: Path = Field(
        default=Path(".waybill/stage_runner"), description="checkpoints, driver specs and logs"
    )
    stage_runner_java: Path = Field(default=Path("java"), description="Java 17 or newer")
    stage_runner_spark_jars: Path = Field(
        default=Path(".waybill/spark_jars"), description="Spark's connectors"
    )
    stage_runner_spark_archives: Path = Field(
        default=Path(".waybill/archives"),
        description="class archives, with which drivers start faster; the runner makes its own",
    )
    stage_runner_lakehouse: Path = Field(
        default=Path(".waybill/lakehouse"), description="Iceberg catalog and warehouse"
    )
    connections_file: Path | None = Field(
        default=None,
        description="how sinks reach databases: docs/connections.md; read by drivers too",
    )
    stage_runner_replication: int = Field(
        default=1, description="of topics that are created for pipelines"
    )
    stage_runner_batch_rows_max: int = Field(
        default=200_000,
        ge=1,
        description="records that a driver takes at once, as bytes below",
    )
    stage_runner_batch_bytes_max: int = Field(
        default=64 << 20,  # a heap of 1 GB can keep several copies of a piece
        ge=1,
        description="bytes of records that a driver reads at once; a larger batch is written by"
        " executors, or taken in pieces",
    )
    stage_runner_loads_max: int = Field(
        default=20, ge=1, description="sinks that a driver writes to at the same time"
    )
    stage_runner_spare_drivers: int | None = Field(
        default=None,
        ge=0,
        description="drivers kept ready from the start, so that a pipeline starts within a second;"
        " default: 1 from a minute after the first run on, and 0 on a cluster, where a driver holds"
        " cores",
    )
    stage_runner_parallelism_max: int | None = Field(
        default=None,
        ge=1,
        description="tasks at once that a pipeline may ask for; default: the cores of this host;"
        " on a cluster what each pipeline gets",
    )
    stage_runner_starts: int = Field(
        default_factory=lambda: max(1, (os.cpu_count() or 1) // 2),
        ge=1,
        description="drivers that start, or begin a run, at once; default: one for two cores",
    )
    stage_runner_check_timeout_s: float = Field(
        default=30.0,
        gt=0,
        description="so long a manifest may take to compile, from when its driver begins",
    )
    stage_runner_stall_s: float = Field(
        default=BY_DEFAULT.stall_ms / 1000,
        gt=0,
        description="so long a batch may do nothing, at least, before its pipeline is degraded;"
        " after twice that its driver is started again",
    )
    stage_runner_start_limit_s: float = Field(
        default=BY_DEFAULT.start_ms / 1000,
        gt=0,
        description="so long a driver may start its stages; then it is killed, and started again",
    )
    stage_runner_finish_limit_s: float = Field(
        default=BY_DEFAULT.finish_ms / 1000,
        gt=0,
        description="so long the driver of a run that has read all may take to end",
    )
    stage_runner_drain_limit_s: float = Field(
        default=BY_DEFAULT.drain_ms / 1000,
        gt=0,
        description="so long a stop with mode drain may take, before it becomes checkpoint",
    )
    stage_runner_checkpoint_limit_s: float = Field(
        default=BY_DEFAULT.checkpoint_ms / 1000,
        gt=0,
        description="so long a stop with mode checkpoint may take, before it becomes force",
    )
    stage_runner_close_limit_s: float = Field(
        default=BY_DEFAULT.close_ms / 1000,
        gt=0,
        description="so long a driver may close sinks that are removed; then it is tried again",
    )
    stage_runner_sql_guard: SqlGuard = Field(
        default="strict",
        description="trusted: no lists of what SQL may hold; commands are refused all the same",
    )
    stage_runner_topic_absent_s: float = Field(
        default=30.0,
        ge=0,
        description="so long a topic must be unknown before it counts as deleted, which is final",
    )
    spark_master: str = Field(
        default="local[2]", description="local[N] for N cores here, or a cluster: spark://HOST:PORT"
    )
    spark_driver_memory: str = Field(
        default="1g", pattern="^[0-9]+[kmgt]$", description="heap of the JVM of each driver"
    )
    spark_cores_max: int = Field(
        default=2, ge=1, description="of a cluster, per pipeline; Spark's own default is all"
    )
    spark_executor_memory: str = Field(
        default="1g", pattern="^[0-9]+[kmgt]$", description="of a cluster, per executor"
    )
    spark_driver_host: str | None = Field(
        default=None,
        description="how workers reach this host, where it is not the address that reaches them",
    )
    spark_driver_port: int = Field(
        default=0, description="first of the ports that workers reach, two per pipeline; 0: any"
    )
    spark_executor_python: str | None = Field(
        default=None,
        min_length=1,
        description="Python of workers that has waybill-spark, by which they write big batches;"
        " default: where that of the runner lies",
    )
    spark_conf_file: Path | None = Field(
        default=None, description="more of Spark's properties, in the form of spark-defaults.conf"
    )

    @field_validator("spark_master")
    @classmethod
    def _check_master(cls, master: str) -> str:
        if not MASTER.fullmatch(master):
            raise ValueError(f"{master!r} is neither local[N] nor spark://HOST:PORT")
        return master

    @property
    def time_limits(self) -> TimeLimits:
        return TimeLimits(
            stall_ms=round(self.stage_runner_stall_s * 1000),
            start_ms=round(self.stage_runner_start_limit_s * 1000),
            finish_ms=round(self.stage_runner_finish_limit_s * 1000),
            drain_ms=round(self.stage_runner_drain_limit_s * 1000),
            checkpoint_ms=round(self.stage_runner_checkpoint_limit_s * 1000),
            close_ms=round(self.stage_runner_close_limit_s * 1000),
        )

    @property
    def spare_drivers(self) -> int:
        if self.stage_runner_spare_drivers is None:
            return 1 if self.is_local else 0
        return self.stage_runner_spare_drivers

    @property
    def spares_from_the_start(self) -> bool:
        """True if the operator has set the number of spare drivers."""
        return self.stage_runner_spare_drivers is not None

    @property
    def core_limits(self) -> CoreLimits:
        """The cores of each driver, and the most that one may have."""
        here, found = os.cpu_count() or 1, LOCAL.fullmatch(self.spark_master)
        if found is None:
            usual, most = self.spark_cores_max, self.spark_cores_max
        else:
            usual = here if found[1] == "*" else int(found[1] or 1)
            most = max(usual, here)
        return CoreLimits(usual=usual, most=self.stage_runner_parallelism_max or most)

    @property
    def is_local(self) -> bool:
        """True if Spark computes in the drivers themselves."""
        return self.spark_master.startswith("local")
