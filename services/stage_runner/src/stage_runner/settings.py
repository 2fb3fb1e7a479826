"""Settings of the stage runner."""

from pathlib import Path

from pydantic import Field

from shared.settings import ServiceSettings


class StageRunnerSettings(ServiceSettings):
    stage_runner_port: int = Field(default=8084, description="HTTP: health and metrics only")
    stage_runner_state_folder: Path = Field(
        default=Path(".waybill/stage_runner"), description="checkpoints, driver specs and logs"
    )
    stage_runner_java: Path = Field(default=Path("java"), description="Java 17 or newer")
    stage_runner_spark_jars: Path = Field(
        default=Path(".waybill/spark_jars"), description="Spark's connectors"
    )
    stage_runner_spark_archive: Path = Field(
        default=Path(".waybill/spark.jsa"),
        description="class archive; written by the first driver that ends well, read by later ones",
    )
    stage_runner_lakehouse: Path = Field(
        default=Path(".waybill/lakehouse"), description="Iceberg catalog and warehouse"
    )
    stage_runner_master: str = Field(default="local[2]", description="Spark's master")
    stage_runner_replication: int = Field(
        default=1, description="of topics that are created for pipelines"
    )
