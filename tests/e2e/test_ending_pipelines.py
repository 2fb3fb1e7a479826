"""Pipelines that end by themselves: all that is there is read, and what comes later waits."""

import json
import signal
import uuid
from itertools import count
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import order
from e2e.reading import committed_orders, rows_of
from e2e.waiting import drivers_of, eventually
from waybill import Client
from waybill.models import Operation
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin
from waybill_shared.kafka.clients import make_producer
from waybill_shared.process.failpoints import REACHED

WAIT_S = 120.0
RECORDS, BATCH = 12, 5
BATCHES = 3
MANIFEST = """
version: 1
name: {name}
state: {state}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP"
stages:
  - name: load
    inputs: [middle]
    trigger: {trigger}
    sinks: [{{name: lake, iceberg: {{table: raw.{table}}}}}]
  - name: enrich
    inputs: [orders]
    trigger: {trigger}
    {limit}
    sinks: [{{name: middle, kafka: {{topic: {name}.middle, key: order_id, partitions: 1}}}}]
"""
NOW = ("{availableNow: true}", f"maxOffsetsPerTrigger: {BATCH}")
MANY, BIG_BATCH = 120_000, 50_000
BIG = ("{availableNow: true}", f"maxOffsetsPerTrigger: {BIG_BATCH}")
ONCE = ("{once: true}", "#")


class Ending:
    """A pipeline that does not run yet, and every order that it was given."""

    def __init__(
        self,
        client: Client,
        stack: StackState,
        kafka: KafkaAdmin,
        catalog: SqlCatalog,
        trigger: tuple[str, str],
    ) -> None:
        self.client = client
        self._stack = stack
        self._kafka = kafka
        self._catalog = catalog
        self._trigger = trigger
        self.name = f"ends-{uuid.uuid4().hex[:8]}"
        self.table = f"raw.{self.name.replace('-', '_')}"
        self._numbers = count()
        self._sent: list[int] = []
        self.done(self.apply("stopped"))
        self.uid = str(client.pipeline(self.name).uid)

    def apply(self, state: str) -> Operation:
        trigger, limit = self._trigger
        table = self.table.removeprefix("raw.")
        return self.client.apply(
            MANIFEST.format(name=self.name, table=table, state=state, trigger=trigger, limit=limit)
        )

    def done(self, operation: Operation) -> None:
        found = self.client.operation(operation.id, wait_s=WAIT_S)
        assert found.state == "done", found.errors

    def send(self, size: int = RECORDS) -> str:
        numbers = [next(self._numbers) for _ in range(size)]
        self._sent += numbers
        return str(self.client.send(self.name, "orders", [order(n) for n in numbers]).token)

    def produce(self, size: int) -> str:
        """As `send`, with a producer: a request takes fewer records."""
        numbers = [next(self._numbers) for _ in range(size)]
        self._sent += numbers
        producer = make_producer(self._stack.kafka)
        for number in numbers:
            producer.produce(f"{self.name}.in", value=json.dumps(order(number)), partition=0)
            producer.poll(0)
        assert producer.flush(WAIT_S) == 0
        return str(self.client.token_for(self.name, input="orders").token)

    def run(self) -> None:
        self.done(self.client.start(self.name))
        self.finish()

    def finish(self) -> None:
        self.client.wait_pipeline(self.name, "Finished", WAIT_S)

    def batches(self) -> list[int]:
        """Those that Spark's checkpoint of the first stage has as done."""
        folder = self._stack.folder / "stage_runner" / self.uid / "checkpoints"
        return sorted(
            int(file.name)
            for commits in folder.glob("enrich@*/*/commits")
            for file in commits.iterdir()
            if file.name.isdigit()
        )

    def snapshots(self) -> int:
        return len(self._catalog.load_table(self.table).snapshots())

    def kill_driver(self) -> None:
        for process in drivers_of(self._stack, self.uid):
            process.send_signal(signal.SIGKILL)

    def assert_once(self, token: str) -> None:
        """The token is complete already, and every order is there once in both sinks."""
        outcome = self.client.outcome(token)
        assert outcome.kind == "complete"
        assert committed_orders(self._stack, self._kafka, f"{self.name}.middle") == self._sent
        rows = rows_of(self._catalog, self.table, outcome.iceberg_snapshots["lake"])
        assert sorted(rows.column("order_id").to_pylist()) == self._sent


@pytest.fixture
def ending(
    request: pytest.FixtureRequest,
    client: Client,
    stack: StackState,
    kafka: KafkaAdmin,
    catalog: SqlCatalog,
) -> Ending:
    return Ending(client, stack, kafka, catalog, getattr(request, "param", NOW))


def test_a_run_ends_when_all_that_was_there_is_in_every_sink(
    client: Client, ending: Ending
) -> None:
    token = ending.send()
    ending.done(ending.apply("running"))
    ending.finish()
    assert ending.batches() == [*range(BATCHES)]
    ending.assert_once(token)

    later = ending.send(1)
    outcome = client.outcome(later)
    assert outcome.kind == "in_progress"
    assert {stage.blocked_by for stage in outcome.stages} == {"not_running"}
    since = client.pipeline(ending.name).since
    ending.done(ending.apply("running"))
    assert client.pipeline(ending.name).since == since, "an apply without a change runs nothing"
    assert client.outcome(later).kind == "in_progress"
    ending.run()
    ending.assert_once(later)

    snapshots = ending.snapshots()
    ending.run()
    assert ending.snapshots() == snapshots, "nothing to read makes no snapshot"
    stuck = client.pipeline(ending.name).stuck
    assert stuck is None


@pytest.mark.parametrize("ending", [ONCE], indirect=True)
def test_once_is_one_batch_and_one_snapshot_of_whatever_size(ending: Ending) -> None:
    token = ending.send(RECORDS)
    ending.run()
    assert (ending.batches(), ending.snapshots()) == ([0], 1)
    ending.assert_once(token)
    token = ending.send(RECORDS)
    ending.run()
    assert (ending.batches(), ending.snapshots()) == ([0, 1], 2)
    ending.assert_once(token)


@pytest.mark.parametrize("ending", [NOW, ONCE], ids=["availableNow", "once"], indirect=True)
def test_a_run_whose_driver_is_killed_in_a_batch_finishes_with_each_row_once(
    client: Client, ending: Ending, failpoints: Path
) -> None:
    """In the second batch of a pipeline that has one before it; records came meanwhile, too."""
    ending.send(1)
    ending.run()
    ending.send()
    point = failpoints / f"{ending.uid}.middle.before_load"
    point.touch()
    ending.done(client.start(ending.name))
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)
    later = ending.send(1)
    ending.kill_driver()
    point.with_name(point.name + REACHED).unlink()
    ending.finish()
    ending.assert_once(later)


@pytest.mark.timeout(480)
@pytest.mark.parametrize("ending", [BIG], indirect=True)
def test_a_large_backlog_that_is_killed_in_its_second_batch_is_read_in_three(
    client: Client, ending: Ending, failpoints: Path
) -> None:
    """A batch may be written in pieces, so its end is looked for in the checkpoint."""
    token = ending.produce(MANY)
    point = failpoints / f"{ending.uid}.middle.before_load"
    reached = point.with_name(point.name + REACHED)
    point.touch()
    ending.done(client.start(ending.name))
    eventually(reached.exists, within_s=WAIT_S)
    while ending.batches() != [0]:
        point.touch()
        reached.unlink()
        eventually(reached.exists, within_s=WAIT_S)
    ending.kill_driver()
    reached.unlink()
    ending.finish()
    assert ending.batches() == [0, 1, 2]
    ending.assert_once(token)


def test_a_run_that_is_drained_reads_what_came_since_it_began(
    client: Client, ending: Ending, failpoints: Path
) -> None:
    ending.send()
    point = failpoints / f"{ending.uid}.middle.before_load"
    point.touch()
    ending.done(client.start(ending.name))
    reached = point.with_name(point.name + REACHED)
    eventually(reached.exists, within_s=WAIT_S)
    later = ending.send(1)
    stop = client.stop(ending.name, "drain")
    eventually(lambda: client.pipeline(ending.name).phase == "Draining", within_s=WAIT_S)
    reached.unlink()
    ending.done(stop)
    assert client.pipeline(ending.name).phase == "Stopped"
    ending.assert_once(later)
