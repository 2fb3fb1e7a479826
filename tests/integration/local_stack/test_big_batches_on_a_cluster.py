"""A big batch on a Spark cluster: its executors write the tables, and one is killed at it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import order
from e2e.waiting import eventually, group_of
from postgres import Database
from spark_cluster import spark_cluster
from waybill import Client
from waybill_local import stack
from waybill_local.stack import Options, StackState
from waybill_shared.kafka.clients import make_producer
from waybill_shared.process.clock import SystemClock
from waybill_shared.process.failpoints import FOLDER, REACHED
from waybill_spark.sinks.iceberg.tasks import remove_orphans

START_TIMEOUT_S = 120.0
WAIT_S = 180.0
RECORDS, LIMIT = 20_000, 5_000
MANIFEST = """
version: 1
name: orders
inputs:
  - name: orders
    kafka: {topic: orders.in, partitions: 4}
    schema: "order_id BIGINT, customer STRING, amount DECIMAL(10,2), placed_at TIMESTAMP"
stages:
  - name: load
    inputs: [orders]
    sinks:
      - {name: lake, iceberg: {table: raw.orders}}
      - {name: warehouse, postgres: {connection: warehouse, table: public.orders}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    workers: tuple[psutil.Process, ...]
    state: StackState
    failpoints: Path


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    failpoints = tmp_path / "failpoints"
    failpoints.mkdir()
    with spark_cluster(tmp_path) as cluster:
        cluster.start_master()
        workers = tuple(cluster.start_worker(name, cores=1) for name in ("one", "two"))
        monkeypatch.setenv("WAYBILL_SPARK_MASTER", cluster.url)
        monkeypatch.setenv("WAYBILL_STAGE_RUNNER_BATCH_ROWS_MAX", str(LIMIT))
        monkeypatch.setenv(FOLDER, str(failpoints))
        options = Options(
            gateway_port=0, kafka_port=0, valkey_port=0, postgres=True, postgres_port=0
        )
        reports: list[stack.Report] = []
        try:
            state = stack.up(tmp_path, reports.append, options=options, tied=True)
            yield Site(workers=workers, state=state, failpoints=failpoints)
        finally:
            stack.down(tmp_path, reports.append)


@pytest.mark.timeout(480)
@pytest.mark.parametrize("sink", ["lake", "warehouse"])
def test_a_worker_that_is_killed_while_it_writes_costs_time_and_nothing_else(
    site: Site, sink: str
) -> None:
    with Client(site.state.url) as client:
        done = client.operation(client.apply(MANIFEST).id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors
        uid = str(client.pipeline("orders").uid)
        assert client.operation(client.stop("orders").id, wait_s=WAIT_S).state == "done"
        produce(site.state)
        token = client.token_for("orders", input="orders").token
        point = site.failpoints / f"{uid}.{sink}.in_share"
        point.touch()
        client.start("orders")
        eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)
        driver = group_of(site.state, uid)
        kill_one_that_writes(site.workers)
        point.with_name(point.name + REACHED).unlink()

        assert client.wait(token, timeout_s=WAIT_S).kind == "complete"
        assert group_of(site.state, uid) == driver, "Spark itself has done it again"
    assert_once(site.state)


def produce(state: StackState) -> None:
    producer = make_producer(state.kafka)
    for number in range(RECORDS):
        value = json.dumps(order(number)).encode()
        producer.produce("orders.in", value=value, partition=number % 4)
    assert producer.flush(WAIT_S) == 0


def kill_one_that_writes(workers: tuple[psutil.Process, ...]) -> None:
    """With its executor, and the Python beside that. The other may be the one that was held."""
    doomed = [workers[0], *workers[0].children(recursive=True)]
    assert any("pyspark.daemon" in " ".join(each.cmdline()) for each in doomed)
    for process in doomed:
        process.kill()


def assert_once(state: StackState) -> None:
    every = [*range(RECORDS)]
    uri = f"sqlite:///{state.folder / 'lakehouse' / 'catalog.db'}"
    table = SqlCatalog("lakehouse", uri=uri).load_table("raw.orders")
    assert sorted(table.scan().to_arrow().column("order_id").to_pylist()) == every
    assert len([*table.snapshots()]) == 1
    found = Database.of(state).ask("SELECT order_id FROM orders ORDER BY 1")
    assert [number for (number,) in found] == every

    counted = {
        urlsplit(path).path for path in table.inspect.files().column("file_path").to_pylist()
    }
    folder = Path(urlsplit(table.location()).path) / "data"
    there = {str(path) for path in folder.rglob("*.parquet")}
    gone = remove_orphans(table, SystemClock().now_ms() + 1, dry_run=False)
    assert gone.counts["files"] == len(there - counted)
    assert {str(path) for path in folder.rglob("*.parquet")} == counted
