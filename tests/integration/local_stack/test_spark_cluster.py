"""The whole stack with its pipelines on a Spark cluster, whose workers are killed and come back."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import Pipeline, order, orders_manifest
from e2e.faults import kill
from e2e.load import numbers_in, numbers_of
from e2e.waiting import eventually, group_of
from spark_cluster import SparkCluster, spark_cluster
from waybill import Client
from waybill_local import stack
from waybill_local.stack import Options, StackState

START_TIMEOUT_S = 120.0
WAIT_S = 120.0
BACK_S = 180.0  # a driver without executors gives up after a minute, and another one starts
STEP = "SELECT *, amount * 0.2 AS tax FROM orders"
# About a second for each record of a customer who is slow, on whoever computes it.
SLOW = (
    "SELECT * EXCEPT (many), amount * 0.2 / IF(order_id = 999, 0, 1) AS tax"
    " FROM (SELECT *, transform(sequence(1, 2000), n -> n + order_id) AS many FROM orders)"
    " WHERE customer <> 'slow' OR aggregate(many, 0L, (sum, one) -> sum"
    " + aggregate(many, 0L, (rest, other) -> rest + one * other % 7)) > 0"
)
BUSY_S = 1.0  # of processor time: executors that wait for work use less


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    cluster: SparkCluster
    worker: psutil.Process
    state: StackState


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with spark_cluster(tmp_path) as cluster:
        cluster.start_master()
        worker = cluster.start_worker("worker-1")
        monkeypatch.setenv("WAYBILL_SPARK_MASTER", cluster.url)
        options = Options(gateway_port=0, kafka_port=0, valkey_port=0)
        reports: list[stack.Report] = []
        try:
            state = stack.up(tmp_path, reports.append, options=options, tied=True)
            yield Site(cluster=cluster, worker=worker, state=state)
        finally:
            stack.down(tmp_path, reports.append)


@pytest.mark.timeout(480)
def test_killed_worker_costs_time_and_nothing_else(site: Site) -> None:
    text, pipeline = orders_manifest()
    assert STEP in text
    with Client(site.state.url) as client:
        operation = client.apply(text.replace(STEP, SLOW))
        done = client.operation(operation.id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors
        first = client.send(pipeline.name, "orders", [order(n) for n in range(10)])
        assert client.wait(first.token, timeout_s=WAIT_S).kind == "complete"

        executors = site.worker.children(recursive=True)
        before = processor_time(executors)
        rows = [order(n, customer="slow") for n in range(10, 18)]
        token = client.send(pipeline.name, "orders", rows).token
        uid = str(client.pipeline(pipeline.name).uid)
        driver = group_of(site.state, uid)
        eventually(lambda: processor_time(executors) > before + BUSY_S, within_s=WAIT_S)
        kill([site.worker, *executors])
        assert batch_runs(site.state, uid, "enrich")

        eventually(lambda: waits_for(client, token) == "no_spark_executor", within_s=WAIT_S)
        site.cluster.start_worker("worker-2")
        assert client.wait(token, timeout_s=BACK_S).kind == "complete"
        assert client.pipeline(pipeline.name).blocked_by is None
        assert group_of(site.state, uid) == driver, "Spark itself has computed it again"

        rows = [order(n) for n in (18, 999, 19)]
        outcome = client.wait(client.send(pipeline.name, "orders", rows).token, timeout_s=WAIT_S)
        assert (outcome.kind, outcome.dead_count) == ("dead_lettered", 1)
    assert_rows_once(site.state, pipeline, 20)


def processor_time(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def batch_runs(state: StackState, uid: str, stage: str) -> bool:
    """Whether Spark has begun a batch that it has not committed."""
    (checkpoint,) = (state.folder / "stage_runner" / uid / "checkpoints" / f"{stage}@1").iterdir()
    begun, ended = (numbers_of_files(checkpoint / name) for name in ("offsets", "commits"))
    return max(begun) > max(ended)


def numbers_of_files(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.iterdir() if path.name.isdigit()]


def waits_for(client: Client, token: str) -> str | None:
    return next((s.blocked_by for s in client.outcome(token).stages if s.blocked_by), None)


def assert_rows_once(state: StackState, pipeline: Pipeline, count: int) -> None:
    uri = f"sqlite:///{state.folder / 'lakehouse' / 'catalog.db'}"
    once = Counter(range(count))
    assert Counter(numbers_in(state, f"{pipeline.name}.enriched")) == once
    assert Counter(numbers_of(SqlCatalog("lakehouse", uri=uri), pipeline.table)) == once
