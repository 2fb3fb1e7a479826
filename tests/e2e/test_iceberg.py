"""Iceberg tables in a catalog that a connection names: every mode through crashes, and a query that
gets a column while the pipeline runs."""

import json
import signal
import uuid
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from e2e.conftest import order
from e2e.every_sink import START_TIMEOUT_S, WAIT_S
from e2e.waiting import drivers_of, eventually
from postgres import Database
from waybill import Client
from waybill.outcomes import Outcome
from waybill_local.stack import StackState
from waybill_shared.process.failpoints import REACHED
from waybill_spark.sinks.iceberg.fences import FENCE

BY_KEY = '[{column: order_id, transform: "bucket[4]"}]'
BY_DAY = "[{column: placed_at, transform: day}]"
MODES = {
    "newest": f"mode: upsert, keys: [order_id], partitionBy: {BY_KEY}",
    "last": "mode: overwrite",
    "days": f"mode: overwrite, overwrite: partitions, partitionBy: {BY_DAY}",
}
MANIFEST = """
version: 1
name: {name}
description: Orders, as three tables have them.
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP"
stages:
  - name: load
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    steps: [{{name: kept, sql: "SELECT order_id, customer, placed_at{more} FROM orders"}}]
    sinks:
"""
SINK = """
      - name: {sink}
        iceberg: {{connection: lake, table: {table}, schemaEvolution: add, {mode}}}
"""


class Lake:
    """A pipeline that writes into each mode's table."""

    def __init__(self, client: Client, stack: StackState, catalog: SqlCatalog) -> None:
        self.client = client
        self.name = f"lake-{uuid.uuid4().hex[:8]}"
        self._stack = stack
        self._catalog = catalog
        self._numbers = count()
        self.sent: list[int] = []
        self.apply()
        self.uid = str(client.pipeline(self.name).uid)

    def manifest(self, more: str = "") -> str:
        sinks = [
            SINK.format(sink=sink, table=self.table_of(sink), mode=mode)
            for sink, mode in MODES.items()
        ]
        return MANIFEST.format(name=self.name, more=more) + "".join(sinks)

    def apply(self, more: str = "") -> None:
        operation = self.client.apply(self.manifest(more))
        done = self.client.operation(operation.id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors

    def send(self, size: int) -> str:
        numbers = [next(self._numbers) for _ in range(size)]
        self.sent += numbers
        return self.client.send(self.name, "orders", [order(n) for n in numbers]).token

    def complete(self, token: str) -> Outcome:
        outcome = self.client.wait(token, timeout_s=WAIT_S)
        assert outcome.kind == "complete"
        return outcome

    def kill_driver(self) -> None:
        for process in drivers_of(self._stack, self.uid):
            process.send_signal(signal.SIGKILL)

    def table(self, sink: str) -> Table:
        return self._catalog.load_table(self.table_of(sink))

    def rows(self, sink: str, snapshot_id: int | None = None) -> list[int]:
        found = self.table(sink).scan(snapshot_id=snapshot_id).to_arrow()
        return sorted(found.column("order_id").to_pylist())

    def ever_written(self, sink: str) -> list[int]:
        """What each snapshot has that the one before had not."""
        written: list[int] = []
        before: list[int] = []
        for snapshot in self.table(sink).snapshots():
            now = self.rows(sink, snapshot.snapshot_id)
            written += [number for number in now if number not in before]
            before = now
        return sorted(written)

    def assert_once(self) -> None:
        for sink in MODES:
            assert self.ever_written(sink) == self.sent, sink
            of_batches = [
                value
                for snapshot in self.table(sink).snapshots()
                if snapshot.summary is not None
                for key, value in snapshot.summary.additional_properties.items()
                if key.startswith("waybill.sequence.")
            ]
            assert len(of_batches) == len({*of_batches}), sink
        assert self.rows("newest") == self.sent

    def table_of(self, sink: str) -> str:
        return f"shop.{self.name.replace('-', '_')}_{sink}"


@pytest.fixture(scope="module")
def lake(
    stack: StackState, client: Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lake]:
    warehouse = tmp_path_factory.mktemp("lake")
    file = stack.folder / "connections.yaml"
    before = file.read_text()
    lake = f"kind: iceberg, catalog: sql, database: warehouse, name: lake, warehouse: {warehouse}"
    closed = "kind: iceberg, catalog: sql, database: warehouse, warehouse: /proc/lake"
    told = f"lake: {{{lake}}}\nlake_again: {{{lake}}}\nclosed: {{{closed}}}\n"
    file.write_text(f"{before}\n{told}")
    uri = Database.of(stack).url.replace("postgresql://", "postgresql+psycopg://")
    catalog = SqlCatalog("lake", uri=uri, warehouse=f"file://{warehouse}")
    made = Lake(client, stack, catalog)
    yield made
    client.delete(made.name)
    catalog.close()
    file.write_text(before)


def test_what_was_aborted_takes_the_place_of_nothing(lake: Lake, stack: StackState) -> None:
    lake.complete(lake.send(3))
    before = {sink: (lake.rows(sink), _fences(lake.table(sink))) for sink in MODES}

    producer = Producer(
        {"bootstrap.servers": stack.kafka, "transactional.id": lake.name, "log_level": 0}
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(f"{lake.name}.in", value=json.dumps(order(0)).encode())
    producer.flush()
    producer.abort_transaction()

    for sink, (rows, fences) in before.items():
        table = lake.table(sink)
        eventually(partial(_have_moved, table, fences), within_s=WAIT_S)
        assert lake.rows(sink) == rows, sink


def _have_moved(table: Table, fences: dict[str, str]) -> bool:
    return _fences(table.refresh()) != fences


def _fences(table: Table) -> dict[str, str]:
    return {name: text for name, text in table.properties.items() if name.startswith(FENCE)}


@pytest.mark.parametrize(
    ("sink", "edge"),
    [("newest", "before_commit"), ("last", "after_commit"), ("days", "before_load")],
)
def test_a_driver_killed_at_an_edge_of_a_batch_writes_each_mode_once(
    lake: Lake, client: Client, failpoints: Path, sink: str, edge: str
) -> None:
    client.wait_pipeline(lake.name, timeout_s=WAIT_S)
    point = failpoints / f"{lake.uid}.{sink}.{edge}"
    point.touch()
    token = lake.send(3)
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)
    lake.kill_driver()
    outcome = lake.complete(token)
    lake.assert_once()
    for each, snapshot_id in outcome.iceberg_snapshots.items():
        assert {*lake.sent[-1:]} <= {*lake.rows(each, snapshot_id)}


def test_a_query_gets_a_column_and_tables_get_it_with_its_rows(lake: Lake, client: Client) -> None:
    lake.complete(lake.send(2))
    found = client.check(lake.manifest(", amount"))
    told = [change.message for change in found.changes or () if change.kind == "change_table"]
    assert told == [
        f"~ sink {sink} of stage load: its table gets a column amount, decimal(10, 2)"
        for sink in MODES
    ]
    lake.apply(", amount")
    lake.complete(lake.send(2))
    rows = lake.table("newest").scan().to_arrow()
    assert rows.column("amount").null_count == len(lake.sent) - 2
    assert lake.table("newest").properties["comment"] == "Orders, as three tables have them."
    lake.assert_once()


@pytest.mark.parametrize(
    ("connection", "table", "said"),
    [
        ("lake_again", "newest", "_newest is already that of sink 'newest', by another name"),
        ("closed", "other", "its files cannot be written to file:///proc/lake: "),
    ],
)
def test_a_table_that_cannot_be_had_is_refused_before_anything_is_written(
    lake: Lake, client: Client, connection: str, table: str, said: str
) -> None:
    more = SINK.format(sink="more", table=lake.table_of(table), mode="mode: append")
    manifest = lake.manifest() + more.replace("connection: lake", f"connection: {connection}")
    (problem,) = client.check(manifest).errors
    assert said in problem.message
    assert problem.line is not None
    assert "connection:" in manifest.splitlines()[problem.line - 1]


def test_who_made_a_table_partitions_it_anew(lake: Lake, client: Client) -> None:
    lake.complete(lake.send(1))
    manifest = lake.manifest().replace("bucket[4]", "bucket[8]")
    found = client.check(manifest)
    assert found.good, found.errors
    (told,) = [change.message for change in found.changes or () if change.kind == "change_table"]
    assert "its table gets new partitions: bucket[8](order_id)" in told
    done = client.operation(client.apply(manifest).id, wait_s=START_TIMEOUT_S)
    assert done.state == "done", done.errors
    lake.complete(lake.send(2))
    assert [field.name for field in lake.table("newest").spec().fields] == ["order_id_bucket_8"]
    assert lake.rows("newest") == lake.sent


ORDERLY = """
version: 1
name: {name}
inputs:
  - {{name: orders, kafka: {{topic: {name}.in, partitions: 1}}, schema: "order_id BIGINT"}}
stages:
  - name: load
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks: [{{name: lake, iceberg: {{table: raw.{table}{more}}}}}]
"""


def test_a_table_is_kept_in_order_while_it_is_written(
    client: Client, stack: StackState, catalog: SqlCatalog
) -> None:
    name = f"orderly-{uuid.uuid4().hex[:8]}"
    table = name.replace("-", "_")

    def apply(more: str = "") -> None:
        manifest = ORDERLY.format(name=name, table=table, more=more)
        done = client.operation(client.apply(manifest).id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors

    def send(number: int) -> Outcome:
        token = client.send(name, "orders", [{"order_id": number}]).token
        outcome = client.wait(token, timeout_s=WAIT_S)
        assert outcome.kind == "complete"
        return outcome

    def files() -> int:
        return len([*catalog.load_table(f"raw.{table}").scan().plan_files()])

    apply()
    versions = [send(number).iceberg_snapshots["lake"] for number in range(7)]
    assert files() == 7
    apply(", maintenance: {compact: {every: 1 hour}}")
    send(7)
    eventually(lambda: files() < 3, within_s=WAIT_S)
    send(8)
    for number, version in enumerate(versions):
        rows = catalog.load_table(f"raw.{table}").scan(snapshot_id=version).to_arrow()
        assert rows.num_rows == number + 1
    now = catalog.load_table(f"raw.{table}").scan().to_arrow().column("order_id").to_pylist()
    assert sorted(now) == [*range(9)]
    log = stack.folder / "stage_runner" / str(client.pipeline(name).uid) / "driver.log"
    assert "table is kept in order" in log.read_text()
