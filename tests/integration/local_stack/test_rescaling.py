"""A pipeline gets more tasks at once, and fewer again, under load: each row once, tokens right."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import orders_manifest
from e2e.reading import rows_of
from e2e.test_stop_modes import PART, await_done, load, send_part
from e2e.waiting import homes_of
from waybill import Client
from waybill_local import stack
from waybill_local.stack import Options, StackState
from waybill_shared.contract.driver import DriverHome

WAIT_S = 120.0
MOST = 4


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StackState]:
    monkeypatch.setenv("WAYBILL_STAGE_RUNNER_PARALLELISM_MAX", f"{MOST}")
    options = Options(gateway_port=0, kafka_port=0, valkey_port=0)
    reports: list[stack.Report] = []
    try:
        yield stack.up(tmp_path, reports.append, options=options, tied=True)
    finally:
        stack.down(tmp_path, reports.append)


@pytest.mark.timeout(480)
def test_each_row_is_there_once_from_one_task_to_four_and_back(state: StackState) -> None:
    text, pipeline = orders_manifest()
    one, tokens = text.replace("version: 1", "version: 1\nparallelism: 1", 1), list[str]()
    with Client(state.url) as client:
        await_done(client, client.apply(one))
        before = client.pipeline(pipeline.name)
        assert masters_of(state, str(before.uid)) == {"local[1]"}
        send_part(client, pipeline.name, tokens)
        with load(state.url, pipeline.name, tokens):
            for number in (MOST, 1):
                assert client.wait(tokens[-1], timeout_s=WAIT_S).kind == "complete"
                await_done(client, client.rescale(pipeline.name, number))
                now = client.pipeline(pipeline.name)
                assert (now.parallelism, now.generation) == (number, before.generation)
                assert masters_of(state, str(now.uid)) == {f"local[{number}]"}
        outcome = client.wait(client.merge(tokens), timeout_s=WAIT_S)
        assert outcome.kind == "complete"
        runs = [(run.parallelism, run.end) for run in client.runs(pipeline.name)]
        assert runs == [(1, None), (MOST, "superseded"), (1, "superseded")], "the newest first"

        refused = client.operation(client.rescale(pipeline.name, MOST + 1).id, wait_s=WAIT_S)
        assert (refused.state, refused.problem) == ("failed", "invalid")
        assert f"at most {MOST} tasks at once" in refused.errors[0].message
    uri = f"sqlite:///{state.folder / 'lakehouse' / 'catalog.db'}"
    catalog = SqlCatalog("lakehouse", uri=uri)
    rows = rows_of(catalog, pipeline.table, outcome.iceberg_snapshots["lake"]).to_pylist()
    assert sorted(row["order_id"] for row in rows) == [*range(PART * len(tokens))]


def masters_of(state: StackState, uid: str) -> set[str]:
    """Where Spark runs in the drivers that were given this pipeline."""
    homes = [DriverHome.model_validate_json(home.read_text()) for home in homes_of(state, uid)]
    return {home.spark.master for home in homes if home.spark is not None}
