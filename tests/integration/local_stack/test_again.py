"""The whole stack, with a pipeline that runs, ends and begins again: what it answered it answers as
before, and what was under way arrives."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from feldera import FelderaClient
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import order, orders_manifest
from e2e.faults import kill
from e2e.load import numbers_of
from e2e.waiting import drivers_of, eventually
from waybill import Client
from waybill_local import stack
from waybill_local.processes import wait_for_ends
from waybill_local.stack import Options
from waybill_stage_runner.adapters.groups import groups_with

START_TIMEOUT_S = 120.0
WAIT_S = 120.0
GONE_S = 120.0


class Home:
    """A folder with a stack, and the pipeline that runs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reports: list[stack.Report] = []
        self.sent: list[int] = []
        self.up(port=0)
        manifest, self.pipeline = orders_manifest()
        with Client(self.state.url) as client:
            done = client.operation(client.apply(manifest).id, wait_s=START_TIMEOUT_S)
            assert done.state == "done", done.errors
            self.uid = str(client.pipeline(self.pipeline.name).uid)

    def up(self, port: int | None = None) -> None:
        """With the ports of the last time, if `port` is not 0."""
        options = Options(gateway_port=port, kafka_port=port, valkey_port=port)
        self.state = stack.up(self.folder, self.reports.append, options=options, tied=True)

    def down(self) -> None:
        stack.down(self.folder, self.reports.append)

    def cut(self) -> None:
        """As when the machine loses its power: nothing of it can tidy up."""
        supervisor = psutil.Process(self.state.supervisor_pid)
        everything = [supervisor, *supervisor.children(recursive=True)]
        os.kill(supervisor.pid, signal.SIGKILL)
        assert wait_for_ends(everything, GONE_S) == []

    def send(self, client: Client, size: int) -> str:
        numbers = list(range(len(self.sent), len(self.sent) + size))
        self.sent += numbers
        return client.send(self.pipeline.name, "orders", [order(n) for n in numbers]).token

    def numbers(self) -> Counter[int]:
        uri = f"sqlite:///{self.state.folder / 'lakehouse' / 'catalog.db'}"
        return Counter(numbers_of(SqlCatalog("lakehouse", uri=uri), self.pipeline.table))

    def drivers(self) -> list[Path]:
        """Their folders, with what they have for temporary files."""
        return list((self.state.folder / "stage_runner" / "drivers").glob("*"))

    def left(self) -> list[Path]:
        """Of drivers that live no more."""
        return [f for f in self.drivers() if not groups_with(str(f / "home.json").__eq__)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = Home(tmp_path_factory.mktemp("home"))
    yield home
    home.down()


@pytest.mark.parametrize("end", [Home.down, Home.cut], ids=["stopped", "killed"])
def test_after_the_end_of_the_stack_tokens_answer_as_before(
    home: Home, end: Callable[[Home], None]
) -> None:
    with Client(home.state.url) as client:
        token = home.send(client, 5)
        before = client.wait(token, timeout_s=WAIT_S)
        assert before.kind == "complete"
        kill(drivers_of(home.state, home.uid))
        waiting = home.send(client, 5)
        assert client.outcome(waiting).kind == "in_progress"

    end(home)
    assert end is Home.cut or home.drivers() == [], home.reports
    home.up()

    with Client(home.state.url) as client:
        assert client.outcome(token).kind in {"unknown", "complete"}
        assert client.outcome(waiting).kind in {"unknown", "in_progress"}
        assert client.wait(token, timeout_s=WAIT_S).raw == before.raw
        assert client.wait(waiting, timeout_s=WAIT_S).kind == "complete"
        assert client.wait(token, timeout_s=WAIT_S).raw == before.raw
    stock = FelderaClient(home.state.url)  # whose own server knows no token from before
    stock.wait_for_token(home.pipeline.name, token, timeout_s=WAIT_S)
    assert home.numbers() == Counter(home.sent)
    eventually(lambda: home.left() == [], within_s=GONE_S)
