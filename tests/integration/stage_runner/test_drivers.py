"""What is done about processes that the note of an earlier runner names, with real ones."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from builders import UID, make_record
from stage_runner.adapters.drivers import SCRATCH, DriverProcesses, Ended
from stage_runner.settings import StageRunnerSettings

WAIT_S = 30.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of the pipeline, in a runner's state folder."""
    folder = tmp_path / UID
    folder.mkdir()
    return folder


def test_a_driver_that_was_left_behind_is_gone_before_the_next_one_starts(folder: Path) -> None:
    with stopped_process(str(folder / "spec.json")) as left:
        (folder / "group").write_text(str(left.pid))

        start_and_end_driver(folder)

        assert left.poll() == -signal.SIGKILL


def test_a_stranger_that_was_given_the_number_of_an_old_driver_is_left_alone(folder: Path) -> None:
    with stopped_process("of somebody else") as stranger:
        (folder / "group").write_text(str(stranger.pid))

        start_and_end_driver(folder)

        assert stranger.poll() is None


def test_a_killed_driver_leaves_nothing_in_any_temp_folder(folder: Path) -> None:
    drivers = DriverProcesses(StageRunnerSettings(stage_runner_state_folder=folder.parent))
    drivers.start(make_record(), epoch=1, closing=False)
    (scratch,) = (folder / SCRATCH).iterdir()
    (scratch / "blockmgr-1").mkdir()
    drivers.stop(UID, force=True)
    assert isinstance(drivers.events.get(timeout=WAIT_S), Ended)
    assert not scratch.exists()


def test_what_drivers_of_a_killed_runner_left_is_removed_but_not_what_one_uses(
    folder: Path,
) -> None:
    ended, running = folder.parent / "ended" / SCRATCH / "1", folder / SCRATCH / "1"
    ended.mkdir(parents=True)
    running.mkdir(parents=True)
    with stopped_process(str(folder / "spec.json")) as left:
        (folder / "group").write_text(str(left.pid))
        DriverProcesses(StageRunnerSettings(stage_runner_state_folder=folder.parent)).sweep()
        assert not ended.exists()
        assert running.exists()


def start_and_end_driver(folder: Path) -> None:
    drivers = DriverProcesses(StageRunnerSettings(stage_runner_state_folder=folder.parent))
    drivers.start(make_record(), epoch=1, closing=False)
    drivers.stop(UID, force=True)
    assert isinstance(drivers.events.get(timeout=WAIT_S), Ended)


@contextmanager
def stopped_process(argument: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The leader of a group of its own, which nothing but SIGKILL can end."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)", argument], start_new_session=True
    )
    process.send_signal(signal.SIGSTOP)
    try:
        yield process
    finally:
        process.kill()
        process.wait(WAIT_S)
