"""Dead letters that are replayed into tables that readers use, in any state of their pipeline."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.test_replays import WAIT_S, Mended, only_dead
from e2e.topics import remove_records
from e2e.waiting import eventually
from waybill import Client, Conflict, Expired
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin

MANIFEST = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "order_id BIGINT, amount INT"
    expectations: [{{name: enough, expect: "amount >= {least}"}}]
stages:
  - name: first
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks:
      - {{name: all, iceberg: {{table: {table}_all}}}}
      - {{name: last, iceberg: {{table: {table}_last, mode: upsert, keys: [order_id]}}}}
      - name: greatest
        iceberg: {{table: {table}_greatest, mode: upsert, keys: [order_id], orderBy: amount}}
"""
SINKS = ("all", "last", "greatest")
OLD = 5
"""The amount of each order that died, before less was asked for."""
EVERYWHERE = {sink: [OLD] for sink in SINKS}
NOWHERE: dict[str, list[int]] = {sink: [] for sink in SINKS}


class IntoTables(Mended):
    manifest = MANIFEST

    def __init__(
        self, client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
    ) -> None:
        self.catalog = catalog
        super().__init__(client, stack, kafka)
        tokens = {order: self.send(order, OLD) for order in range(1, 8)}
        self.letters = {order: only_dead(self.outcome(each)).id for order, each in tokens.items()}
        self.ask_for(0)

    def replay(self, client: Client, *orders: int, yes: bool = True) -> str:
        """Return the token of the replay."""
        ids = [self.letters[order] or "" for order in orders]
        return client.replay(self.name, ids, yes=yes).token

    def rows(self, sink: str) -> list[tuple[int, int]]:
        """Order and amount of each row of a table, for who reads it now."""
        rows = self.catalog.load_table(f"{self.table}_{sink}").scan().to_arrow().to_pylist()
        return sorted((row["order_id"], row["amount"]) for row in rows)

    def amounts(self, order: int) -> dict[str, list[int]]:
        return {sink: [a for n, a in self.rows(sink) if n == order] for sink in SINKS}

    def done(self, what: str) -> None:
        operation = getattr(self.client, what)(self.name)
        found = self.client.operation(operation.id, wait_s=WAIT_S)
        assert found.state == "done", found.errors

    def await_blocked(self, token: str, by: str) -> None:
        def said() -> bool:
            outcome = self.client.outcome(token)
            assert outcome.kind == "in_progress"
            return {stage.blocked_by for stage in outcome.stages} == {by}

        eventually(said, within_s=WAIT_S)


@pytest.fixture(scope="module")
def pipeline(
    client: Client, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> Iterator[IntoTables]:
    made = IntoTables(client, stack, kafka, catalog)
    yield made
    client.delete(made.name)


def test_an_old_row_takes_the_place_of_a_newer_one_only_without_order(
    pipeline: IntoTables, client: Client
) -> None:
    """So it has to be confirmed."""
    assert pipeline.outcome(pipeline.send(1, 50)).kind == "complete"
    with pytest.raises(Conflict, match="newer one in last"):
        pipeline.replay(client, 1, yes=False)
    assert pipeline.outcome(pipeline.replay(client, 1)).kind == "complete"
    assert pipeline.amounts(1) == {"all": [OLD, 50], "last": [OLD], "greatest": [50]}


def test_many_clients_replay_a_letter_once(pipeline: IntoTables, stack: StackState) -> None:
    def ask(_: int) -> str:
        with Client(stack.url) as client:
            return pipeline.replay(client, 2)

    with ThreadPoolExecutor(4) as pool:
        tokens = [*pool.map(ask, range(4))]
    assert {pipeline.outcome(token).kind for token in tokens} == {"complete"}
    assert pipeline.amounts(2) == EVERYWHERE


def test_it_waits_while_its_pipeline_is_paused_or_stopped_and_says_so(
    pipeline: IntoTables, client: Client
) -> None:
    pipeline.done("pause")
    first = pipeline.replay(client, 3)
    pipeline.await_blocked(first, "paused")
    pipeline.done("stop")
    second = pipeline.replay(client, 4)
    for token in (first, second):
        pipeline.await_blocked(token, "stage_stopped")
    assert pipeline.amounts(3) == pipeline.amounts(4) == NOWHERE
    pipeline.done("start")
    assert {pipeline.outcome(token).kind for token in (first, second)} == {"complete"}
    assert pipeline.amounts(3) == pipeline.amounts(4) == EVERYWHERE


def test_a_letter_that_retention_removes_before_its_replay_is_lost(
    pipeline: IntoTables, client: Client, kafka: KafkaAdmin
) -> None:
    pipeline.done("pause")
    gone, there = pipeline.replay(client, 5), pipeline.replay(client, 6)
    left = (pipeline.letters[6] or "").split(":")[2]
    remove_records(kafka, f"{pipeline.topic}.dlq", int(left))
    pipeline.done("resume")
    outcome = pipeline.outcome(gone)
    assert outcome.kind == "lost"
    assert [(each.reason, each.topic) for each in outcome.lost] == [("retention_passed", "replays")]
    assert pipeline.outcome(there).kind == "complete"
    assert pipeline.amounts(5) == NOWHERE
    assert pipeline.amounts(6) == EVERYWHERE
    with pytest.raises(Expired):
        client.replay(pipeline.name, [pipeline.letters[5] or ""], again=True, yes=True)


def test_nothing_is_replayed_into_a_table_that_is_another_one(
    pipeline: IntoTables, client: Client
) -> None:
    """The stage refuses to go on: the new table would lack what the old one had."""
    pipeline.done("stop")
    pipeline.catalog.drop_table(f"{pipeline.table}_all")
    token = pipeline.replay(client, 7)
    failed = client.operation(client.start(pipeline.name).id, wait_s=WAIT_S)
    assert failed.state == "failed"
    assert "sink all has no fence" in failed.errors[0].message
    pipeline.await_blocked(token, "stage_failed")
    assert 7 not in [order for sink in SINKS[1:] for order, _ in pipeline.rows(sink)]
