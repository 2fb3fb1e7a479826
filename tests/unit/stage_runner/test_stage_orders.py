"""Stages that are stopped: a run is given them, and its driver gets the orders to start them."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders import NOW, UID, make_record
from unit.stage_runner.test_driver_pool import Processes
from waybill_shared.contract.driver import Order, RunOrder, StartStagesOrder
from waybill_shared.contract.stopped_stages import StoppedStage
from waybill_stage_runner.adapters.drivers import DriverPool
from waybill_stage_runner.app.ports import Lease
from waybill_stage_runner.settings import Settings

NAMES = ("load", "enrich")
STOPPED = tuple(
    StoppedStage(stage=name, since=1, at=NOW, run=1, message="no", hint="") for name in NAMES
)
RECORD = replace(make_record(), stopped_stages=STOPPED)
LEASE = Lease(epoch=1, lifecycle_id="l")


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> DriverPool:
    monkeypatch.setattr("waybill_stage_runner.adapters.drivers.DriverProcesses", Processes)
    settings = Settings(stage_runner_state_folder=tmp_path, stage_runner_spare_drivers=0)
    return DriverPool(settings)


def orders(pool: DriverPool) -> list[Order]:
    processes = pool._processes
    assert isinstance(processes, Processes)
    return [order for _, order in processes.orders]


def gets_a_driver(pool: DriverPool) -> None:
    processes = pool._processes
    assert isinstance(processes, Processes)
    processes.says(processes.started[0], "ready")
    list(pool.receive())


def test_a_run_leaves_out_what_the_record_stops(pool: DriverPool) -> None:
    pool.start(RECORD, LEASE)
    gets_a_driver(pool)
    (run,) = orders(pool)
    assert isinstance(run, RunOrder)
    assert run.spec.stopped == NAMES


def test_a_run_without_a_driver_begins_with_a_stage_that_is_started(pool: DriverPool) -> None:
    pool.start(RECORD, LEASE)
    pool.start_stages(UID, ("load",), order=1)
    gets_a_driver(pool)
    (run,) = orders(pool)
    assert isinstance(run, RunOrder)
    assert run.spec.stopped == ("enrich",)


def test_the_driver_of_a_run_gets_the_order(pool: DriverPool) -> None:
    pool.start(RECORD, LEASE)
    gets_a_driver(pool)
    pool.start_stages(UID, ("load",), order=1)
    run, start = orders(pool)
    assert isinstance(run, RunOrder)
    assert start == StartStagesOrder(run_id=run.spec.run_id, stages=("load",), number=1)


def test_a_run_that_has_ended_gets_no_order(pool: DriverPool) -> None:
    pool.start_stages(UID, ("load",), order=1)
    assert orders(pool) == []
