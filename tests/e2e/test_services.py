"""Each service killed under load, and all of them at once; Kafka standing still. Whoever sends is
told a token or why not, every token ends complete, and every row is there once."""

import threading

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import Apply
from e2e.faults import kill_services, paused, process_of
from e2e.load import Ledger, Load, assert_clear, assert_rows_once, when_ready
from e2e.waiting import eventually
from waybill import Client
from waybill_local.stack import StackState

SERVICES = ("ingress", "token_tracker", "status", "gateway", "stage_runner")
WAIT_S = 150.0
GIVEN_BETWEEN = 6  # tokens that are given before a fault, and again after it
STILL_S = 10.0


@pytest.fixture(scope="module")
def ledger(stack: StackState, apply_orders: Apply) -> Ledger:
    """Of one pipeline, to which all these tests send."""
    return Ledger(stack, apply_orders())


def await_given(ledger: Ledger, load: Load) -> None:
    """Until a few more tokens have been given."""
    wanted = len(ledger.given) + GIVEN_BETWEEN
    eventually(lambda: load.failures or len(ledger.given) >= wanted, within_s=WAIT_S)


def assert_all_arrives(ledger: Ledger, client: Client, catalog: SqlCatalog) -> None:
    assert_clear(ledger.errors)
    name = ledger.pipeline.name
    everything = when_ready(lambda: client.token_for(name, input="orders").token)
    for token in [everything, *ledger.given]:
        assert client.wait(token, timeout_s=WAIT_S).kind == "complete"
    assert_rows_once(ledger, catalog)


@pytest.mark.parametrize("services", [*((name,) for name in SERVICES), SERVICES], ids="+".join)
def test_services_killed_under_load_lose_nothing(
    client: Client,
    stack: StackState,
    catalog: SqlCatalog,
    ledger: Ledger,
    services: tuple[str, ...],
) -> None:
    with Load(ledger) as load:
        await_given(ledger, load)
        kill_services(stack, services)
        await_given(ledger, load)

    assert_all_arrives(ledger, client, catalog)


def test_kafka_standing_still_delays_requests_and_loses_nothing(
    client: Client, stack: StackState, catalog: SqlCatalog, ledger: Ledger
) -> None:
    ledger.longest_s = 0.0

    with Load(ledger, over_http=4) as load:
        await_given(ledger, load)
        with paused([process_of(stack, "kafka")]):
            threading.Event().wait(STILL_S)
        await_given(ledger, load)

    assert ledger.longest_s > STILL_S - 1, "a request was under way all the time"
    assert_all_arrives(ledger, client, catalog)
