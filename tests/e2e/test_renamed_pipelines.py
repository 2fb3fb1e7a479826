"""Pipelines that get other names while records come, and two that want one name."""

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import START_TIMEOUT_S
from e2e.faults import kill_services, paused, process_of
from e2e.reading import rows_of
from e2e.waiting import eventually, gone
from waybill import Client, Conflict, Invalid, NotReady, Operation, Renamed
from waybill_local.stack import StackState

WAIT_S = 300.0
MANIFEST = """
version: 1
name: {name}{was}
inputs:
  - name: orders
    kafka: {{topic: {topic}.in, partitions: 1}}
    schema: "order_id BIGINT, customer STRING"
stages:
  - name: load
    inputs: [orders]
    trigger: {{processingTime: 100 milliseconds}}
    sinks: [{{name: lake, iceberg: {{table: raw.{table}}}}}]
"""


class Named:
    """A pipeline on topics and a table that are called after its first name."""

    def __init__(self, client: Client, word: str) -> None:
        self.client, self.first = client, f"{word}-{uuid.uuid4().hex[:8]}"
        self.table = f"raw.{self.first.replace('-', '_')}"

    def manifest(self, name: str, was: str | None = None) -> str:
        line = "" if was is None else f"\nwas: {was}"
        table = self.table.removeprefix("raw.")
        return MANIFEST.format(name=name, was=line, topic=self.first, table=table)

    def apply(self, name: str, was: str | None = None) -> Operation:
        sent = self.client.apply(self.manifest(name, was))
        return self.client.operation(sent.id, wait_s=START_TIMEOUT_S)

    def rename(self, name: str, to: str) -> Operation:
        sent = self.client.rename(name, to)
        return self.client.operation(sent.id, wait_s=START_TIMEOUT_S)

    def send(self, name: str, number: int) -> str:
        record = {"order_id": number, "customer": "ada"}
        return self.client.send(name, "orders", [record]).token

    def complete(self, token: str) -> int:
        outcome = self.client.wait(token, timeout_s=WAIT_S)
        assert outcome.kind == "complete", outcome
        return outcome.iceberg_snapshots["lake"]


@pytest.fixture
def shop(client: Client) -> Named:
    pipeline = Named(client, "shop")
    done = pipeline.apply(pipeline.first)
    assert done.state == "done", done.errors
    return pipeline


def why_refused(ask: Callable[[], Operation]) -> str | None:
    """At once, or later."""
    try:
        return ask().problem
    except Conflict as refused:
        return refused.slug


def test_pipeline_that_is_renamed_loses_and_doubles_no_row(
    shop: Named, stack: StackState, catalog: SqlCatalog
) -> None:
    client, first = shop.client, shop.first
    uid = client.pipeline(first).uid
    tokens = {1: shop.send(first, 1)}
    shop.complete(tokens[1])
    watch = client.watch(shop.send(first, 2), sinks=["lake"]).id

    tokens[3] = shop.send(first, 3)
    second, third = f"{first}-b", f"{first}-c"
    asked = client.rename(first, second)
    kill_services(stack, ["stage_runner"])
    assert client.operation(asked.id, wait_s=WAIT_S).state == "done"
    tokens[4] = shop.send(second, 4)
    done = shop.apply(third, second)
    assert done.state == "done", done.errors
    tokens[5] = shop.send(third, 5)

    newest = [shop.complete(token) for token in tokens.values()][-1]
    eventually(lambda: client.find_watch(watch).ended_as == "complete", within_s=WAIT_S)
    pipeline = client.pipeline(third)
    assert (pipeline.uid, pipeline.generation) == (uid, 3)
    found = rows_of(catalog, shop.table, newest).column("order_id").to_pylist()
    assert sorted(found) == [1, 2, 3, 4, 5]

    for former in (first, second):
        for ask in (partial(shop.send, former, 6), partial(client.pipeline, former)):
            with pytest.raises(Renamed, match=f"is called '{third}' now") as raised:
                ask()
            assert raised.value.renamed_to == third
    with pytest.raises(Renamed):
        client.apply(shop.manifest(first))
    with pytest.raises(Renamed):
        client.apply(shop.manifest(second, first))
    assert shop.apply(third, second).state == "done", "`was` may stay in the file"
    with pytest.raises(Invalid, match="was never called 'nothing'"):
        client.apply(shop.manifest(third, "nothing"))


def test_names_of_a_deleted_pipeline_are_free(shop: Named) -> None:
    client, first = shop.client, shop.first
    second = f"{first}-b"
    token = shop.send(first, 1)
    shop.complete(token)
    assert shop.rename(first, second).state == "done"
    assert client.operation(client.delete(second).id, wait_s=WAIT_S).state == "done"
    assert gone(client, first)
    assert gone(client, second)
    for name in (first, second):
        again = Named(client, "again")
        done = again.apply(name)
        assert done.state == "done", done.errors
        assert client.outcome(token).kind == "complete", "it is one of the pipeline of before"
        assert client.operation(client.delete(name).id, wait_s=WAIT_S).state == "done"


def test_of_two_that_want_one_name_one_gets_it(shop: Named, client: Client) -> None:
    other, goal = Named(client, "other"), f"goal-{uuid.uuid4().hex[:8]}"
    assert other.apply(other.first).state == "done"
    third = Named(client, "third")
    wanted: list[Callable[[], Operation]] = [
        partial(shop.rename, shop.first, goal),
        partial(other.apply, goal, other.first),
        partial(third.apply, goal),
    ]

    def get(ask: Callable[[], Operation]) -> bool:
        """A name that a manifest may begin with is reserved, or refused, when that is checked."""
        ends_at = time.monotonic() + WAIT_S
        while True:
            try:
                return ask().state == "done"
            except (Conflict, Invalid):
                return False
            except NotReady:
                assert time.monotonic() < ends_at

    with ThreadPoolExecutor(len(wanted)) as pool:
        got = [*pool.map(get, wanted)]
    assert got.count(True) == 1
    uids = {one.uid for one in client.pipelines() if one.name == goal}
    assert len(uids) == 1
    names = {each.name for each in client.pipelines()}
    assert (shop.first in names) is not got[0]
    assert (other.first in names) is not got[1]


def test_name_that_was_reserved_before_ingress_was_killed_is_given_later(
    shop: Named, stack: StackState
) -> None:
    client, second = shop.client, f"{shop.first}-b"
    with paused([process_of(stack, "stage_runner")]):
        with pytest.raises(NotReady, match="it goes on"):
            client.rename(shop.first, second)
        kill_services(stack, ["ingress"])
    other = Named(client, "other")
    assert why_refused(partial(other.apply, second)) == "name_in_use"
    assert client.pipeline(shop.first).name == shop.first
    assert shop.rename(shop.first, second).state == "done"
    shop.complete(shop.send(second, 1))
