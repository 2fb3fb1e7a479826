"""Batches that no driver takes at once: executors write them, and every row is there once."""

import json
import signal
import uuid
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import order
from e2e.every_sink import START_TIMEOUT_S, WAIT_S
from e2e.waiting import drivers_of, eventually
from postgres import Database
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.clients import make_producer
from waybill_shared.process.failpoints import REACHED

RECORDS, BYTES = 72, 60_000  # more than the 4 MiB of this stack together
SINKS = ("added", "last", "warehouse")
MANIFEST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 2}}
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP"
stages:
  - name: load
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    steps:
      - {{name: sized, sql: "SELECT order_id, length(customer) AS size FROM orders"}}
    sinks:
      - {{name: added, iceberg: {{table: raw.{table}}}}}
      - {{name: last, iceberg: {{table: raw.{table}_last, mode: overwrite}}}}
      - {{name: warehouse, postgres: {{connection: warehouse, table: public.{table}}}}}
"""
EDGES = [
    pytest.param(sink, edge, id=f"{edge} of {sink}")
    for sink, edges in {
        "added": ("in_share", "after_commit"),
        "last": ("before_commit",),
        "warehouse": ("in_share", "after_commit"),
    }.items()
    for edge in edges
]


class BigOrders:
    def __init__(self, client: Client, stack: StackState, catalog: SqlCatalog) -> None:
        self.client = client
        self.name = f"big-{uuid.uuid4().hex[:8]}"
        self._stack = stack
        self._catalog = catalog
        self._table = self.name.replace("-", "_")
        self._numbers = count()
        self.sent: list[int] = []
        operation = client.apply(MANIFEST.format(name=self.name, table=self._table))
        done = client.operation(operation.id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors
        self.uid = str(client.pipeline(self.name).uid)

    def batch(self) -> str:
        """More than a driver takes at once, in one batch: a pipeline that is stopped gets it."""
        assert self.client.operation(self.client.stop(self.name).id, wait_s=WAIT_S).state == "done"
        producer = make_producer(self._stack.kafka)
        for number in (next(self._numbers) for _ in range(RECORDS)):
            self.sent.append(number)
            record = json.dumps(order(number) | {"customer": "c" * BYTES})
            producer.produce(f"{self.name}.in", value=record.encode(), partition=number % 2)
            producer.flush(WAIT_S)
        token = self.client.token_for(self.name, input="orders").token
        self.client.start(self.name)
        return token

    def kill_driver(self) -> None:
        for process in drivers_of(self._stack, self.uid):
            process.send_signal(signal.SIGKILL)

    def assert_once(self) -> None:
        assert sorted(self.rows("raw." + self._table)) == self.sent
        database = Database.of(self._stack)
        found = database.ask(f"SELECT order_id FROM {self._table} ORDER BY 1")
        assert [number for (number,) in found] == self.sent
        left = "SELECT tablename FROM pg_tables WHERE starts_with(tablename, 'waybill_load_')"
        assert database.ask(left) == []
        assert set(self.rows(f"raw.{self._table}_last")) == {*self.sent[-RECORDS:]}

    def rows(self, table: str) -> list[int]:
        found = self._catalog.load_table(table).scan().to_arrow()
        assert set(found.column("size").to_pylist()) == {BYTES}
        numbers: list[int] = found.column("order_id").to_pylist()
        return numbers

    def files(self) -> list[str]:
        table = self._catalog.load_table(f"raw.{self._table}")
        paths = table.inspect.files().column("file_path").to_pylist()
        return [Path(urlsplit(path).path).name for path in paths]


@pytest.fixture(scope="module")
def big(client: Client, stack: StackState, catalog: SqlCatalog) -> Iterator[BigOrders]:
    made = BigOrders(client, stack, catalog)
    yield made
    client.delete(made.name)


@pytest.mark.parametrize(("sink", "edge"), EDGES)
def test_a_driver_killed_at_an_edge_of_a_big_batch_writes_every_row_once(
    big: BigOrders, failpoints: Path, sink: str, edge: str
) -> None:
    point = failpoints / f"{big.uid}.{sink}.{edge}"
    point.touch()
    token = big.batch()
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)
    big.kill_driver()
    point.with_name(point.name + REACHED).unlink()

    assert big.client.wait(token, timeout_s=WAIT_S).kind == "complete"
    big.assert_once()
    assert all(f"{big.uid}-added-" in name for name in big.files()), "executors write them"
