"""Two pipelines that write the same keys of one table, at the same time."""

import random
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from e2e.every_sink import START_TIMEOUT_S, WAIT_S
from postgres import Database
from waybill import Client
from waybill_local.stack import StackState

BATCHES = 40  # of each pipeline
KEYS = 100
GOING = 400  # keys beyond those, whose rows come and go
PIPELINE = """
version: 1
name: {name}
inputs:
  - name: orders
    kafka: {{topic: {name}.in, partitions: 1}}
    schema: "key BIGINT, at BIGINT, gone BOOLEAN"
stages:
  - name: load
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks:
      - name: newest
        postgres:
          connection: warehouse
          table: public.{table}
          mode: upsert
          keys: [key]
          shared: true
          orderBy: at
          deleteWhere: gone
"""
Row = dict[str, int | bool]


@pytest.fixture
def table(client: Client) -> Iterator[str]:
    name = f"shared_{uuid.uuid4().hex[:8]}"
    yield name
    for pipeline in names(name):
        client.delete(pipeline)


def names(table: str) -> list[str]:
    return [f"{table}_{which}" for which in ("a", "b")]


def batches(dice: random.Random) -> list[list[Row]]:
    """Every key once in each, in any order, and no value of `at` twice."""
    at = list(range(2 * BATCHES * (KEYS + GOING)))
    dice.shuffle(at)
    made = []
    for _ in range(2 * BATCHES):
        keys = dice.sample(range(KEYS + GOING), KEYS + GOING)
        gone = [key >= KEYS and dice.random() < 0.5 for key in keys]
        made.append(
            [{"key": k, "at": at.pop(), "gone": g} for k, g in zip(keys, gone, strict=True)]
        )
    return made


def last_of(sent: Sequence[Sequence[Row]]) -> dict[int, int]:
    last: dict[int, int] = {}
    for rows in sent:
        for row in rows:
            last[row["key"]] = max(last.get(row["key"], 0), row["at"])
    return last


def test_two_pipelines_write_one_table_and_neither_waits_for_the_other_in_a_ring(
    client: Client, stack: StackState, table: str
) -> None:
    """Each row is the greatest of both, whoever came later."""
    database = Database.of(stack)
    for pipeline in names(table):
        text = PIPELINE.format(name=pipeline, table=table)
        done = client.operation(client.apply(text).id, wait_s=START_TIMEOUT_S)
        assert done.state == "done", done.errors
    sent = batches(random.Random(table))
    rings = deadlocks(database)

    def send(pipeline: str, mine: Sequence[Sequence[Row]]) -> None:
        """One after the other, so that each is a batch of its own."""
        with Client(stack.url) as own:
            for rows in mine:
                token = own.send(pipeline, "orders", rows).token
                assert own.wait(token, timeout_s=WAIT_S).kind == "complete"

    with ThreadPoolExecutor(2) as pool:
        parts = zip(names(table), (sent[:BATCHES], sent[BATCHES:]), strict=True)
        for running in [pool.submit(send, pipeline, mine) for pipeline, mine in parts]:
            running.result()

    found = database.ask(f"SELECT key, at FROM public.{table} WHERE key < %s", KEYS)
    assert len(found) == KEYS
    assert dict(found) == {key: at for key, at in last_of(sent).items() if key < KEYS}
    assert deadlocks(database) == rings


def deadlocks(database: Database) -> int:
    query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    ((found,),) = database.ask(query)
    return int(found)
