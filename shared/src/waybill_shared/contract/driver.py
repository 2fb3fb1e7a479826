"""The messages between runner and driver.

The runner writes the setup of a driver to a file, and orders to its standard input. The driver
writes events to its pipe. Each order and each event is a JSON line.

A driver is a process with Spark in it, a run is one pipeline in one generation in a driver, and a
check is a compile without effect. A driver does one thing at a time.
"""

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.dead_letter_requests import DeadLetterRequest
from waybill_shared.contract.driver_news import (
    IgnoredFields,
    SinkWait,
    StageActivity,
    TableMaintenance,
)
from waybill_shared.contract.errors import Problem
from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.lifecycle_events import LifecycleError, SqlGuard
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.rewinds import StageRewind
from waybill_shared.contract.words import Obstacle

DUMP_SIGNAL: Final = signal.SIGUSR1  # a driver that gets it writes where its threads are
SCRATCH: Final = "tmp"  # in a driver's folder: what Spark and its libraries unpack


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SinkPlaces(_Message):
    """The folders of the runner's host in which sinks find what they write to."""

    lakehouse_folder: Path
    connections_file: Path | None = None


class SparkPlace(_Message):
    """The machine or cluster on which Spark runs. All but `master`, `heap` and `conf_file` count on
    a cluster only."""

    master: str
    heap: str
    """The heap of the driver's own JVM."""
    cores_max: int
    executor_memory: str
    driver_host: str | None
    driver_port: int
    executor_python: str | None
    """None: the path of the driver's own Python."""
    conf_file: Path | None


class DriverHome(_Message):
    """The settings of a driver, whatever it runs."""

    name: str
    """The name by which Spark knows it."""
    folder: Path
    """Its own."""
    java: Path
    spark_jars: Path
    spark_archives: Path
    spark: SparkPlace | None
    """None: a driver without Spark, which can only close."""
    sql_guard: SqlGuard
    topic_prefix: str
    places: SinkPlaces

    @property
    def scratch(self) -> Path:
        return self.folder / SCRATCH


class RunSpec(_Message):
    tenant: str
    pipeline_uid: str
    pipeline: str
    generation: int
    epoch: int
    lifecycle_id: str
    run_id: str
    manifest: AppliedManifest
    stages: tuple[StageDefinition, ...]
    topic_prefix: str
    checkpoint_folder: Path
    places: SinkPlaces
    log_file: Path
    batch_rows_max: int
    batch_bytes_max: int
    loads_max: int
    """Sinks that the driver writes to at the same time."""
    topic_absent_s: float
    replication: int
    """The replication factor of dead-letter topics that the run creates."""
    rewinds: tuple[StageRewind, ...] = ()
    """The newest of each stage. A sink that has had it does nothing."""
    dead_letters: tuple[DeadLetterRequest, ...] = ()
    """Records that go to their dead-letter topics before any batch. Each event that it runs, or is
    paused, says that this is done.
    """
    stopped: tuple[str, ...] = ()
    """Stages that are left out until an order starts them."""
    paused: bool = False
    """True if no batch begins before an order says so."""
    pause_order: int = 0
    """The number of the newest order to pause or to continue that is in this spec."""
    closing: tuple[StageDefinition, ...] = ()
    """Run no stage: claim these sinks, report what they keep, and end after all of it is
    reported.
    """


class RunOrder(_Message):
    kind: Literal["run"] = "run"
    spec: RunSpec


class StopOrder(_Message):
    kind: Literal["stop"] = "stop"
    run_id: str
    mode: StopMode = StopMode.CHECKPOINT


class PauseOrder(_Message):
    """An order to begin no batch, or to begin them again. The driver reports it with its number
    when all stages are so.
    """

    kind: Literal["pause"] = "pause"
    run_id: str
    paused: bool
    number: int
    """Of the orders to pause and to continue that this run got, from 1."""


class StartStagesOrder(_Message):
    """An order to start stages that are stopped. The driver reports it with its number when it has
    tried each of them; before that it reports those that could not be started.
    """

    kind: Literal["start_stages"] = "start_stages"
    run_id: str
    stages: tuple[str, ...]
    number: int
    """Of the orders to start stages that this run got, from 1."""


class CheckOrder(_Message):
    kind: Literal["check"] = "check"
    check_id: str
    pipeline_uid: str
    manifest: AppliedManifest
    before: AppliedManifest | None = None
    """The manifest that is applied now: only its columns are wanted, and only if it compiles."""


class MaintainOrder(_Message):
    """An order to maintain the table of a sink, while others may write to it.

    Its result is reported like that of a check.
    """

    kind: Literal["maintain"] = "maintain"
    check_id: str
    spec: RunSpec
    """As of a run, though it holds no lease: it writes nothing that is of the pipeline."""
    sink: str
    dry_run: bool


class EndOrder(_Message):
    kind: Literal["end"] = "end"


Order = RunOrder | StopOrder | PauseOrder | StartStagesOrder | CheckOrder | MaintainOrder | EndOrder
ORDERS: Final[TypeAdapter[Order]] = TypeAdapter(Annotated[Order, Field(discriminator="kind")])


class DriverEvent(_Message):
    """`run_id` or `check_id` says what it is about; without either it is about the driver itself.

    `blocked` and `ignored` may be said again and again; without `blocked_by` and `waits` nothing is
    waited for any more. `drained`: all that the inputs contained when the run was to drain is in
    every sink. `stage_ended`: a stage has ended by a failure of its own, which `error` describes,
    and the others go on. `finished`: the run has read all that there was, every commit is in Kafka,
    and `ended` follows.
    """

    kind: Literal[
        "ready",
        "checking",
        "checked",
        "compiling",
        "running",
        "paused",
        "blocked",
        "ignored",
        "progress",
        "maintained",
        "drained",
        "stage_ended",
        "stages_started",
        "finished",
        "failed",
        "ended",
    ]
    run_id: str | None = None
    check_id: str | None = None
    blocked_by: Obstacle | None = None
    waits: tuple[SinkWait, ...] = ()
    ignored: tuple[IgnoredFields, ...] = ()
    progress: tuple[StageActivity, ...] = ()
    """Of each stage, every two seconds."""
    maintenance: TableMaintenance | None = None
    problems: tuple[Problem, ...] = ()
    error: LifecycleError | None = None
    columns: Mapping[str, Mapping[str, str]] = {}
    """The columns of the rows of a checked manifest, by stage and sink. Those of stages that are
    wrong are not known."""
    columns_before: Mapping[str, Mapping[str, str]] = {}
    """The same of the manifest that is applied now."""
    alterations: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
    """By stage and sink: what else the first rows of a checked manifest would change in the target,
    such as its columns.
    """
    order: int = 0
    """Of `running`, `paused` and `stages_started`: the number of the order that is carried out.
    0: no order came.
    """
    put_aside: int = 0
    """Of `stage_ended`: how many records it has put aside in this run."""
    tasks: Mapping[str, Mapping[str, int]] = {}
    """By task, what was done to a table, in numbers."""
    not_put: Mapping[str, Problem] = {}
    """The reasons why records did not go to a dead-letter topic, by the id of the command. It is in
    `running` and `paused`.
    """
