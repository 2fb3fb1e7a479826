"""What is refused changes nothing: the pipeline runs on, in the same run, batch after batch."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from e2e.conftest import START_TIMEOUT_S, Pipeline, order
from e2e.scraping import scrape
from e2e.waiting import eventually, run_of
from waybill import Client, Operation
from waybill_local.stack import StackState
from waybill_stage_runner.adapters.groups import groups_with

WAIT_S = 120.0


@pytest.fixture(scope="module")
def running(client: Client, orders: Pipeline) -> Iterator[Pipeline]:
    """It takes records before the first test and after the last one."""
    arrive(client, orders)
    yield orders
    arrive(client, orders)


@pytest.fixture
def run_id(client: Client, stack: StackState, running: Pipeline) -> Iterator[str]:
    """Of the run that goes on through the test."""
    before = run_of(client, stack, running.name)
    yield before
    assert run_of(client, stack, running.name) == before
    assert client.pipeline(running.name).phase == "Running"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("FROM orders", "FROM nonsense", "no view is called `nonsense`"),
        ("key: order_id}", "key: nothing}", "key 'nothing' is not a column"),
    ],
)
def test_a_change_that_spark_refuses_stops_nothing(
    client: Client, orders: Pipeline, run_id: str, old: str, new: str, problem: str
) -> None:
    refused = applied(client, changed(client, orders, old, new))

    (said,) = refused.errors
    assert (refused.state, problem in said.message) == ("failed", True)
    assert said.line is not None
    assert said.hint


def test_a_change_whose_rows_the_table_does_not_take_stops_nothing(
    client: Client, stack: StackState, orders: Pipeline, catalog: SqlCatalog, run_id: str
) -> None:
    other = f"{orders.table}_other"
    place = f"file://{stack.folder}/lakehouse/warehouse/{other}"
    catalog.create_table(other, pa.schema([("order_id", pa.string())]), location=place)
    refused = applied(client, changed(client, orders, f"table: {orders.table}", f"table: {other}"))

    assert refused.state == "failed"
    assert "has no column" in refused.errors[0].message
    assert catalog.load_table(other).snapshots() == []


def test_a_refused_first_apply_leaves_nothing(
    client: Client, orders: Pipeline, run_id: str
) -> None:
    name = f"{orders.name}-first"
    manifest = changed(client, orders, "FROM orders", "FROM nonsense")
    manifest = manifest.replace(f"name: {orders.name}", f"name: {name}", 1)
    refused = applied(client, manifest, allow_shared=True)

    assert refused.state == "failed"
    assert name not in {each.name for each in client.pipelines()}


def test_a_check_outlives_the_driver_in_which_it_is_made(
    client: Client, stack: StackState, orders: Pipeline, run_id: str
) -> None:
    """The spare is paused, so that the check is in it when it is killed."""
    spare = spare_of(stack)
    os.killpg(spare, signal.SIGSTOP)
    manifest = changed(client, orders, "FROM orders", "FROM nonsense")
    operation = client.apply(manifest)
    eventually(
        lambda: scrape(stack, "stage_runner").value("waybill_drivers", state="checking") == 1,
        within_s=WAIT_S,
    )
    os.killpg(spare, signal.SIGKILL)

    assert client.operation(operation.id, wait_s=START_TIMEOUT_S).state == "failed"


def applied(client: Client, manifest: str, *, allow_shared: bool = False) -> Operation:
    operation = client.apply(manifest, allow_shared=allow_shared)
    return client.operation(operation.id, wait_s=START_TIMEOUT_S)


def changed(client: Client, orders: Pipeline, old: str, new: str) -> str:
    manifest = client.pipeline(orders.name).manifest
    assert manifest is not None
    assert old in manifest
    return manifest.replace(old, new)


def arrive(client: Client, orders: Pipeline) -> None:
    token = client.send(orders.name, "orders", [order(1)]).token
    assert client.wait(token, timeout_s=WAIT_S).kind == "complete"


def spare_of(stack: StackState) -> int:
    """The group of the one driver that is ready and runs nothing."""
    found: list[int] = []

    def there() -> bool:
        drivers = scrape(stack, "stage_runner")
        others = [drivers.value("waybill_drivers", state=s) for s in ("starting", "ending")]
        homes = Path(stack.folder, "stage_runner", "drivers").glob("*/home.json")
        spares = [home for home in homes if not any(home.with_name("runs").glob("*"))]
        found[:] = [group for home in spares for group in groups_with(str(home).__eq__)]
        ready = drivers.value("waybill_drivers", state="ready")
        return (len(found), ready, others) == (1, 1, [0, 0])

    eventually(there, within_s=START_TIMEOUT_S)
    return found[0]
