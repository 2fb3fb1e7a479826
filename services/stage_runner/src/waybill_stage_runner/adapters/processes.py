"""Driver processes: a process group and a folder for each, started from the main thread.

Their reports, and the end of each, arrive in `events`, in order, for the main loop.
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
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from waybill_shared.contract.driver import SCRATCH, DriverEvent, DriverHome, Order
from waybill_shared.contract.errors import Retryable
from waybill_stage_runner.adapters.groups import (
    dump_threads,
    end_group,
    groups_with,
    is_empty,
    signal_group,
)

logger = logging.getLogger(__name__)

PROGRAM: Final = (sys.executable, "-P", "-m", "waybill_spark.driver")
HOME: Final = "home.json"
LOG: Final = "driver.log"
RUNS: Final = "runs"  # in a driver's folder: an empty file for each pipeline that it runs
LEFT_TIMEOUT_S: Final = 2.0  # for what an earlier runner left; then others are served


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverMessage:
    driver_id: str
    event: DriverEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExited:
    """The end of a driver: no process of its group is left."""

    driver_id: str
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Driver:
    process: subprocess.Popen[bytes]
    orders: "queue.SimpleQueue[bytes | None]" = field(default_factory=queue.SimpleQueue)


class DriverProcesses:
    def __init__(self, folder: Path, program: Sequence[str] = PROGRAM) -> None:
        """Keep `folder`: the folder of all drivers, including those of other runners on this
        machine.
        """
        self.events: queue.SimpleQueue[DriverMessage | ProcessExited] = queue.SimpleQueue()
        self._folder = folder
        self._program = program
        self._runner = uuid.uuid4().hex[:8]  # makes the ids of drivers unique to this runner
        self._drivers: dict[str, _Driver] = {}

    def folder_of(self, driver_id: str) -> Path:
        return self._folder / f"{self._runner}-{driver_id}"

    def start(self, driver_id: str, home: DriverHome) -> None:
        """Start a driver process and the threads that send its orders and read its reports.

        Raises Retryable.
        """
        file = home.folder / HOME
        try:
            home.scratch.mkdir(parents=True)
            (home.folder / RUNS).mkdir()
            file.write_text(home.model_dump_json())
            reader, writer = os.pipe()
            with (home.folder / LOG).open("ab") as log:
                process = subprocess.Popen(
                    [*self._program, str(file)],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    pass_fds=(writer,),
                    env={
                        **os.environ,
                        "WAYBILL_DRIVER_EVENTS_FD": str(writer),
                        "TMPDIR": str(home.scratch),
                    },
                    start_new_session=True,
                )
        except OSError as error:
            raise Retryable(f"a driver cannot be started in {home.folder}: {error}") from error
        os.close(writer)
        driver = _Driver(process=process)
        self._drivers[driver_id] = driver
        threading.Thread(target=_write_orders, args=(driver,), daemon=True).start()
        threading.Thread(target=self._follow, args=(driver_id, driver, reader), daemon=True).start()

    def note_run(self, driver_id: str, pipeline_uid: str) -> None:
        """Note in a file that the driver runs this pipeline, for a runner that starts after this
        one.

        Raises Retryable.
        """
        try:
            (self.folder_of(driver_id) / RUNS / pipeline_uid).touch()
        except OSError as error:
            raise Retryable(f"a driver's folder cannot be written: {error}") from error

    def forget_run(self, driver_id: str, pipeline_uid: str) -> None:
        (self.folder_of(driver_id) / RUNS / pipeline_uid).unlink(missing_ok=True)

    def send(self, driver_id: str, order: Order) -> None:
        """Queue an order for the driver. Never waits, because a driver may be paused."""
        driver = self._drivers.get(driver_id)
        if driver is not None:
            driver.orders.put(order.model_dump_json().encode() + b"\n")

    def kill(self, driver_id: str) -> None:
        driver = self._drivers.get(driver_id)
        if driver is not None:
            signal_group(driver.process.pid, signal.SIGKILL, whole=True)

    def dump_threads(self, driver_id: str) -> None:
        """Let Python and the JVM of a driver write where their threads are, to its output."""
        driver = self._drivers.get(driver_id)
        if driver is None:
            return
        scratch = str(self.folder_of(driver_id) / SCRATCH)
        dump_threads(driver.process.pid, jvm=lambda argument: scratch in argument)

    def log_of(self, driver_id: str) -> bytes:
        """Return the driver's log, also after it has ended."""
        try:
            return (self.folder_of(driver_id) / LOG).read_bytes()
        except OSError:
            return b""

    def forget(self, driver_id: str) -> None:
        """Forget a driver that has ended, and delete its folder."""
        self._drivers.pop(driver_id, None)
        shutil.rmtree(self.folder_of(driver_id), ignore_errors=True)

    @property
    def living(self) -> Iterable[str]:
        return list(self._drivers)

    def end_left(self, pipeline_uid: str) -> None:
        """End the driver that a killed runner left for this pipeline.

        Raises Retryable if its processes do not end in time.
        """
        deadline = time.monotonic() + LEFT_TIMEOUT_S
        for note in self._folder.glob(f"*/{RUNS}/{pipeline_uid}"):
            folder = note.parent.parent
            for group in _groups_of(folder):
                while not is_empty(group):
                    if time.monotonic() > deadline:
                        what = f"processes of an earlier driver do not end: group {group}"
                        raise Retryable(what)
            note.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Delete the folders that ended drivers left, including those of an earlier runner."""
        for folder in self._folder.glob("*"):
            remove_left(folder)

    def _follow(self, driver_id: str, driver: _Driver, reader: int) -> None:
        with os.fdopen(reader, "rb") as lines:
            for line in lines:
                try:
                    event = DriverEvent.model_validate_json(line)
                except ValidationError as error:
                    logger.error("driver sent what nobody knows", extra={"reason": str(error)})
                    continue
                self.events.put(DriverMessage(driver_id=driver_id, event=event))
        exit_code = driver.process.wait()
        driver.orders.put(None)
        end_group(driver.process.pid)
        self.events.put(ProcessExited(driver_id=driver_id, exit_code=exit_code))


def _write_orders(driver: _Driver) -> None:
    """Write the orders to the driver, for as long as it reads them."""
    assert driver.process.stdin is not None
    with suppress(BrokenPipeError), driver.process.stdin as lines:  # its end is reported separately
        while (line := driver.orders.get()) is not None:
            lines.write(line)
            lines.flush()


def remove_left(folder: Path) -> None:
    """Delete the folder, unless processes still work in it."""
    if not _groups_of(folder):
        shutil.rmtree(folder, ignore_errors=True)


def _groups_of(folder: Path) -> set[int]:
    """Return the groups of the driver in this folder and of its JVM.

    Only they have these arguments: the driver its home file, its JVM the scratch folder.
    """
    home, inside = str(folder / HOME), f"{folder / SCRATCH}{os.sep}"
    return groups_with(lambda argument: argument == home or inside in f"{argument}{os.sep}")
