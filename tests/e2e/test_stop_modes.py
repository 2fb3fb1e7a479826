"""How a pipeline stops: after its batch, or at once. Each row is there once, either way."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import httpx2
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import Apply, order
from e2e.reading import rows_of
from waybill import Client
from waybill.models import Operation, StopMode
from waybill_local.stack import StackState
from waybill_shared.contract.commands import STOP_MODES
from waybill_shared.contract.commands import StopMode as Mode

WAIT_S = 120.0
STOPS = 2
PART = 5
PACE_S = 0.1  # between two requests


def await_done(client: Client, operation: Operation) -> None:
    done = client.operation(operation.id, wait_s=WAIT_S)
    assert done.state == "done", done.errors
    assert not any(each.startswith("the run ") for each in done.warnings), done.warnings


def send_part(client: Client, pipeline: str, tokens: list[str]) -> None:
    """Send the next orders, each with a number of its own, and keep their token."""
    first = PART * len(tokens)
    orders = [order(number) for number in range(first, first + PART)]
    tokens.append(client.send(pipeline, "orders", orders).token)


@contextmanager
def load(url: str, pipeline: str, tokens: list[str]) -> Iterator[None]:
    """Send orders all the time."""
    over = threading.Event()

    def run() -> None:
        with Client(url) as client:
            while not over.wait(PACE_S):
                send_part(client, pipeline, tokens)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def uncommitted(stack: StackState, client: Client, name: str) -> list[str]:
    """The stages of which Spark's checkpoint has not the last batch of their sinks as done."""
    pipeline = client.pipeline(name)
    folder = stack.folder / "stage_runner" / str(pipeline.uid) / "checkpoints"
    found = []
    for stage in pipeline.stages:
        (last,) = (each for each in folder.glob(f"{stage.name}@*/*/commits") if each.is_dir())
        commits = [int(file.name) for file in last.iterdir() if file.name.isdigit()]
        assert stage.last_batch is not None
        if max(commits, default=-1) < int(str(stage.last_batch["batch"])):
            found.append(stage.name)
    return found


@pytest.mark.parametrize("mode", ["checkpoint", "force"])
def test_a_pipeline_that_stops_under_load_goes_on_where_its_sinks_are(
    mode: StopMode, client: Client, stack: StackState, apply_orders: Apply, catalog: SqlCatalog
) -> None:
    pipeline, tokens = apply_orders(), list[str]()
    send_part(client, pipeline.name, tokens)
    with load(stack.url, pipeline.name, tokens):
        for _ in range(STOPS):
            assert client.wait(tokens[-1], timeout_s=WAIT_S).kind == "complete"
            await_done(client, client.stop(pipeline.name, mode))
            assert mode == "force" or uncommitted(stack, client, pipeline.name) == []
            await_done(client, client.start(pipeline.name))
    outcome = client.wait(client.merge(tokens), timeout_s=WAIT_S)
    assert outcome.kind == "complete"
    rows = rows_of(catalog, pipeline.table, outcome.iceberg_snapshots["lake"]).to_pylist()
    assert sorted(row["order_id"] for row in rows) == [*range(PART * len(tokens))]


def test_a_drained_pipeline_has_brought_all_of_before_to_every_sink(
    client: Client, stack: StackState, apply_orders: Apply
) -> None:
    pipeline, tokens = apply_orders(), list[str]()
    send_part(client, pipeline.name, tokens)
    with load(stack.url, pipeline.name, tokens):
        client.wait(tokens[-1], timeout_s=WAIT_S)
        before = list(tokens)
        await_done(client, client.stop(pipeline.name, "drain"))
        assert {client.outcome(token).kind for token in before} == {"complete"}
    assert client.outcome(tokens[-1]).kind == "in_progress", "what came later waits"
    refused = client.operation(client.stop(pipeline.name, "drain").id, wait_s=WAIT_S)
    assert refused.problem == "not_allowed_now"
    assert "only a pipeline that is Running can be drained" in refused.errors[0].message
    await_done(client, client.start(pipeline.name))
    assert client.wait(tokens[-1], timeout_s=WAIT_S).kind == "complete"


def test_a_stop_says_when_it_becomes_a_stronger_one(
    client: Client, stack: StackState, apply_orders: Apply
) -> None:
    pipeline = apply_orders()
    await_done(client, client.stop(pipeline.name))
    events = httpx2.get(f"{stack.url}/v1/pipelines/{pipeline.name}/events").json()["items"]
    (stopping,) = (each for each in events if each["phase"] == "CheckpointStopping")
    at, escalates_at = (datetime.fromisoformat(stopping[key]) for key in ("at", "escalates_at"))
    limit_s = STOP_MODES[Mode.CHECKPOINT].limit_ms / 1000
    assert (escalates_at - at).total_seconds() == pytest.approx(limit_s, abs=1)
