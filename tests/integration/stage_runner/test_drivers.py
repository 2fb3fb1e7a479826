"""What the pool makes of drivers that end, do not start or were left behind: real processes."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from builders import UID, applied, make_record
from integration.waiting import eventually
from waybill_shared.contract.commands import StopMode
from waybill_shared.contract.errors import Retryable
from waybill_stage_runner.adapters import groups
from waybill_stage_runner.adapters.driver_reports import (
    EndReport,
    PoolReport,
    QueueReport,
    RunReport,
)
from waybill_stage_runner.adapters.drivers import DRIVERS, SPEC, DriverPool
from waybill_stage_runner.adapters.processes import HOME, PROGRAM, RUNS
from waybill_stage_runner.app.ports import Checked, Lease
from waybill_stage_runner.settings import Settings

WAIT_S = 120.0  # the real driver imports Spark first, beside whatever else runs here
LEASE = Lease(epoch=1, lifecycle_id="L1")
STAND_IN = (sys.executable, str(Path(__file__).with_name("stand_in.py")))


class Pool:
    """A pool whose news are kept."""

    def __init__(
        self, folder: Path, program: Sequence[str] = STAND_IN, *, spares: int = 0, starts: int = 2
    ) -> None:
        settings = Settings(
            stage_runner_state_folder=folder,
            stage_runner_spare_drivers=spares,
            stage_runner_starts=starts,
        )
        self.folder = folder
        self.drivers = DriverPool(settings, program)
        self.news: list[PoolReport] = []

    def start(self, uid: str = UID) -> None:
        self.drivers.start(make_record(uid=uid), LEASE, urgent=True)

    def heard(self, kind: type[PoolReport]) -> list[PoolReport]:
        self.news += self.drivers.receive()
        return [each for each in self.news if isinstance(each, kind)]

    def said(self, kind: str) -> bool:
        return any(isinstance(n, RunReport) and n.event.kind == kind for n in self.heard(RunReport))

    def runs(self) -> bool:
        return self.said("running")

    def ended(self) -> bool:
        return bool(self.heard(EndReport))

    def living(self) -> list[Path]:
        """Folders of the drivers whose process is there."""
        self.news += self.drivers.receive()
        homes = self.folder.glob(f"{DRIVERS}/*/{HOME}")
        return [home.parent for home in homes if groups.groups_with(str(home).__eq__)]


@pytest.fixture
def pools(tmp_path: Path) -> Iterator[list[Pool]]:
    """Those that end with the test."""
    made: list[Pool] = []
    yield made
    for pool in made:
        pool.drivers.stop_all(WAIT_S)


@pytest.fixture
def pool(tmp_path: Path, pools: list[Pool]) -> Pool:
    pools.append(Pool(tmp_path))
    return pools[-1]


def wait(what: Callable[[], object]) -> None:
    eventually(lambda: bool(what()), within_s=WAIT_S)


def test_a_run_that_is_stopped_ends_and_its_driver_takes_the_next(
    tmp_path: Path, pools: list[Pool]
) -> None:
    pool = Pool(tmp_path, spares=1, starts=1)
    pools.append(pool)
    pool.start()
    wait(pool.runs)
    (note,) = tmp_path.glob(f"{DRIVERS}/*/{RUNS}/{UID}")
    pool.drivers.stop(UID, StopMode.CHECKPOINT)
    wait(pool.ended)
    pool.news.clear()
    pool.start("other")
    wait(pool.runs)
    assert note.with_name("other").exists()
    assert not note.exists()


def test_spare_is_there_before_anybody_asks_and_again_when_it_was_taken(
    tmp_path: Path, pools: list[Pool]
) -> None:
    pool = Pool(tmp_path, spares=1)
    pools.append(pool)
    wait(lambda: len(pool.living()) == 1)
    pool.start()
    wait(pool.runs)
    wait(lambda: len(pool.living()) == 2)


def test_check_finds_its_way_to_a_driver_and_back(pool: Pool) -> None:
    pool.drivers.check("c1", UID, applied())
    wait(lambda: pool.heard(Checked))
    assert pool.heard(Checked) == [Checked(check_id="c1")]


def test_check_that_ends_its_driver_twice_has_failed(tmp_path: Path, pools: list[Pool]) -> None:
    ending = (sys.executable, "-c", "pass")
    pool = Pool(tmp_path, ending)
    pools.append(pool)
    pool.drivers.check("c1", UID, applied())
    wait(lambda: pool.heard(Checked))
    assert pool.heard(Checked) == [Checked(check_id="c1", failed="driver_exited")]


def test_run_whose_driver_does_not_start_is_over_and_says_why(
    tmp_path: Path, pools: list[Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real one, in a place without Java."""
    monkeypatch.setenv("WAYBILL_STAGE_RUNNER_JAVA", str(tmp_path / "java"))
    pool = Pool(tmp_path, PROGRAM)
    pools.append(pool)
    pool.start()
    wait(pool.ended)
    said = [each.event.error for each in pool.news if isinstance(each, RunReport)]
    assert any(error is not None and error.message for error in said)
    assert b"driver begins" in (tmp_path / UID / "driver.log").read_bytes()


def test_who_comes_when_enough_drivers_start_waits_in_line(
    tmp_path: Path, pools: list[Pool]
) -> None:
    pool = Pool(tmp_path, starts=1)
    pools.append(pool)
    for uid in ("one", "two", "three"):
        pool.start(uid)
    waits = {
        each.pipeline_uid: each.queue_position
        for each in pool.heard(QueueReport)
        if isinstance(each, QueueReport)
    }
    assert waits == {"two": 1, "three": 2}
    wait(lambda: sum(isinstance(n, RunReport) for n in pool.heard(RunReport)) == 3)


def test_killed_driver_leaves_nothing_in_any_folder(pool: Pool) -> None:
    pool.start()
    wait(pool.runs)
    (folder,) = pool.living()
    (folder / "tmp" / "blockmgr-1").mkdir()
    pool.drivers.stop(UID, StopMode.FORCE)
    wait(pool.ended)
    assert not folder.exists()


def test_a_driver_that_was_left_behind_is_gone_before_the_next_one_starts(
    pool: Pool, tmp_path: Path
) -> None:
    left_folder = left_driver(tmp_path, UID)
    with stopped_process(str(left_folder / HOME)) as left:
        pool.start()
        assert left.wait(WAIT_S) == -signal.SIGKILL  # a parent hears of it a moment later


def test_a_jvm_whose_driver_is_gone_is_ended_too(pool: Pool, tmp_path: Path) -> None:
    left_folder = left_driver(tmp_path, UID)
    with stopped_process(f"-Djava.io.tmpdir={left_folder / 'tmp'}") as left:
        pool.start()
        assert left.wait(WAIT_S) == -signal.SIGKILL  # a parent hears of it a moment later


def test_who_only_looks_into_a_folder_is_left_alone(pool: Pool, tmp_path: Path) -> None:
    left_folder, neighbour_folder = left_driver(tmp_path, UID), left_driver(tmp_path, "other")
    with (
        stopped_process(str(left_folder / "driver.log")) as reader,
        stopped_process(str(left_folder)) as other,
        stopped_process(str(neighbour_folder / HOME)) as neighbour,
    ):
        pool.start()
        assert (reader.poll(), other.poll(), neighbour.poll()) == (None, None, None)


def test_what_drivers_of_a_killed_runner_left_is_removed_but_not_what_one_uses(
    pool: Pool, tmp_path: Path
) -> None:
    ended, running = left_driver(tmp_path, "ended"), left_driver(tmp_path, "running")
    with stopped_process(str(running / HOME)):
        pool.drivers.sweep()
        assert not ended.exists()
        assert running.exists()


def test_a_process_that_does_not_end_is_told_of_and_waited_for(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The end of the run is told all the same, as soon as the kernel lets go of it."""
    pool.start()
    wait(pool.runs)
    held = threading.Event()
    monkeypatch.setattr(groups, "SAY_S", 0.05)
    monkeypatch.setattr(groups, "_members", lambda group: [] if held.is_set() else [group])
    pool.drivers.stop(UID, StopMode.FORCE)
    eventually(lambda: "processes do not end" in caplog.text, within_s=WAIT_S)
    assert not pool.ended()
    held.set()
    wait(pool.ended)
    caplog.clear()


def test_a_folder_that_cannot_be_written_is_tried_again(pool: Pool, tmp_path: Path) -> None:
    (tmp_path / UID / SPEC).mkdir(parents=True)
    with pytest.raises(Retryable, match="cannot be written"):
        pool.start()


def test_a_paused_driver_holds_nobody_up(pool: Pool) -> None:
    """What it is told waits in its pipe; to kill it needs nothing of it."""
    pool.start()
    wait(pool.runs)
    (folder,) = pool.living()
    (group,) = groups.groups_with(str(folder / HOME).__eq__)
    psutil.Process(group).suspend()
    for _ in range(100):
        pool.drivers.stop(UID, StopMode.CHECKPOINT)
    pool.drivers.stop(UID, StopMode.FORCE)
    wait(pool.ended)


def left_driver(state_folder: Path, uid: str) -> Path:
    """The folder of a driver that an earlier runner has started for this pipeline."""
    folder = state_folder / DRIVERS / f"earlier-{uid}"
    (folder / RUNS).mkdir(parents=True)
    (folder / RUNS / uid).touch()
    return folder


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
