"""A stack whose operator trusts everybody who writes SQL: told wherever a pipeline is told of."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import order, orders_manifest
from e2e.scraping import scrape
from waybill import Client
from waybill_local import stack
from waybill_local.stack import Options, StackState

WAIT_S = 120.0
STEP = "SELECT *, amount * 0.2 AS tax FROM orders"
JAVA = (
    "SELECT *, reflect('java.lang.Integer', 'toHexString', CAST(order_id AS INT)) AS hex"
    " FROM orders"
)


@pytest.fixture
def trusting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StackState]:
    monkeypatch.setenv("WAYBILL_STAGE_RUNNER_SQL_GUARD", "trusted")
    options = Options(gateway_port=0, kafka_port=0, valkey_port=0)
    reports: list[stack.Report] = []
    try:
        yield stack.up(tmp_path, reports.append, options=options, tied=True)
    finally:
        stack.down(tmp_path, reports.append)


def test_trusted_query_runs_java_and_everybody_is_told(trusting: StackState) -> None:
    text, pipeline = orders_manifest()
    assert STEP in text
    with Client(trusting.url) as client:
        operation = client.apply(text.replace(STEP, JAVA))
        done = client.operation(operation.id, wait_s=WAIT_S)
        assert done.state == "done", done.errors
        token = client.send(pipeline.name, "orders", [order(255)]).token
        assert client.wait(token, timeout_s=WAIT_S).kind == "complete"
        assert client.pipeline(pipeline.name).sql_guard == "trusted"
        events = httpx2.get(f"{trusting.url}/v1/pipelines/{pipeline.name}/events").json()
        assert {event["sql_guard"] for event in events["items"]} == {"trusted"}
        assert scrape(trusting, "stage_runner").value("waybill_sql_guard_trusted") == 1
    uri = f"sqlite:///{trusting.folder / 'lakehouse' / 'catalog.db'}"
    catalog = SqlCatalog("lakehouse", uri=uri)
    (row,) = catalog.load_table(pipeline.table).scan().to_arrow().to_pylist()
    assert row["hex"] == "ff"
