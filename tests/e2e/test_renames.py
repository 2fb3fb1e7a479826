"""Stages and sinks that get other names while records come, and all is killed: the life stays."""

import uuid
from functools import partial
from itertools import count
from threading import Event, Thread

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.aged_tokens import aged
from e2e.faults import kill_services
from e2e.moments import kill_driver
from e2e.reading import committed_orders, rows_of
from e2e.test_returns import WAIT_S, Shop
from e2e.waiting import eventually
from waybill import Client, NotReady, Unreachable
from waybill_local.stack import StackState
from waybill_shared.contract.token_life import TOKEN_LIFE_MS
from waybill_shared.kafka.admin import KafkaAdmin

ROUNDS = 3  # of names
PAUSE_S = 0.1
HOUR_MS = 3_600_000


class Load:
    """Sends orders all the time. What was refused, or is not known to be kept, is not counted."""

    def __init__(self, shop: Shop) -> None:
        self.tokens: dict[int, str] = {}
        self.unsure: set[int] = set()
        self._shop, self._stop, self._numbers = shop, Event(), count(1)
        self._thread = Thread(target=self._run)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def has_sent(self, least: int) -> bool:
        return len(self.tokens) >= least

    def _run(self) -> None:
        while not self._stop.wait(PAUSE_S):
            number = next(self._numbers)
            try:
                self.tokens[number] = self._shop.send("orders", number)
            except (NotReady, Unreachable):
                self.unsure.add(number)


@pytest.fixture
def shop(client: Client) -> Shop:
    return Shop(client=client, name=f"names-{uuid.uuid4().hex[:8]}")


def is_complete(client: Client, watch: str) -> bool:
    return client.find_watch(watch).ended_as == "complete"


def parts_of(shop: Shop, number: int) -> tuple[str, str, str]:
    """The pipeline under its names of that round; the file says what they were."""
    before = number - 1

    def named(name: str, text: str) -> str:
        was = f"\n    was: {name}{before}" if number else ""
        return text.replace(f"name: {name}\n", f"name: {name}{number}{was}\n")

    def called(name: str, text: str) -> str:
        was = f", was: {name}{before}" if number else ""
        return text.replace(f"{{name: {name},", f"{{name: {name}{number}{was},")

    mid, lake = shop.topic_sink("mid", "mid"), shop.table_sink("lake", "lake")
    copy = shop.stage("copy", "orders", called("mid", mid))
    load = shop.stage("load", f"mid{number}", called("lake", lake))
    return shop.input("orders"), named("copy", copy), named("load", load)


def test_names_that_change_under_load_lose_and_double_no_row(
    shop: Shop, stack: StackState, kafka: KafkaAdmin, catalog: SqlCatalog
) -> None:
    client = shop.client
    shop.apply(*parts_of(shop, 0))
    uid = str(client.pipeline(shop.name).uid)
    first = shop.send("orders", 0)
    assert shop.complete(first).kind == "complete"
    watches: list[str] = []
    with Load(shop) as load:
        for number in range(1, ROUNDS):
            eventually(partial(load.has_sent, 5 * number), within_s=WAIT_S)
            token = [*load.tokens.values()][-1]
            watches.append(client.watch(token, sinks=[f"lake{number - 1}"]).id)
            kill_driver(stack, uid)
            shop.apply(*parts_of(shop, number))
            kill_services(stack, ["stage_runner"])
    assert [stage.name for stage in client.pipeline(shop.name).stages] == ["copy2", "load2"]

    last = shop.complete(shop.send("orders", 1_000_000))
    for token in load.tokens.values():
        shop.complete(token)
    old = aged(first, stack, TOKEN_LIFE_MS - HOUR_MS)
    assert client.wait(old, timeout_s=WAIT_S).kind == "complete"
    watches += [client.watch(old, sinks=[f"lake{number}"]).id for number in range(ROUNDS)]
    watches += [client.watch(first, sinks=[f"lake{number}"]).id for number in range(ROUNDS)]
    for watch in watches:
        eventually(partial(is_complete, client, watch), within_s=WAIT_S)

    sure = {0, 1_000_000, *load.tokens}
    for found in (
        committed_orders(stack, kafka, f"{shop.name}.mid"),
        rows_of(catalog, shop.table("lake"), last.iceberg_snapshots["lake2"])
        .column("order_id")
        .to_pylist(),
    ):
        assert len(found) == len({*found}), "each row is there once"
        assert sure <= {*found} <= sure | load.unsure
    for number in range(ROUNDS - 1):
        refused = shop.refusal(*parts_of(shop, number))
        assert "is called 'copy2' now" in refused
        assert "`was: copy2`" in refused
