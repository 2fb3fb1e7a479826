"""A run that hangs is shown as degraded, leaves where its threads were, and is started again."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import Pipeline, order, orders_manifest
from e2e.load import numbers_in, numbers_of
from e2e.waiting import drivers_of, eventually, leaders_of
from waybill import Client
from waybill_local import stack
from waybill_local.stack import Options, StackState
from waybill_shared.process.failpoints import FOLDER

WAIT_S = 180.0
STALL_S = 10.0  # a cold batch on a loaded machine does something in half that time
PART = 5
WARM = 5
STAGE = "enrich"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    state: StackState
    failpoints: Path
    client: Client
    pipeline: Pipeline

    @property
    def uid(self) -> str:
        return str(self.client.pipeline(self.pipeline.name).uid)

    @property
    def driver(self) -> psutil.Process:
        (leader,) = leaders_of(self.state, self.uid)
        return leader

    def send(self, part: int) -> str:
        rows = [order(number) for number in range(PART * part, PART * (part + 1))]
        return self.client.send(self.pipeline.name, "orders", rows).token


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("stack")
    failpoints = folder / "failpoints"
    failpoints.mkdir()
    settings = {"WAYBILL_STAGE_RUNNER_STALL_S": f"{STALL_S:g}", FOLDER: str(failpoints)}
    options = Options(gateway_port=0, kafka_port=0, valkey_port=0)
    reports: list[stack.Report] = []
    try:
        environment = {**os.environ, **settings}
        state = stack.up(
            folder, reports.append, options=options, tied=True, environment=environment
        )
        with Client(state.url) as client:
            text, pipeline = orders_manifest()
            done = client.operation(client.apply(text).id, wait_s=WAIT_S)
            assert done.state == "done", done.errors
            site = Site(state=state, failpoints=failpoints, client=client, pipeline=pipeline)
            for part in range(WARM):  # so that what is usual is short
                assert client.wait(site.send(part), timeout_s=WAIT_S).kind == "complete"
            yield site
    finally:
        stack.down(folder, reports.append)


def hang_in_python(site: Site) -> None:
    (site.failpoints / f"{site.uid}.{STAGE}.before_read").touch()


def stop_the_jvm(site: Site) -> None:
    jvm = next(each for each in drivers_of(site.state, site.uid) if each.name() == "java")
    jvm.send_signal(signal.SIGSTOP)


def stop_the_driver(site: Site) -> None:
    site.driver.send_signal(signal.SIGSTOP)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("before", "hang", "stage", "cause"),
    [
        (0, hang_in_python, STAGE, "no_progress"),
        (1, stop_the_jvm, None, "driver_silent"),
        (2, stop_the_driver, None, "driver_silent"),
    ],
)
def test_a_run_that_hangs_is_degraded_and_started_again(
    site: Site, before: int, hang: Callable[[Site], None], stage: str | None, cause: str
) -> None:
    name, client = site.pipeline.name, site.client
    run = client.wait_pipeline(name, "Running", WAIT_S).run or 0
    driver = site.driver
    hang(site)
    token = site.send(WARM + before)

    def is_degraded() -> bool:
        found = {(each.stage, each.cause) for each in client.pipeline(name).conditions}
        return (stage, cause) in found

    eventually(is_degraded, within_s=WAIT_S)
    shown = client.pipeline(name)
    assert shown.phase == "Running"
    assert shown.stuck is not None
    assert driver.is_running(), "it is shown before it is stopped"

    eventually(lambda: (client.pipeline(name).run or 0) > run, within_s=WAIT_S)
    assert not driver.is_running()
    assert client.wait(token, timeout_s=WAIT_S).kind == "complete"
    eventually(lambda: not is_degraded(), within_s=WAIT_S)
    reasons = [str(each.reason) for each in client.history(name) if each.phase == "Recovering"]
    assert len(reasons) == before + 1
    assert "nothing for" in reasons[0]
    assert_dumped(client.logs(name, 1_000))
    assert_rows_once(site, PART * (WARM + before + 1))


def assert_dumped(log: tuple[str, ...]) -> None:
    """Where the threads of Java and of Python were is in the log."""
    text = "\n".join(log)
    assert "java.lang.Thread.State: " in text
    assert "(most recent call first):" in text


def assert_rows_once(site: Site, count: int) -> None:
    uri = f"sqlite:///{site.state.folder / 'lakehouse' / 'catalog.db'}"
    once = Counter(range(count))
    assert Counter(numbers_in(site.state, f"{site.pipeline.name}.enriched")) == once
    assert Counter(numbers_of(SqlCatalog("lakehouse", uri=uri), site.pipeline.table)) == once
