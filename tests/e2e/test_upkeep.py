"""A driver that is killed in the middle of a task of its table: nothing is lost, and it is done."""

import uuid
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from e2e.every_sink import START_TIMEOUT_S, WAIT_S
from e2e.faults import kill
from e2e.waiting import drivers_of, eventually
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.process.failpoints import REACHED

BATCHES = 22  # so many manifests are too many
MANIFEST = """
version: 1
name: {name}
inputs: [{{name: orders, kafka: {{topic: {name}.in, partitions: 1}}, schema: "order_id BIGINT"}}]
stages:
  - name: load
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks: [{{name: lake, iceberg: {{table: {table}{more}}}}}]
"""


class Kept:
    """A pipeline whose table has become untidy."""

    def __init__(self, client: Client, stack: StackState, catalog: SqlCatalog) -> None:
        self.client = client
        self.name = f"kept-{uuid.uuid4().hex[:8]}"
        self.table_name = f"raw.{self.name.replace('-', '_')}"
        self._stack = stack
        self._catalog = catalog
        self._numbers = count()
        self.apply()
        self.uid = str(client.pipeline(self.name).uid)
        for _ in range(BATCHES):
            self.send()

    def apply(self, more: str = "") -> None:
        text = MANIFEST.format(name=self.name, table=self.table_name, more=more)
        done = self.client.operation(self.client.apply(text).id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors

    def send(self) -> None:
        token = self.client.send(self.name, "orders", [{"order_id": next(self._numbers)}]).token
        assert self.client.wait(token, timeout_s=WAIT_S).kind == "complete"

    def kill_driver(self) -> None:
        kill(drivers_of(self._stack, self.uid))

    @property
    def table(self) -> Table:
        return self._catalog.load_table(self.table_name)

    def assert_once(self) -> None:
        found = self.table.scan().to_arrow().column("order_id").to_pylist()
        assert sorted(found) == [*range(next(self._numbers))]


@pytest.fixture
def kept(client: Client, stack: StackState, catalog: SqlCatalog) -> Iterator[Kept]:
    made = Kept(client, stack, catalog)
    yield made
    client.delete(made.name)


@pytest.mark.parametrize(
    ("task", "point"), [("compact", "compact"), ("rewriteManifests", "rewrite")]
)
def test_a_driver_killed_in_the_middle_of_a_task_loses_nothing(
    kept: Kept, failpoints: Path, task: str, point: str
) -> None:
    armed = failpoints / f"{kept.table_name}.{point}"
    armed.touch()
    kept.apply(f", maintenance: {{{task}: {{every: 1 minute}}}}")
    reached = armed.with_name(armed.name + REACHED)
    eventually(reached.exists, within_s=WAIT_S)
    assert len(kept.table.inspect.files()) == BATCHES
    kept.kill_driver()
    reached.unlink()

    kept.send()
    done = f"waybill.maintained.{task}"
    eventually(lambda: done in kept.table.properties, within_s=WAIT_S)

    kept.send()
    kept.assert_once()
    snapshot = kept.table.current_snapshot()
    assert snapshot is not None
    tidy = (
        len(kept.table.inspect.files())
        if task == "compact"
        else len(snapshot.manifests(kept.table.io))
    )
    assert tidy < BATCHES // 2
