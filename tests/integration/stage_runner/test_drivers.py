"""What is done about processes that an earlier runner left, with real ones."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from builders import UID, make_record
from integration.waiting import eventually
from waybill_shared.contract.errors import Retryable
from waybill_stage_runner.adapters import groups
from waybill_stage_runner.adapters.drivers import (
    SCRATCH,
    SPEC,
    DriverProcesses,
    Ended,
)
from waybill_stage_runner.app.ports import Lease
from waybill_stage_runner.settings import Settings

WAIT_S = 30.0
LEASE = Lease(epoch=1, lifecycle_id="L1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of the pipeline, in a runner's state folder."""
    folder = tmp_path / UID
    folder.mkdir()
    return folder


def test_a_driver_that_was_left_behind_is_gone_before_the_next_one_starts(folder: Path) -> None:
    with stopped_process(str(folder / SPEC)) as left:
        start_and_end_driver(folder)
        assert left.poll() == -signal.SIGKILL


def test_a_jvm_whose_driver_is_gone_is_ended_too(folder: Path) -> None:
    with stopped_process(f"-Djava.io.tmpdir={folder / SCRATCH / '1'}") as left:
        start_and_end_driver(folder)
        assert left.poll() == -signal.SIGKILL


def test_who_only_looks_into_the_folder_is_left_alone(folder: Path) -> None:
    with (
        stopped_process(str(folder / "driver.log")) as reader,
        stopped_process(str(folder)) as other,
        stopped_process(str(folder.with_name(f"{folder.name}2") / SPEC)) as neighbour,
    ):
        start_and_end_driver(folder)
        assert (reader.poll(), other.poll(), neighbour.poll()) == (None, None, None)


@pytest.mark.parametrize("note", ["", "\0\0", "17 x"])
def test_a_damaged_note_of_an_earlier_version_stops_no_runner(folder: Path, note: str) -> None:
    (folder / "group").write_text(note)
    (folder / SCRATCH).mkdir()
    DriverProcesses(Settings(stage_runner_state_folder=folder.parent)).sweep()
    assert not (folder / SCRATCH).exists()
    start_and_end_driver(folder)


def test_a_process_that_does_not_end_is_told_of_and_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The end of the driver is told all the same, as soon as the kernel lets go of it."""
    held = threading.Event()
    monkeypatch.setattr(groups, "SAY_S", 0.05)
    monkeypatch.setattr(groups, "_members", lambda group: [] if held.is_set() else [group])
    drivers = DriverProcesses(Settings(stage_runner_state_folder=folder.parent))
    drivers.start(make_record(), LEASE)
    drivers.stop(UID, force=True)
    eventually(lambda: "processes do not end" in caplog.text, within_s=WAIT_S)
    assert drivers.events.empty()
    held.set()
    assert isinstance(drivers.events.get(timeout=WAIT_S), Ended)
    caplog.clear()


def test_a_folder_that_cannot_be_written_is_tried_again(folder: Path) -> None:
    (folder / SPEC).mkdir()
    drivers = DriverProcesses(Settings(stage_runner_state_folder=folder.parent))
    with pytest.raises(Retryable, match="cannot be written"):
        drivers.start(make_record(), LEASE)


def test_a_killed_driver_leaves_nothing_in_any_temp_folder(folder: Path) -> None:
    drivers = DriverProcesses(Settings(stage_runner_state_folder=folder.parent))
    drivers.start(make_record(), LEASE)
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
    with stopped_process(str(folder / SPEC)):
        DriverProcesses(Settings(stage_runner_state_folder=folder.parent)).sweep()
        assert not ended.exists()
        assert running.exists()


def start_and_end_driver(folder: Path) -> None:
    drivers = DriverProcesses(Settings(stage_runner_state_folder=folder.parent))
    drivers.start(make_record(), LEASE)
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
