"""Which answers of which driver the pool takes for the answer to a check."""

import queue
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from builders import UID, applied, make_record
from waybill_shared.contract.driver import CheckOrder, DriverEvent, DriverHome, Order
from waybill_stage_runner.adapters.drivers import DriverPool
from waybill_stage_runner.adapters.processes import DriverMessage, ProcessExited
from waybill_stage_runner.app.ports import Checked, Lease
from waybill_stage_runner.settings import Settings

CHECK = CheckOrder(check_id="c1", pipeline_uid=UID, manifest=applied())


class Processes:
    """Drivers that say what a test says."""

    def __init__(self, folder: Path, program: Sequence[str]) -> None:
        self.events: queue.SimpleQueue[DriverMessage | ProcessExited] = queue.SimpleQueue()
        self.orders: list[tuple[str, Order]] = []
        self.started: list[str] = []
        self.killed: list[str] = []

    def folder_of(self, driver_id: str) -> Path:
        return Path(driver_id)

    def start(self, driver_id: str, home: DriverHome) -> None:
        self.started.append(driver_id)

    def note_run(self, driver_id: str, pipeline_uid: str) -> None: ...

    def end_left(self, pipeline_uid: str) -> None: ...

    def send(self, driver_id: str, order: Order) -> None:
        self.orders.append((driver_id, order))

    def kill(self, driver_id: str) -> None:
        self.killed.append(driver_id)

    def says(
        self,
        driver_id: str,
        kind: Literal["ready", "checking", "checked", "running", "blocked"],
        check_id: str | None = None,
    ) -> None:
        event = DriverEvent(kind=kind, check_id=check_id)
        self.events.put(DriverMessage(driver_id=driver_id, event=event))


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> DriverPool:
    monkeypatch.setattr("waybill_stage_runner.adapters.drivers.DriverProcesses", Processes)
    settings = Settings(stage_runner_state_folder=tmp_path, stage_runner_spare_drivers=0)
    return DriverPool(settings)


@pytest.fixture
def processes(pool: DriverPool) -> Processes:
    """Driver 1 has the check."""
    processes = pool._processes
    assert isinstance(processes, Processes)
    pool.check(CHECK.check_id, UID, CHECK.manifest)
    processes.says("1", "ready")
    assert list(pool.receive()) == []
    assert processes.orders == [("1", CHECK)]
    return processes


def test_a_check_is_answered_once(pool: DriverPool, processes: Processes) -> None:
    for _ in range(2):
        processes.says("1", "checked", "c1")
    assert list(pool.receive()) == [Checked(check_id="c1")]


def test_a_check_may_tell_the_columns_before(pool: DriverPool, processes: Processes) -> None:
    pool.check("c2", UID, applied("now"), for_run=False, before=applied("before"))
    processes.says("1", "checked", "c1")
    list(pool.receive())
    assert processes.orders[-1] == (
        "1",
        CheckOrder(
            check_id="c2", pipeline_uid=UID, manifest=applied("now"), before=applied("before")
        ),
    )
    columns = {"load": {"lake": "`a` int"}}
    event = DriverEvent(kind="checked", check_id="c2", columns_before=columns)
    processes.events.put(DriverMessage(driver_id="1", event=event))
    assert list(pool.receive()) == [Checked(check_id="c2", columns_before=columns)]


def test_a_check_that_is_wanted_anew_is_answered_by_the_driver_that_has_it_now(
    pool: DriverPool, processes: Processes
) -> None:
    """As by a runner that gets its partition back; the first answer was on its way by then."""
    pool.forget_check("c1")
    assert processes.killed == ["1"]
    pool.check(CHECK.check_id, UID, CHECK.manifest)
    processes.says("1", "checked", "c1")
    processes.says("2", "ready")
    assert list(pool.receive()) == []
    assert processes.orders[-1] == ("2", CHECK)
    processes.says("2", "checked", "c1")
    assert list(pool.receive()) == [Checked(check_id="c1")]


def test_a_check_has_its_time_from_when_its_driver_begins_it(
    pool: DriverPool, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What warms the driver up comes first, and takes long on a busy machine."""
    now = time.monotonic_ns
    monkeypatch.setattr(time, "monotonic_ns", lambda: now() + 60_000_000_000)
    assert list(pool.receive()) == []
    processes.says("1", "checking", "c1")
    assert list(pool.receive()) == []
    monkeypatch.setattr(time, "monotonic_ns", lambda: now() + 120_000_000_000)
    assert list(pool.receive()) == [Checked(check_id="c1", failed="deadline")]
    assert processes.killed == ["1"]


@pytest.mark.parametrize("word", ["running", "blocked"])
def test_the_next_driver_starts_when_a_run_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: Literal["running", "blocked"]
) -> None:
    monkeypatch.setattr("waybill_stage_runner.adapters.drivers.DriverProcesses", Processes)
    pool = DriverPool(
        Settings(
            stage_runner_state_folder=tmp_path, stage_runner_spare_drivers=0, stage_runner_starts=1
        )
    )
    processes = pool._processes
    assert isinstance(processes, Processes)
    for uid in ("a", "b"):
        pool.start(make_record(uid=uid), Lease(epoch=1, lifecycle_id="L1"))
    processes.says("1", "ready")
    list(pool.receive())
    assert processes.started == ["1"]
    processes.says("1", word)
    list(pool.receive())
    assert processes.started == ["1", "2"]
