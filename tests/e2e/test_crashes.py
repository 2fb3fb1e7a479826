"""A driver killed at every edge of a batch, with no further input: every row is there, once."""

import signal
import uuid
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psutil
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import order
from e2e.reading import committed_orders
from e2e.waiting import drivers_of, eventually
from local_stack.stack import StackState
from shared.failpoints import REACHED
from shared.kafka import KafkaAdmin
from waybill import Client

START_TIMEOUT_S = 120.0
WAIT_S = 120.0
EDGES = [
    pytest.param(sink, edge, id=f"{edge} of the {sink} sink")
    for sink in ("kafka", "iceberg")
    for edge in ("before_commit", "after_commit", "after_event")
]
MANIFEST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP"
stages:
  - name: both
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks:
      - {{name: kafka, kafka: {{topic: {name}.out, key: order_id, partitions: 1}}}}
      - {{name: iceberg, iceberg: {{table: raw.{table}}}}}
"""


class Crashing:
    """A pipeline with a Kafka and an Iceberg sink in one stage, and every order it was given."""

    def __init__(self, client: Client) -> None:
        self.name = f"crash-{uuid.uuid4().hex[:8]}"
        self.table = f"raw.{self.name.replace('-', '_')}"
        self.numbers = count()
        self.sent: list[int] = []
        manifest = MANIFEST.format(name=self.name, table=self.table.removeprefix("raw."))
        done = client.operation(client.apply(manifest).id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors
        self.uid = str(client.pipeline(self.name).uid)

    def send(self, client: Client, size: int) -> str:
        numbers = [next(self.numbers) for _ in range(size)]
        self.sent += numbers
        return client.send(self.name, "orders", [order(number) for number in numbers]).token


@pytest.fixture(scope="module")
def crashing(client: Client) -> Iterator[Crashing]:
    pipeline = Crashing(client)
    yield pipeline
    client.delete(pipeline.name)


@pytest.mark.parametrize(("sink", "edge"), EDGES)
def test_a_driver_killed_at_an_edge_of_a_batch_writes_every_row_once(
    client: Client,
    crashing: Crashing,
    stack: StackState,
    kafka: KafkaAdmin,
    catalog: SqlCatalog,
    failpoints: Path,
    sink: str,
    edge: str,
) -> None:
    client.wait_pipeline(crashing.name, timeout_s=WAIT_S)
    point = failpoints / f"{crashing.uid}.{sink}.{edge}"
    point.touch()
    token = crashing.send(client, 5)
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)
    kill(drivers_of(stack, crashing.uid))

    outcome = client.wait(token, timeout_s=WAIT_S)

    assert outcome.kind == "complete"
    assert committed_orders(stack, kafka, f"{crashing.name}.out") == crashing.sent
    snapshot_id = outcome.iceberg_snapshots["iceberg"]
    rows = catalog.load_table(crashing.table).scan(snapshot_id=snapshot_id).to_arrow()
    assert sorted(rows.column("order_id").to_pylist()) == crashing.sent


def kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        process.send_signal(signal.SIGKILL)
