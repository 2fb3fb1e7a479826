"""A second driver of a pipeline, which takes over while its first stands still."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from e2e import waiting
from e2e.every_sink import WAIT_S
from waybill_local.stack import StackState, read_state
from waybill_shared.contract.driver import DriverEvent, DriverHome, RunOrder, RunSpec

STOP_TIMEOUT_S = 30.0


class SecondDriver:
    """Started by hand as the first was by its runner, as if that one were believed to be dead."""

    def __init__(
        self, home: DriverHome, spec: Path, environment: dict[str, str], folder: Path
    ) -> None:
        own_home, self._told = folder / "home.json", folder / "told"
        # As on another host: the runner finds its drivers by their folders.
        own = home.model_copy(update={"folder": folder})
        own.scratch.mkdir()
        own_home.write_text(own.model_dump_json())
        run = RunOrder(spec=RunSpec.model_validate_json(spec.read_text()))
        with self._told.open("ab") as told, (folder / "driver.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "waybill_spark.driver", str(own_home)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(told.fileno(),),
                env={**environment, "WAYBILL_DRIVER_EVENTS_FD": str(told.fileno())},
                start_new_session=True,
            )
        assert self.process.stdin is not None
        self.process.stdin.write(run.model_dump_json().encode() + b"\n")
        self.process.stdin.flush()

    def told(self) -> list[DriverEvent]:
        lines = self._told.read_text().splitlines()
        return [DriverEvent.model_validate_json(line) for line in lines]

    def runs(self) -> bool:
        return any(event.kind == "running" for event in self.told())

    def ended(self) -> bool:
        return self.process.poll() is not None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(STOP_TIMEOUT_S)
        assert self.process.stdin is not None
        self.process.stdin.close()


def home_of(stack: StackState, uid: str) -> DriverHome:
    """Of its own driver, which has Spark. It may be gone soon after the pipeline was stopped."""
    home, *_ = waiting.homes_of(stack, uid)
    return DriverHome.model_validate_json(home.read_text())


@contextmanager
def second_driver(
    stack: StackState, uid: str, folder: Path, home: DriverHome | None = None
) -> Iterator[SecondDriver]:
    spec = stack.folder / "stage_runner" / uid / "spec.json"
    home = home or home_of(stack, uid)
    second = SecondDriver(home, spec, runner_of(stack).environ(), folder)
    try:
        yield second
    finally:
        second.kill()


@contextmanager
def paused(group: int) -> Iterator[None]:
    """All processes of a driver, with those that its JVM may just have started."""
    os.killpg(group, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(group, signal.SIGCONT)


def runner_of(stack: StackState) -> psutil.Process:
    state = read_state(stack.folder)
    assert state is not None
    (pid,) = [process.pid for process in state.processes if process.name == "stage_runner"]
    return psutil.Process(pid)


def leader_of(stack: StackState, uid: str) -> int:
    """Of the runner's own driver: its leader's id."""
    group = waiting.group_of(stack, uid)
    assert group is not None, "it runs"
    return group


def all_end(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=WAIT_S)
    return not alive
