"""A driver that the system stops (SIGSTOP), in each phase where one lives: nobody has to help.

`test_hanging_batch` has the same of `Running`.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import Pipeline, order, orders_manifest
from e2e.load import numbers_in, numbers_of
from e2e.test_ending_pipelines import NOW, Ending
from e2e.waiting import eventually, group_of
from waybill import Client
from waybill.models import Operation, StopMode
from waybill_local import stack
from waybill_local.stack import Options, StackState
from waybill_shared.kafka.admin import make_admin
from waybill_shared.process.failpoints import FOLDER, REACHED

WAIT_S = 180.0
PART = 5
USUAL, MOST = 2, 4
SETTINGS = {
    "STALL_S": "10",  # twice that for a driver that reports nothing
    "START_LIMIT_S": "45",  # a cold driver on a loaded machine begins within that
    "DRAIN_LIMIT_S": "4",
    "CHECKPOINT_LIMIT_S": "8",
    "FINISH_LIMIT_S": "8",
    "PARALLELISM_MAX": f"{MOST}",
}
STOPPING = {"Stopping", "Draining", "CheckpointStopping"}
RESTARTING = {"Stopping", "Restarting"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    state: StackState
    failpoints: Path
    client: Client
    pipeline: Pipeline
    tokens: list[str]

    @property
    def name(self) -> str:
        return self.pipeline.name

    @property
    def uid(self) -> str:
        return str(self.client.pipeline(self.name).uid)

    @property
    def catalog(self) -> SqlCatalog:
        uri = f"sqlite:///{self.state.folder / 'lakehouse' / 'catalog.db'}"
        return SqlCatalog("lakehouse", uri=uri)

    def send(self) -> None:
        first = PART * len(self.tokens)
        rows = [order(number) for number in range(first, first + PART)]
        self.tokens.append(self.client.send(self.name, "orders", rows).token)

    def arm(self, point: str) -> Path:
        """Return the file that is there when somebody is at the point."""
        (self.failpoints / point).touch()
        return self.failpoints / f"{point}{REACHED}"

    def hold_batch(self) -> None:
        reached = self.arm(f"{self.uid}.enrich.before_read")
        self.send()
        eventually(reached.exists, within_s=WAIT_S)

    def stop_driver(self, uid: str) -> int:
        """All of its processes; what holds it is over, so that only that is why it does nothing."""
        group = group_of(self.state, uid)
        assert group is not None
        os.killpg(group, signal.SIGSTOP)
        for reached in self.failpoints.glob(f"*{REACHED}"):
            reached.unlink()
        return group

    def await_other(self, group: int) -> None:
        """The driver that was stopped is gone, and its pipeline runs in another one."""
        eventually(lambda: group_of(self.state, self.uid) not in (None, group), within_s=WAIT_S)

    def done(self, operation: Operation) -> Operation:
        found = self.client.operation(operation.id, wait_s=WAIT_S)
        assert found.state == "done", found.errors
        return found

    def await_phase(self, *phases: str) -> None:
        eventually(lambda: self.client.pipeline(self.name).phase in phases, within_s=WAIT_S)

    def assert_once(self) -> None:
        """It runs. All tokens become complete, and each row is in both sinks once."""
        self.send()
        merged = self.client.merge(self.tokens)
        assert self.client.wait(merged, timeout_s=WAIT_S).kind == "complete"
        once = Counter(range(PART * len(self.tokens)))
        assert Counter(numbers_in(self.state, f"{self.name}.enriched")) == once
        assert Counter(numbers_of(self.catalog, self.pipeline.table)) == once


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("stack")
    failpoints = folder / "failpoints"
    failpoints.mkdir()
    settings = {f"WAYBILL_STAGE_RUNNER_{name}": value for name, value in SETTINGS.items()}
    environment = {**os.environ, **settings, FOLDER: str(failpoints)}
    options = Options(gateway_port=0, kafka_port=0, valkey_port=0)
    reports: list[stack.Report] = []
    try:
        state = stack.up(
            folder, reports.append, options=options, tied=True, environment=environment
        )
        with Client(state.url) as client:
            text, pipeline = orders_manifest()
            site = Site(
                state=state, failpoints=failpoints, client=client, pipeline=pipeline, tokens=[]
            )
            site.done(client.apply(text))
            site.assert_once()
            yield site
    finally:
        stack.down(folder, reports.append)


@pytest.mark.timeout(480)
def test_a_driver_that_is_stopped_while_it_starts_is_replaced(site: Site) -> None:
    site.done(site.client.stop(site.name))
    reached = site.arm(f"{site.uid}.after_put")
    start = site.client.start(site.name, wait_s=0)
    eventually(reached.exists, within_s=WAIT_S)
    site.await_phase("Starting")
    group = site.stop_driver(site.uid)
    site.done(start)
    site.await_other(group)
    site.assert_once()


@pytest.mark.timeout(480)
def test_a_driver_that_is_stopped_in_a_pause_is_replaced_by_one_that_is_paused(site: Site) -> None:
    site.done(site.client.pause(site.name))
    site.await_phase("Paused")
    group = site.stop_driver(site.uid)
    site.send()
    site.await_other(group)
    site.await_phase("Paused")
    assert site.client.outcome(site.tokens[-1]).kind == "in_progress"
    site.done(site.client.resume(site.name))
    site.assert_once()


@pytest.mark.timeout(480)
@pytest.mark.parametrize("mode", ["drain", "checkpoint"])
def test_a_driver_that_is_stopped_while_it_stops_is_killed(site: Site, mode: StopMode) -> None:
    site.hold_batch()
    stop = site.client.stop(site.name, mode, wait_s=0)
    site.await_phase(*STOPPING)
    site.stop_driver(site.uid)
    assert site.done(stop).warnings, "its last batch did not end"
    site.await_phase("Stopped")
    assert group_of(site.state, site.uid) is None
    assert site.client.outcome(site.tokens[-1]).kind == "in_progress"
    site.done(site.client.start(site.name))
    site.assert_once()


def restart(site: Site) -> Operation:
    return site.client.restart(site.name, wait_s=0)


def rescale(site: Site) -> Operation:
    return site.client.rescale(site.name, MOST, wait_s=0)


@pytest.mark.timeout(480)
@pytest.mark.parametrize(
    ("change", "phases", "parallelism"),
    [(restart, RESTARTING, USUAL), (rescale, {"Rescaling"}, MOST)],
    ids=["Restarting", "Rescaling"],
)
def test_a_driver_that_is_stopped_while_another_is_to_follow_is_replaced(
    site: Site, change: Callable[[Site], Operation], phases: set[str], parallelism: int
) -> None:
    site.hold_batch()
    asked = change(site)
    site.await_phase(*phases)
    group = site.stop_driver(site.uid)
    site.done(asked)
    site.await_other(group)
    assert site.client.pipeline(site.name).parallelism == parallelism
    site.assert_once()


@pytest.mark.timeout(480)
def test_a_driver_that_is_stopped_when_all_is_read_is_killed_and_its_run_has_finished(
    site: Site,
) -> None:
    kafka = make_admin(site.state.kafka)
    ending = Ending(site.client, site.state, kafka, site.catalog, NOW)
    token = ending.send()
    reached = site.arm(f"{ending.uid}.after_finished")
    ending.done(site.client.start(ending.name))
    eventually(reached.exists, within_s=WAIT_S)
    eventually(lambda: site.client.pipeline(ending.name).phase == "Finishing", within_s=WAIT_S)
    site.stop_driver(ending.uid)
    ending.finish()
    ending.assert_once(token)
    assert group_of(site.state, ending.uid) is None
    assert [run.end for run in site.client.runs(ending.name)] == ["finished"]
