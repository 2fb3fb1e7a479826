"""Driver processes: one group per pipeline, spawned from the main thread, gone before the next.

Fulfils `Drivers`. What drivers tell arrives in `events`, in order, for the main loop.
"""

import logging
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from waybill_shared.contract.driver import DriverEvent, DriverSpec, SparkPlace
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.events import PipelineRecord, StageDefinition
from waybill_stage_runner.adapters.groups import (
    emptied,
    end_group,
    groups_with,
    signal_group,
)
from waybill_stage_runner.app.ports import Lease
from waybill_stage_runner.settings import Settings

logger = logging.getLogger(__name__)

SCRATCH: Final = "tmp"  # below a pipeline's folder: a temp folder per run of its driver
SPEC: Final = "spec.json"
KILL_TIMEOUT_S: Final = 5.0
LEFT_TIMEOUT_S: Final = 2.0  # for what an earlier runner left; then others get their turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A driver said something; `epoch` tells it from those before and after it."""

    pipeline_uid: str
    epoch: int
    event: DriverEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """No process of the driver's group is left."""

    pipeline_uid: str
    epoch: int
    exit_code: int


class DriverProcesses:
    def __init__(self, settings: Settings) -> None:
        self.events: queue.SimpleQueue[Told | Ended] = queue.SimpleQueue()
        self._settings = settings
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self, record: PipelineRecord, lease: Lease, *, closing: tuple[StageDefinition, ...] = ()
    ) -> None:
        folder = self._folder(record.pipeline_uid)
        spec = self._spec(record, lease, run_id=uuid.uuid4().hex, closing=closing)
        spec_path = folder / SPEC
        _end_left(folder)
        try:
            shutil.rmtree(folder / SCRATCH, ignore_errors=True)
            spec.scratch_folder.mkdir(parents=True)
            spec_path.write_text(spec.model_dump_json())
        except OSError as error:
            raise Retryable(f"folder {folder} cannot be written: {error}") from error
        reader, writer = os.pipe()
        with (folder / "driver.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "waybill_spark.driver", str(spec_path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(writer,),
                env={
                    **os.environ,
                    "WAYBILL_DRIVER_EVENTS_FD": str(writer),
                    "TMPDIR": str(spec.scratch_folder),
                },
                start_new_session=True,
            )
        os.close(writer)
        self._processes[record.pipeline_uid] = process
        follow = threading.Thread(target=self._follow, args=(spec, process, reader), daemon=True)
        follow.start()

    def stop(self, pipeline_uid: str, *, force: bool) -> None:
        process = self._processes.get(pipeline_uid)
        if process is not None:
            signal_group(process.pid, signal.SIGKILL if force else signal.SIGTERM, whole=force)

    def stop_all(self, timeout_s: float) -> None:
        """SIGTERM to every driver, SIGKILL to what is left when the time is over."""
        for uid in list(self._processes):
            self.stop(uid, force=False)
        deadline = time.monotonic() + timeout_s
        for process in list(self._processes.values()):
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                signal_group(process.pid, signal.SIGKILL, whole=True)
            while not emptied(process.pid) and time.monotonic() < deadline + KILL_TIMEOUT_S:
                pass  # what the kernel still holds then is ended by who starts the next driver
        self.sweep()

    def sweep(self) -> None:
        """Remove what drivers that have ended, also those of an earlier runner, left to remove."""
        for scratch in self._settings.stage_runner_state_folder.resolve().glob(f"*/{SCRATCH}"):
            if not _groups_of(scratch.parent):
                shutil.rmtree(scratch, ignore_errors=True)

    def _follow(self, spec: DriverSpec, process: subprocess.Popen[bytes], reader: int) -> None:
        uid, epoch = spec.pipeline_uid, spec.epoch
        with os.fdopen(reader, "rb") as lines:
            for line in lines:
                try:
                    self.events.put(
                        Told(
                            pipeline_uid=uid,
                            epoch=epoch,
                            event=DriverEvent.model_validate_json(line),
                        )
                    )
                except ValidationError as error:
                    logger.error("driver told nonsense", extra={"reason": str(error)})
        exit_code = process.wait()
        end_group(process.pid)
        shutil.rmtree(spec.scratch_folder, ignore_errors=True)
        if self._processes.get(uid) is process:
            del self._processes[uid]
        self.events.put(Ended(pipeline_uid=uid, epoch=epoch, exit_code=exit_code))

    def _folder(self, pipeline_uid: str) -> Path:
        return self._settings.stage_runner_state_folder.resolve() / pipeline_uid

    def _spec(
        self,
        record: PipelineRecord,
        lease: Lease,
        *,
        run_id: str,
        closing: tuple[StageDefinition, ...],
    ) -> DriverSpec:
        settings = self._settings
        return DriverSpec(
            tenant=record.tenant,
            pipeline_uid=record.pipeline_uid,
            pipeline=record.name,
            generation=record.generation,
            epoch=lease.epoch,
            lifecycle_id=lease.lifecycle_id,
            run_id=run_id,
            manifest=record.manifest,
            stages=record.stages,
            topic_prefix=settings.topic_prefix,
            checkpoint_folder=self._folder(record.pipeline_uid) / "checkpoints",
            lakehouse_folder=settings.stage_runner_lakehouse.resolve(),
            java=settings.stage_runner_java,
            spark_jars=settings.stage_runner_spark_jars,
            spark_archives=settings.stage_runner_spark_archives,
            scratch_folder=self._folder(record.pipeline_uid) / SCRATCH / run_id,
            spark=_spark_place(settings),
            batch_bytes_max=settings.stage_runner_batch_bytes_max,
            topic_absent_s=settings.stage_runner_topic_absent_s,
            sql_guard=settings.stage_runner_sql_guard,
            closing=closing,
        )


def _spark_place(settings: Settings) -> SparkPlace:
    file = settings.spark_conf_file
    return SparkPlace(
        master=settings.spark_master,
        cores_max=settings.spark_cores_max,
        executor_memory=settings.spark_executor_memory,
        driver_host=settings.spark_driver_host,
        driver_port=settings.spark_driver_port,
        conf_file=None if file is None else file.resolve(),
    )


def _end_left(folder: Path) -> None:
    """The driver of a runner that was killed may still be ending: it must be gone first."""
    deadline = time.monotonic() + LEFT_TIMEOUT_S
    for group in _groups_of(folder):
        while not emptied(group):
            if time.monotonic() > deadline:
                raise Retryable(f"processes of an earlier driver do not end: group {group}")


def _groups_of(folder: Path) -> set[int]:
    """The process groups of drivers that run from this folder, whoever has started them."""
    return groups_with(lambda argument: _of_driver(argument, folder))


def _of_driver(argument: str, folder: Path) -> bool:
    """The driver is given its spec, and its JVM the scratch folder; nobody else is."""
    return argument == str(folder / SPEC) or f"{folder / SCRATCH}{os.sep}" in argument
