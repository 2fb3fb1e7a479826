"""Pipelines that get other names while records come, and two that want one name."""

import json
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.aged_tokens import aged
from e2e.conftest import START_TIMEOUT_S
from e2e.faults import kill_services, paused, process_of
from e2e.reading import rows_of
from e2e.test_edited_letters import order
from e2e.test_replays import Mended, only_dead
from e2e.waiting import eventually, gone
from waybill import Client, Conflict, Expired, Invalid, NotReady, Operation, Outcome, Renamed
from waybill_local.stack import StackState
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.kafka.admin import KafkaAdmin

pytestmark = pytest.mark.timeout(700)
WAIT_S = 300.0
HOUR_MS = 3_600_000
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


def settle(ask: Callable[[], Operation]) -> Operation:
    """Ask again while a name or a manifest waits for what others have sent before."""
    ends_at = time.monotonic() + WAIT_S
    while True:
        try:
            return ask()
        except NotReady:
            assert time.monotonic() < ends_at


def why_refused(ask: Callable[[], Operation]) -> str | None:
    """At once, or later."""
    try:
        return ask().problem
    except Conflict as refused:
        return refused.slug


def check_former_names(shop: Named, second: str, third: str) -> None:
    """The pipeline was renamed twice."""
    client, first = shop.client, shop.first
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
    done = settle(partial(shop.apply, third, second))
    assert done.state == "done", done.errors
    tokens[5] = shop.send(third, 5)

    newest = [shop.complete(token) for token in tokens.values()][-1]
    eventually(lambda: client.find_watch(watch).ended_as == "complete", within_s=WAIT_S)
    pipeline = client.pipeline(third)
    assert (pipeline.uid, pipeline.generation) == (uid, 3)
    found = rows_of(catalog, shop.table, newest).column("order_id").to_pylist()
    assert sorted(found) == [1, 2, 3, 4, 5]
    for token in tokens.values():
        shop.complete(aged(token, stack, TOKEN_LIFE_MS - HOUR_MS))
        with pytest.raises(Expired):
            client.outcome(aged(token, stack, TOKEN_LIFE_MS))

    check_former_names(shop, second, third)


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
        try:
            return settle(ask).state == "done"
        except (Conflict, Invalid):
            return False

    with ThreadPoolExecutor(len(wanted)) as pool:
        got = [*pool.map(get, wanted)]
    assert got.count(True) == 1
    uids = {one.uid for one in client.pipelines() if one.name == goal}
    assert len(uids) == 1
    names = {each.name for each in client.pipelines()}
    assert (shop.first in names) is not got[0]
    assert (other.first in names) is not got[1]


def test_manifest_that_only_a_driver_refuses_reserves_no_name(shop: Named, client: Client) -> None:
    second, other = f"{shop.first}-b", Named(client, "other")
    step = 'steps: [{name: bad, sql: "SELECT nowhere FROM orders"}]'
    wrong = shop.manifest(second, shop.first).replace("    sinks:", f"    {step}\n    sinks:")
    with pytest.raises(Invalid, match="nowhere"):
        settle(partial(client.apply, wrong))
    assert other.apply(second).state == "done"
    with pytest.raises(Conflict, match="there is a pipeline"):
        shop.rename(shop.first, second)


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


class Mendable(Mended):
    """A pipeline of two stages. Its topics keep the first name."""

    def call(self, name: str) -> None:
        """Give other names to it, to its first stage and to the sinks, and mend it."""
        text = self.manifest.format(
            name=self.name, least=0, share="100 div nullif(amount, 0)", table=self.table
        )
        for old, new in (
            (f"name: {self.name}\n", f"name: {name}\nwas: {self.name}\n"),
            ("- name: first\n", "- name: load\n    was: first\n"),
            ("{name: inner,", "{name: mid, was: inner,"),
            ("[inner]", "[mid]"),
            ("FROM inner", "FROM mid"),
            ("{name: out,", "{name: lake, was: out,"),
        ):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        sent = settle(partial(self.client.apply, text))
        done = self.client.operation(sent.id, wait_s=WAIT_S)
        assert done.state == "done", done.errors
        self.client.wait_pipeline(name, timeout_s=WAIT_S)

    def letters(self, name: str) -> dict[str, str]:
        """The stages in which they died, by their ids."""
        path = f"{self.stack.url}/v1/pipelines/{name}/dead-letters"
        with urlopen(path, timeout=WAIT_S) as answer:
            return {each["id"]: each["stage"] for each in json.load(answer)["items"]}

    def outcome(self, token: str) -> Outcome:
        return self.client.wait(token, timeout_s=WAIT_S)


def test_letters_from_before_are_replayed_once_under_the_names_of_now(
    client: Client, stack: StackState, kafka: KafkaAdmin
) -> None:
    shop = Mendable(client, stack, kafka)
    first, second = shop.name, f"{shop.name}-b"
    shop.ask_for(10, share="100 div (amount - 20)")
    assert shop.outcome(shop.send(3, 30)).kind == "complete"
    dead: dict[int, str] = {}
    letters: dict[int, str] = {}
    for number, amount in ((1, 5), (2, 20), (4, 6), (5, 7)):
        dead[number] = shop.send(number, amount)
        letters[number] = str(only_dead(shop.outcome(dead[number])).id)
    (letters[2],) = (each for each, stage in shop.letters(first).items() if stage == "second")
    in_vain = client.replay(first, [letters[5]])
    letters[5] = str(only_dead(shop.outcome(in_vain.token)).id)

    shop.call(second)
    assert {*shop.letters(second)} >= {*letters.values()}
    with pytest.raises(Renamed, match=f"is called '{second}' now"):
        client.replay(first, [letters[1]])
    with pytest.raises(HTTPError, match="410"):
        shop.letters(first)
    done = client.replay(second, [letters[1], letters[2]])
    assert done.sinks == ("load/mid", "second/lake")
    assert shop.outcome(done.token).kind == "complete"
    again = client.replay(second, [letters[1], letters[2]])
    assert (again.token, again.already) == (done.token, 2)
    edited = client.replay(second, [letters[4]], edited={"value": order(40, 60)})
    assert shop.outcome(edited.token).kind == "complete"
    died_twice = client.replay(second, [letters[5]])
    assert shop.outcome(died_twice.token).kind == "complete"
    assert sorted(shop.orders()) == [1, 2, 3, 5, 40]
    for token in (*dead.values(), in_vain.token):
        assert shop.outcome(token).kind == "dead_lettered"
    for sink in ("lake", "out"):
        watch = client.watch(done.token, sinks=[sink]).id
        eventually(lambda w=watch: client.find_watch(w).ended_as == "complete", within_s=WAIT_S)  # type: ignore[misc]
