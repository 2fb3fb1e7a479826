"""A pipeline is paused and continues: its driver stays, and each row is there once."""

from itertools import pairwise

import httpx2
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import Apply, order
from e2e.faults import kill
from e2e.reading import rows_of
from e2e.test_stop_modes import PART, await_done, load, send_part
from e2e.waiting import leaders_of, run_of
from integration.waiting import eventually
from waybill import Client, StillInProgress
from waybill_local.stack import StackState

WAIT_S = 120.0
QUIET_S = 4.0  # so long that a batch begins if none waits
PAUSES = 1


def is_paused(client: Client, name: str) -> bool:
    return client.pipeline(name).phase == "Paused"


def assert_no_batch_in_pauses(client: Client, name: str, count: int) -> None:
    """By the clocks of driver and runner, which are of one machine."""
    moves = [each for each in client.history(name, after="0") if each.kind == "transition"]
    pauses = [
        (one.at, other.at)
        for one, other in pairwise(moves)
        if one.phase == "Paused" and one.at is not None and other.at is not None
    ]
    assert len(pauses) == count
    for stage in client.pipeline(name).stages:
        for batch in client.batches(name, stage.name, after="0"):
            assert batch.started_at is not None
            during = [at for at in pauses if at[0] < batch.started_at < at[1]]
            assert not during, f"batch {batch.batch} of {stage.name} began in a pause"


def test_a_paused_pipeline_processes_nothing_and_continues_with_its_driver(
    client: Client, stack: StackState, apply_orders: Apply, catalog: SqlCatalog
) -> None:
    pipeline, tokens = apply_orders(), list[str]()
    send_part(client, pipeline.name, tokens)
    run = run_of(client, stack, pipeline.name)
    with load(stack.url, pipeline.name, tokens):
        for _ in range(PAUSES):
            client.wait(tokens[-1], timeout_s=WAIT_S)
            await_done(client, client.pause(pipeline.name))
            last = client.send(pipeline.name, "orders", [order(-1)]).token
            client.wait_pipeline(pipeline.name, "Paused", WAIT_S)
            with pytest.raises(StillInProgress) as waited:
                client.wait(last, timeout_s=QUIET_S)
            assert {stage.blocked_by for stage in waited.value.outcome.stages} == {"paused"}
            await_done(client, client.resume(pipeline.name))
            assert client.wait(last, timeout_s=WAIT_S).kind == "complete"
    assert run_of(client, stack, pipeline.name) == run
    outcome = client.wait(client.merge(tokens), timeout_s=WAIT_S)
    assert outcome.kind == "complete"
    assert_no_batch_in_pauses(client, pipeline.name, PAUSES)
    rows = rows_of(catalog, pipeline.table, outcome.iceberg_snapshots["lake"]).to_pylist()
    ours = sorted(row["order_id"] for row in rows if row["order_id"] >= 0)
    assert ours == [*range(PART * len(tokens))]
    assert len(rows) - len(ours) == PAUSES


def test_a_pause_outlives_its_driver_and_a_change(
    client: Client, stack: StackState, apply_orders: Apply
) -> None:
    pipeline = apply_orders()
    await_done(client, client.pause(pipeline.name))
    late = client.send(pipeline.name, "orders", [order(1)]).token
    before = client.pipeline(pipeline.name)
    run = before.run or 0
    kill(leaders_of(stack, str(before.uid)))
    eventually(lambda: (client.pipeline(pipeline.name).run or 0) > run, within_s=WAIT_S)
    eventually(lambda: is_paused(client, pipeline.name), within_s=WAIT_S)

    manifest = str(before.manifest).replace("1 second", "2 seconds")
    await_done(client, client.apply(manifest))
    changed = client.wait_pipeline(pipeline.name, "Paused", WAIT_S)
    assert changed.desired == "paused"
    assert changed.generation == (before.generation or 0) + 1
    assert "resume" in changed.allowed_actions
    assert "pause" not in changed.allowed_actions
    assert client.outcome(late).kind == "in_progress"

    await_done(client, client.resume(pipeline.name))
    assert client.wait(late, timeout_s=WAIT_S).kind == "complete"


def test_what_a_phase_does_not_allow_is_refused(
    client: Client, stack: StackState, apply_orders: Apply
) -> None:
    pipeline = apply_orders()
    await_done(client, client.stop(pipeline.name))
    refused = client.operation(client.pause(pipeline.name).id, wait_s=WAIT_S)
    assert refused.problem == "not_allowed_now"
    assert refused.errors[0].message == f"{pipeline.name} is Stopped: pause is not possible now"
    stopped = client.wait_pipeline(pipeline.name, "Stopped", WAIT_S)
    assert stopped.allowed_actions == (
        "start",
        "apply",
        "restart",
        "set_offsets",
        "rescale",
        "delete",
    )
    feldera = f"{stack.url}/v0/pipelines/{pipeline.name}"
    assert httpx2.post(f"{feldera}/start?initial=paused", timeout=WAIT_S).is_success
    eventually(lambda: is_paused(client, pipeline.name), within_s=WAIT_S)
    assert httpx2.get(feldera).json()["deployment_status"] == "Paused"
    assert httpx2.post(f"{feldera}/resume", timeout=WAIT_S).is_success
    await_done(client, client.resume(pipeline.name))
    client.wait_pipeline(pipeline.name, "Running", WAIT_S)
