"""Hundreds of records at which a query ends, or that a sink refuses: each dies once."""

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.test_dead_letters import MANIFEST, Pipeline, Sinks, order
from e2e.waiting import eventually
from postgres import Database
from waybill import Client
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin

WAIT_S = 120.0
SEARCH_S = 300.0  # some hundred jobs of Spark, on a machine that has other work
FAILING, REFUSED, GOOD = range(200), range(200, 220), range(220, 240)


@pytest.mark.usefixtures("alone")
def test_many_bad_records_are_found_once_though_the_driver_dies_in_the_search(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> None:
    pipeline = Pipeline(client, stack, kafka, MANIFEST, budget=1_000)
    Database.of(stack).ask(f"ALTER TABLE public.{pipeline.table} ADD CHECK (amount < 1000)")
    values = [order(number, amount=0) for number in FAILING]
    values += [order(number, amount=5000) for number in REFUSED]
    values += [order(number) for number in GOOD]
    sent = pipeline.send(*values)
    for _ in range(2):  # before it, and in what is done again
        eventually(lambda: search_in(pipeline, sent[0].token), within_s=WAIT_S)
        pipeline.kill_driver()
    outcomes = pipeline.outcomes(sent, within_s=SEARCH_S)
    assert [each.kind for each in outcomes] == ["dead_lettered"] * 220 + ["complete"] * 20
    assert {each.dead[0].reason for each in outcomes[: len(FAILING)]} == {"failed"}
    dead = [message.value() or b"" for message in pipeline.buried()]
    assert sorted(dead) == sorted(values[: len(FAILING) + len(REFUSED)])
    into = Sinks(pipeline, catalog).numbers()
    assert sorted(into["postgres"]) == [*GOOD]
    assert sorted(into["kafka"]) == sorted(into["iceberg"]) == [*REFUSED, *GOOD]


def search_in(pipeline: Pipeline, token: str) -> bool:
    """Return True if token and pipeline say that bad records are looked for, and how far that
    is."""
    blocked = [
        sink.blocked_by for stage in pipeline.client.outcome(token).stages for sink in stage.sinks
    ]
    said = [
        sink.message or ""
        for stage in pipeline.client.pipeline(pipeline.name).stages
        for sink in stage.sinks
    ]
    return blocked == ["searching_for_bad_records"] * 3 and all("left to try" in s for s in said)
