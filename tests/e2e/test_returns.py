"""Names that come back, move or go: no row and no answer is taken for one of an earlier life."""

import uuid
from dataclasses import dataclass

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import START_TIMEOUT_S
from e2e.reading import committed_orders, rows_of
from waybill import Client, Operation
from waybill.outcomes import Outcome
from waybill_local.stack import StackState
from waybill_shared.kafka.admin import KafkaAdmin

WAIT_S = 120.0
INPUT = """
  - name: {input}
    kafka: {{topic: {topic}, partitions: 1}}
    schema: "order_id BIGINT, customer STRING"
"""
STAGE = """
  - name: {stage}
    inputs: [{input}]
    trigger: {{processingTime: 100 milliseconds}}
    sinks: [{sink}]
"""
SHORT = {"customer": "ada"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """A pipeline whose manifest is put together anew for each change."""

    client: Client
    name: str

    def input(self, name: str, topic: str = "in") -> str:
        return INPUT.format(input=name, topic=f"{self.name}.{topic}")

    def stage(self, name: str, source: str, *sinks: str) -> str:
        return STAGE.format(stage=name, input=source, sink=", ".join(sinks))

    def topic_sink(self, name: str, topic: str) -> str:
        return f"{{name: {name}, kafka: {{topic: {self.name}.{topic}, partitions: 1}}}}"

    def table_sink(self, name: str, table: str) -> str:
        return f"{{name: {name}, iceberg: {{table: {self.table(table)}}}}}"

    def table(self, table: str) -> str:
        return f"raw.{self.name.replace('-', '_')}_{table}"

    def change(self, *parts: str) -> Operation:
        inputs = [part for part in parts if "inputs:" not in part]
        stages = [part for part in parts if "inputs:" in part]
        head = f"version: 1\nname: {self.name}\n"
        text = f"{head}inputs:{''.join(inputs)}stages:{''.join(stages)}"
        return self.client.operation(self.client.apply(text).id, wait_s=START_TIMEOUT_S)

    def apply(self, *parts: str) -> None:
        done = self.change(*parts)
        assert done.state == "done", done.errors

    def refusal(self, *parts: str) -> str:
        refused = self.change(*parts)
        assert refused.state == "failed"
        return str(refused.errors)

    def send(self, source: str, *numbers: int) -> str:
        records = [{"order_id": number, **SHORT} for number in numbers]
        return self.client.send(self.name, source, records).token

    def wait(self, token: str) -> Outcome:
        return self.client.wait(token, timeout_s=WAIT_S)

    def complete(self, token: str) -> Outcome:
        outcome = self.wait(token)
        assert outcome.kind == "complete", outcome
        return outcome


@pytest.fixture
def shop(client: Client) -> Shop:
    return Shop(client=client, name=f"shop-{uuid.uuid4().hex[:8]}")


def test_a_stage_that_returns_with_other_sinks_writes_all_that_its_input_holds(
    shop: Shop, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> None:
    """Under its name, but not behind the fences and the checkpoint of its first life."""
    source = shop.input("orders")
    keep = shop.stage("keep", "orders", shop.topic_sink("kept", "kept"))
    feed = shop.stage(
        "feed", "orders", shop.topic_sink("out", "one"), shop.table_sink("lake", "one")
    )
    shop.apply(source, keep, feed)
    first = shop.send("orders", 1, 2)
    shop.complete(first)

    shop.apply(source, keep)
    between = shop.send("orders", 3)
    shop.complete(between)
    assert {sink.state for s in shop.wait(first).stages for sink in s.sinks} == {
        "committed", "removed",
    }  # fmt: skip

    again = shop.stage(
        "feed", "orders", shop.topic_sink("out", "two"), shop.table_sink("lake", "two")
    )
    shop.apply(source, keep, again)
    last = shop.complete(shop.send("orders", 4))
    shop.complete(shop.client.token_for(shop.name, input="orders").token)

    assert committed_orders(stack, kafka, f"{shop.name}.two") == [1, 2, 3, 4]
    rows = rows_of(catalog, shop.table("two"), last.iceberg_snapshots["lake"])
    assert sorted(rows.column("order_id").to_pylist()) == [1, 2, 3, 4]
    assert committed_orders(stack, kafka, f"{shop.name}.one") == [1, 2]
    shop.complete(first)
    shop.complete(between)


def test_tokens_outlive_the_names_of_their_inputs_and_what_cannot_be_told_is_refused(
    shop: Shop,
) -> None:
    orders, returns = shop.input("orders"), shop.input("returns", "returns")
    copy = shop.stage("copy", "orders", shop.topic_sink("middle", "middle"))
    load = shop.stage("load", "middle", shop.table_sink("lake", "lake"))
    other = shop.stage("other", "returns", shop.topic_sink("others", "others"))
    shop.apply(orders, returns, copy, load, other)
    sent, returned = shop.send("orders", 1), shop.send("returns", 9)
    shop.complete(sent)
    shop.complete(returned)

    middle_alone = shop.input("outside", "middle")
    turned = shop.stage("load", "outside", shop.table_sink("lake", "lake"))
    assert "plan_incompatible: stage load read" in shop.refusal(middle_alone, turned)
    renamed = shop.stage(
        "load", "middle", shop.table_sink("pond", "lake"), shop.table_sink("x", "x")
    )
    assert "wrote lakehouse.raw" in shop.refusal(orders, returns, copy, renamed, other)

    copy_of_renamed = shop.stage("copy", "sales", shop.topic_sink("middle", "middle"))
    shop.apply(shop.input("sales"), copy_of_renamed, load)

    assert shop.complete(sent).pipeline == shop.name
    assert {sink.state for s in shop.wait(returned).stages for sink in s.sinks} == {"committed"}
    shop.complete(returned)
    shop.complete(shop.send("sales", 2))
