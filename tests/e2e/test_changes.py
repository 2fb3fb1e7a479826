"""A manifest that changes under living tokens: what they wait for, and what they are told."""

import uuid
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import START_TIMEOUT_S, Apply, Pipeline, order
from e2e.faults import kill
from e2e.reading import rows_of
from e2e.waiting import drivers_of, eventually
from waybill import Client
from waybill.outcomes import Outcome
from waybill_local.stack import StackState
from waybill_shared.process.failpoints import REACHED

WAIT_S = 120.0
LATER_STAGE = """
  - name: second
    inputs: [enriched_topic]
    trigger: {processingTime: 1 second}
    sinks:
      - {name: copy, iceberg: {table: TABLE_copy}}
"""
LATER_SINK = "\n      - {name: copy, iceberg: {table: TABLE_copy}}\n"


@pytest.fixture
def orders(apply_orders: Apply) -> Pipeline:
    return apply_orders()


TYPED = """\
version: 1
name: {name}
inputs:
  - name: notes
    kafka: {{topic: {name}}}
    schema: "id BIGINT, note {type}"
stages:
  - {{name: copy, inputs: [notes], sinks: [{{name: out, kafka: {{topic: {name}.out}}}}]}}
"""


def manifest_of(client: Client, pipeline: Pipeline) -> str:
    text = client.pipeline(pipeline.name).manifest
    assert text is not None
    return text


def apply(client: Client, manifest: str) -> None:
    done = client.operation(client.apply(manifest).id, wait_s=START_TIMEOUT_S)
    assert done.state == "done", done.errors


def send(client: Client, pipeline: Pipeline, number: int) -> str:
    return client.send(pipeline.name, "orders", [order(number)]).token


def complete(client: Client, token: str) -> Outcome:
    outcome = client.wait(token, timeout_s=WAIT_S)
    assert outcome.kind == "complete"
    return outcome


def sinks_of(outcome: Outcome) -> set[str]:
    return {sink.name for stage in outcome.stages for sink in stage.sinks}


def states_of(outcome: Outcome) -> dict[str, str]:
    return {sink.name: sink.state for stage in outcome.stages for sink in stage.sinks}


def orders_in(catalog: SqlCatalog, table: str, snapshot_id: int) -> list[int]:
    rows = rows_of(catalog, table, snapshot_id).to_pylist()
    return sorted(row["order_id"] for row in rows)


def test_a_sink_that_is_added_begins_at_the_change_and_asks_nothing_of_older_tokens(
    client: Client, orders: Pipeline, catalog: SqlCatalog
) -> None:
    before = send(client, orders, 1)
    complete(client, before)
    manifest = manifest_of(client, orders)

    apply(client, manifest.rstrip() + LATER_SINK.replace("TABLE", orders.table))

    assert sinks_of(complete(client, before)) == {"enriched_topic", "lake"}
    after = complete(client, send(client, orders, 2))
    assert sinks_of(after) == {"enriched_topic", "lake", "copy"}
    copy = f"{orders.table}_copy"
    assert orders_in(catalog, copy, after.iceberg_snapshots["copy"]) == [2]
    assert orders_in(catalog, orders.table, after.iceberg_snapshots["lake"]) == [1, 2]
    everything = client.token_for(orders.name, input="orders").token
    assert sinks_of(complete(client, everything)) == {"enriched_topic", "lake", "copy"}


def test_a_sink_that_comes_after_a_refused_change_begins_at_the_change_that_was_not(
    client: Client, orders: Pipeline, catalog: SqlCatalog
) -> None:
    complete(client, send(client, orders, 1))
    manifest = manifest_of(client, orders).rstrip() + LATER_SINK.replace("TABLE", orders.table)
    refused = client.apply(manifest.replace("FROM orders", "FROM nonsense"))
    assert client.operation(refused.id, wait_s=START_TIMEOUT_S).state == "failed"
    before = complete(client, send(client, orders, 1))
    assert sinks_of(before) == {"enriched_topic", "lake"}

    apply(client, manifest)

    after = complete(client, send(client, orders, 1))
    assert sinks_of(after) == {"enriched_topic", "lake", "copy"}
    rows = catalog.load_table(f"{orders.table}_copy").scan().to_arrow().to_pylist()
    assert [row["order_id"] for row in rows] == [1]


def test_a_stage_that_is_added_reads_all_that_is_left_and_older_tokens_do_not_wait_for_it(
    client: Client, orders: Pipeline, catalog: SqlCatalog
) -> None:
    before = send(client, orders, 1)
    complete(client, before)

    apply(client, manifest_of(client, orders).rstrip() + LATER_STAGE.replace("TABLE", orders.table))

    assert sinks_of(complete(client, before)) == {"enriched_topic", "lake"}
    after = complete(client, send(client, orders, 2))
    assert sinks_of(after) == {"enriched_topic", "lake", "copy"}
    copy = f"{orders.table}_copy"
    assert orders_in(catalog, copy, after.iceberg_snapshots["copy"]) == [1, 2]


def test_a_stage_that_is_removed_is_not_waited_for_any_more(
    client: Client, orders: Pipeline
) -> None:
    manifest = manifest_of(client, orders)
    first = send(client, orders, 1)
    complete(client, first)

    apply(client, manifest[: manifest.index("  - name: load")])

    assert states_of(complete(client, first)) == {"enriched_topic": "committed", "lake": "removed"}
    assert sinks_of(complete(client, send(client, orders, 2))) == {"enriched_topic"}


def test_a_stage_removed_in_the_middle_of_its_batch_tells_first_what_it_wrote(
    client: Client, orders: Pipeline, stack: StackState, failpoints: Path, catalog: SqlCatalog
) -> None:
    """Its row stands in the table, and the driver is killed before it says so."""
    manifest, uid = manifest_of(client, orders), client.pipeline(orders.name).uid
    complete(client, send(client, orders, 1))
    point = failpoints / f"{uid}.lake.after_commit"
    point.touch()
    token = send(client, orders, 2)
    eventually(point.with_name(point.name + REACHED).exists, within_s=WAIT_S)

    removal = client.apply(manifest[: manifest.index("  - name: load")])
    eventually(lambda: client.pipeline(orders.name).phase == "Restarting", within_s=WAIT_S)
    assert client.outcome(token).kind == "in_progress"
    kill(drivers_of(stack, str(uid)))

    assert client.operation(removal.id, wait_s=START_TIMEOUT_S).state == "done"
    assert states_of(complete(client, token))["lake"] == "removed"
    rows = catalog.load_table(orders.table).scan().to_arrow().to_pylist()
    assert sorted(row["order_id"] for row in rows) == [1, 2]


def test_a_pipeline_of_a_deleted_ones_name_is_another_one(
    client: Client, orders: Pipeline, catalog: SqlCatalog
) -> None:
    manifest = manifest_of(client, orders)
    done, uid = send(client, orders, 1), client.pipeline(orders.name).uid
    complete(client, done)
    deleted = client.operation(client.delete(orders.name).id, wait_s=WAIT_S)
    assert deleted.state == "done", deleted.errors

    apply(client, manifest)

    assert client.pipeline(orders.name).uid != uid
    assert complete(client, done).iceberg_snapshots["lake"]
    again = complete(client, send(client, orders, 2))
    rows = orders_in(catalog, orders.table, again.iceberg_snapshots["lake"])
    assert rows == [1, 1, 1, 2]  # the input once more, and what the topic between the stages held


def test_a_record_that_does_not_fit_a_changed_type_becomes_a_dead_letter(client: Client) -> None:
    """As docs/changing.md says: the stage goes on, and the next record that fits is there."""
    name = f"notes-{uuid.uuid4().hex[:8]}"
    apply(client, TYPED.format(name=name, type="STRING"))
    client.operation(client.stop(name).id, wait_s=START_TIMEOUT_S)
    old = client.send(name, "notes", [{"id": 1, "note": "a text"}]).token

    apply(client, TYPED.format(name=name, type="INT"))
    new = client.send(name, "notes", [{"id": 2, "note": 5}]).token

    assert client.wait(old, timeout_s=WAIT_S).kind == "dead_lettered"
    complete(client, new)
