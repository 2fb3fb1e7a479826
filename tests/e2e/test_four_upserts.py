"""Four pipelines that upsert the same keys of one table in a lakehouse, for a minute."""

import random
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.every_sink import START_TIMEOUT_S
from waybill import Client
from waybill_local.stack import StackState

GOING_S = 60
PIPELINES = 4
KEYS = 50
WAIT_S = 120  # a batch tries again for a minute before its pipeline begins anew
SHARE_MIN = 0.25  # of what it would have if all had the same
PIPELINE = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "key BIGINT, by BIGINT, at BIGINT"
stages:
  - name: load
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks:
      - name: newest
        iceberg: {{table: raw.{table}, mode: upsert, keys: [key], shared: true}}
"""
Sent = list[dict[int, int]]
"""By batch, which number a key was given."""


@pytest.fixture
def table(client: Client) -> Iterator[str]:
    name = f"shared_{uuid.uuid4().hex[:8]}"
    yield name
    for number in range(PIPELINES):
        client.delete(f"{name}_{number}")


def test_the_last_word_stays_no_row_comes_twice_and_each_has_its_turn(
    client: Client, stack: StackState, catalog: SqlCatalog, table: str
) -> None:
    for number in range(PIPELINES):
        text = PIPELINE.format(name=f"{table}_{number}", table=table)
        done = client.operation(client.apply(text).id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors

    def send(number: int) -> Sent:
        """One after the other, so that each is a batch of its own."""
        dice = random.Random(number)
        sent: Sent = []
        until = time.monotonic() + GOING_S
        with Client(stack.url) as own:
            while time.monotonic() < until:
                rows = {key: len(sent) for key in dice.sample(range(KEYS), KEYS // 2)}
                made = [{"key": key, "by": number, "at": at} for key, at in rows.items()]
                token = own.send(f"{table}_{number}", "orders", made).token
                assert own.wait(token, timeout_s=WAIT_S).kind == "complete"
                sent.append(rows)
        return sent

    with ThreadPoolExecutor(PIPELINES) as pool:
        sent = list(pool.map(send, range(PIPELINES)))

    made = catalog.load_table(f"raw.{table}")
    for snapshot in made.snapshots():  # a later batch mends what an earlier one wrote twice
        keys = made.scan(snapshot_id=snapshot.snapshot_id).to_arrow().column("key")
        assert len(keys.unique()) == len(keys)
    found = made.scan().to_arrow().to_pylist()
    assert sorted(row["key"] for row in found) == [*range(KEYS)]
    for row in found:
        assert row["at"] == max(rows.get(row["key"], -1) for rows in sent[row["by"]])
    batches = [len(each) for each in sent]
    assert min(batches) >= SHARE_MIN * sum(batches) / PIPELINES, batches
