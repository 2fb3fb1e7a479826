"""What a token promises, as a producer sees it: over HTTP, straight to Kafka, on bad input."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import Apply, Pipeline, order
from e2e.reading import rows_of
from waybill import Client, Invalid, NotFound, Position, ProblemError

WAIT_S = 120.0
Produce = Callable[[str, dict[str, object]], Position]


def test_a_record_sent_over_http_is_complete_with_the_snapshot_that_holds_it(
    client: Client, orders: Pipeline, catalog: SqlCatalog
) -> None:
    receipt = client.send(orders.name, "orders", [order(1), order(2), order(3)])

    outcome = client.wait(receipt.token, timeout_s=WAIT_S)

    assert receipt.accepted == 3
    assert outcome.kind == "complete"
    assert [stage.stage for stage in outcome.stages] == ["enrich", "load"]
    (lake,) = outcome.stages[1].sinks
    assert lake.state == "committed"
    snapshot_id = outcome.iceberg_snapshots["lake"]
    seen = rows_of(catalog, orders.table, snapshot_id).to_pylist()
    assert {1, 2, 3} <= {row["order_id"] for row in seen}
    assert all(row["tax"] == row["amount"] * Decimal("0.2") for row in seen)


def test_a_record_sent_straight_to_kafka_has_a_token_too(
    client: Client, orders: Pipeline, catalog: SqlCatalog, produce: Produce
) -> None:
    position = produce(orders.topic, order(50))

    token = client.token_for(orders.name, positions=[position]).token
    outcome = client.wait(token, timeout_s=WAIT_S)

    assert outcome.kind == "complete"
    snapshot_id = outcome.iceberg_snapshots["lake"]
    rows = rows_of(catalog, orders.table, snapshot_id).to_pylist()
    assert 50 in {row["order_id"] for row in rows}


def test_a_token_from_an_input_covers_all_that_it_holds_now(
    client: Client, orders: Pipeline, catalog: SqlCatalog, produce: Produce
) -> None:
    for number in range(60, 70):
        produce(orders.topic, order(number))

    token = client.token_for(orders.name, input="orders").token
    outcome = client.wait(token, timeout_s=WAIT_S)

    snapshot_id = outcome.iceberg_snapshots["lake"]
    rows = rows_of(catalog, orders.table, snapshot_id).to_pylist()
    assert set(range(60, 70)) <= {row["order_id"] for row in rows}


def test_following_a_token_ends_with_its_final_outcome(client: Client, orders: Pipeline) -> None:
    receipt = client.send(orders.name, "orders", [order(4)])

    outcomes = list(client.follow(receipt.token, timeout_s=WAIT_S))

    assert outcomes[-1].kind == "complete"
    assert all(outcome.kind != "complete" for outcome in outcomes[:-1])


def test_bad_rows_are_named_and_good_ones_arrive(
    client: Client, orders: Pipeline, catalog: SqlCatalog
) -> None:
    bad: list[dict[str, object] | bytes] = [order(81, amount="much"), b"{not json"]
    rows = [order(80), *bad, order(82)]

    receipt = client.send(orders.name, "orders", rows)
    outcome = client.wait(receipt.token, timeout_s=WAIT_S)

    assert receipt.accepted == 2
    assert [row.index for row in receipt.rejected] == [1, 2]
    assert "amount" in receipt.rejected[0].reason
    snapshot_id = outcome.iceberg_snapshots["lake"]
    numbers = [r["order_id"] for r in rows_of(catalog, orders.table, snapshot_id).to_pylist()]
    assert numbers.count(80) == numbers.count(82) == 1
    assert 81 not in numbers


def test_when_every_row_is_bad_nothing_is_produced(client: Client, orders: Pipeline) -> None:
    before = client.token_for(orders.name, input="orders")

    with pytest.raises(Invalid):
        client.send(orders.name, "orders", [order(90, amount="much")])

    after = client.token_for(orders.name, input="orders")
    assert client.outcome(after.token).kind == client.outcome(before.token).kind


def test_a_forged_token_is_not_found(client: Client, orders: Pipeline) -> None:
    receipt = client.send(orders.name, "orders", [order(5)])
    forged = receipt.token[:-3] + ("AAA" if receipt.token[-3:] != "AAA" else "BBB")

    with pytest.raises(NotFound):
        client.outcome(forged)


def test_a_position_beyond_the_end_is_refused_at_birth(
    client: Client, orders: Pipeline, produce: Produce
) -> None:
    position = produce(orders.topic, order(6))
    beyond = Position(
        topic=position.topic,
        topic_id=position.topic_id,
        partition=position.partition,
        offset=position.offset + 1_000_000,
    )

    with pytest.raises(ProblemError) as refused:
        client.token_for(orders.name, positions=[beyond])

    assert refused.value.status == 400


def test_records_before_a_stage_began_are_lost_and_say_so(
    client: Client, apply_orders: Apply, produce: Produce
) -> None:
    stopped = apply_orders(("version: 1\n", "version: 1\nstate: stopped\n"))
    early = produce(stopped.topic, order(1))
    late_name = f"{stopped.name}-late"
    manifest = _late_reader(client, stopped, late_name)
    done = client.operation(client.apply(manifest).id, wait_s=120.0)
    assert done.state == "done", done.errors

    token = client.token_for(late_name, positions=[early]).token
    outcome = client.wait(token, timeout_s=WAIT_S)

    assert outcome.kind == "lost"
    (lost,) = outcome.lost
    assert lost.reason == "before_start"
    assert (lost.partition, lost.start) == (early.partition, early.offset)
    assert lost.end == early.offset + 1


def _late_reader(client: Client, pipeline: Pipeline, name: str) -> str:
    """The same pipeline under another name, beginning at the end of the topic."""
    manifest = client.pipeline(pipeline.name).manifest
    assert manifest is not None
    for old, new in (
        ("state: stopped\n", "state: running\n"),
        (f"name: {pipeline.name}\n", f"name: {name}\n"),
        (f"{pipeline.name}.enriched", f"{name}.enriched"),
        (pipeline.table, f"{pipeline.table}_late"),
        ("format: json\n", "format: json\n    startingOffsets: latest\n"),
    ):
        assert old in manifest, old
        manifest = manifest.replace(old, new, 1)
    return manifest
